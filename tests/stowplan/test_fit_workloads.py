"""Room for what does not exist yet: pods of Deployments, StatefulSets and Jobs, all that waits, and how many fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.cli import run
from stowplan.models.errors import InputError
from stowplan.planning.replicas import new_pods
from tests.support.clusters import Manifest, node, pod
from tests.support.malformed import listed

QUICK = ("-q", "-t", "2", "--deterministic")


def template(cpu: str = "1", **spec: Any) -> Manifest:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **spec}}


def workload(kind: str, cpu: str = "1", name: str = "web", pod_spec: Manifest | None = None, **spec: Any) -> Manifest:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    body = {"template": template(cpu, **(pod_spec or {})), **spec}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": body}


def write(folder: Path, content: Any, name: str = "new.yaml") -> str:
    path = folder / name
    path.write_text(yaml.safe_dump_all(content if isinstance(content, list) else [content]))
    return str(path)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """Three nodes of 4 CPU, each with a pod of 1.5 CPU: 2 CPU fit on each, and 4 on one that is emptied."""
    pods = [pod(f"web-{i}", f"n{i}", cpu="1500m", owner=f"ReplicaSet/w{i}") for i in range(3)]
    pods += [pod("late", cpu="500m", owner="ReplicaSet/late"), pod("gated", schedulingGates=[{"name": "wait"}])]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(*(node(f"n{i}") for i in range(3)), *pods)))
    return str(path)


def fitted(dump: str, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Manifest:
    assert run(["fit", dump, *QUICK, "-o", "json", *words]) == code
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


# -- the pods of a workload -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifest", "names", "owner"),
    [
        (workload("Deployment", replicas=2), ["web-fit-0", "web-fit-1"], "ReplicaSet/web-fit"),
        (workload("ReplicaSet"), ["web-fit-0"], "ReplicaSet/web-fit"),
        (workload("StatefulSet", replicas=2), ["web-0", "web-1"], "StatefulSet/web"),
        (workload("Job", parallelism=3, completions=2), ["web-0", "web-1"], "Job/web"),
        (workload("Job", parallelism=3), ["web-0", "web-1", "web-2"], "Job/web"),
        (workload("Job"), ["web-0"], "Job/web"),
    ],
)
def test_a_workload_creates_its_pods(tmp_path: Path, manifest: Manifest, names: list[str], owner: str) -> None:
    found = new_pods([write(tmp_path, manifest)])
    assert list(found.keys) == [f"shop/{name}" for name in names]
    made = [item for item in json.loads(found.data)["items"] if item["kind"] == "Pod"]
    for one in made:
        (reference,) = one["metadata"]["ownerReferences"]
        assert f"{reference['kind']}/{reference['name']}" == owner
        assert one["metadata"]["labels"] == {"app": "web"}
        assert one["spec"]["containers"] == template()["spec"]["containers"]
    assert len(new_pods([write(tmp_path, manifest)], 5).keys) == 5


def test_a_stateful_set_claims_a_volume_for_each_pod(tmp_path: Path) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    found = new_pods([write(tmp_path, workload("StatefulSet", replicas=2, volumeClaimTemplates=[claim]))])
    items = json.loads(found.data)["items"]
    claims = [item for item in items if item["kind"] == "PersistentVolumeClaim"]
    assert [one["metadata"]["name"] for one in claims] == ["data-web-0", "data-web-1"]
    pods = [item for item in items if item["kind"] == "Pod"]
    assert [p["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] for p in pods] == ["data-web-0", "data-web-1"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, "contains ConfigMap and no Pod; must"),
        ({**workload("Deployment"), "spec": {}}, "Deployment shop/web: spec.template: has no pod template"),
        (
            workload("Deployment", replicas="two"),
            "spec.replicas: is 'two'; must be a whole number",
        ),
        (workload("DaemonSet"), "contains DaemonSet and no Pod; must contain pods, or a Deployment, ReplicaSet"),
    ],
)
def test_what_creates_no_pods_is_refused(tmp_path: Path, content: Manifest, said: str) -> None:
    with pytest.raises(InputError) as refused:
        new_pods([write(tmp_path, content)])
    assert said in str(refused.value)


# -- room for them --------------------------------------------------------------------------------------------


def test_a_deployment_fits_with_the_fewest_moves(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One replica of 4 CPU needs an empty node: one of the three pods leaves, since two of them share a node."""
    file = write(tmp_path, workload("Deployment", cpu="4", replicas=1))
    document = fitted(dump, capsys, "-f", file)
    assert document["possible"]
    assert [one["name"] for one in document["wanted"]] == ["web-fit-0"]
    kinds = [move["kind"] for wave in document["plan"]["waves"] for move in wave["moves"]]
    assert kinds.count("evict") == 1
    assert "place" in kinds
    refused = fitted(dump, capsys, "-f", file, "--replicas", "3", code=3)
    assert len(refused["wanted"]) == 3
    assert refused["proof"]


def test_all_that_waits_is_asked_for_at_once(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A gated pod does not wait for a node yet."""
    document = fitted(dump, capsys, "--all-pending")
    assert [one["name"] for one in document["wanted"]] == ["late"]
    assert document["possible"]


def test_the_pods_are_written_for_verify(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods, plan = tmp_path / "pods.json", tmp_path / "plan.json"
    file = write(tmp_path, workload("Deployment", cpu="4"))
    plan.write_text(json.dumps(fitted(dump, capsys, "-f", file, "--write-pods", str(pods))))
    assert run(["verify", str(plan), dump, str(pods)]) == 0


# -- how many fit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        # 2 fit beside each pod of 1.5 CPU; with two of those on one node, 1 fits there, 4 on the one they leave.
        (workload("Deployment", cpu="1"), "7 replicas fit with 1 move of others; proven that no more do."),
        # 1 fits beside each; 2 on a node that is left, and then none beside two pods.
        (workload("Deployment", cpu="2"), "3 replicas fit with 0 moves of others; proven that no more do."),
        (workload("StatefulSet", cpu="4"), "1 replica fits with 1 move of others; proven that no more do."),
        (workload("Job", cpu="5"), "0 replicas fit with 0 moves of others; proven that no more do."),
    ],
)
def test_the_most_replicas(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], manifest: Manifest, said: str
) -> None:
    assert run(["fit", dump, *QUICK, "-f", write(tmp_path, manifest), "--most"]) == 0
    headline = capsys.readouterr().out.splitlines()[0]
    assert headline == said


def test_the_most_replicas_where_moves_make_room(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two nodes of 4 CPU, half full: 2 replicas of 2 CPU fit as it is, and no third, whoever moves; of 3 CPU, one."""
    path = tmp_path / "dump.json"
    pods = [pod(f"web-{i}", f"n{i}", cpu="2", owner=f"ReplicaSet/w{i}") for i in range(2)]
    path.write_text(json.dumps(listed(node("n0"), node("n1"), *pods)))
    for cpu, said in (("2", "2 replicas fit with 0 moves"), ("3", "1 replica fits with 1 move")):
        file = write(tmp_path, workload("Deployment", cpu=cpu))
        assert run(["fit", str(path), *QUICK, "-f", file, "--most"]) == 0
        assert capsys.readouterr().out.startswith(f"{said} of others; proven that no more do.")


def test_the_most_needs_one_workload(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = write(tmp_path, [workload("Deployment"), workload("Job", name="job")])
    assert run(["fit", dump, *QUICK, "-f", both, "--most"]) == 1
    assert "--most: needs one workload, such as a Deployment" in capsys.readouterr().err
    one = write(tmp_path, workload("Deployment"), "one.yaml")
    assert run(["fit", dump, *QUICK, "-f", one, "--most", "--replicas", "3"]) == 1
    assert "--most: excludes --replicas" in capsys.readouterr().err
