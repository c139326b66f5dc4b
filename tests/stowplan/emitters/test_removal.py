"""What an emission has put into a cluster is taken off again, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.cli import run as run_command
from stowplan.emitters.descheduler import ACCOUNT, emit_descheduler, remove_descheduler
from stowplan.emitters.emission import PLAN_LABEL, Emission, EmitOptions
from stowplan.emitters.pin import GATE, emit_pin, remove_pin
from stowplan.instances.load import load
from stowplan.plans.movability.annotations import EVICT
from tests.support.api_server import ApiServer
from tests.support.api_server.errors import ApiError
from tests.support.api_server.faults import refuse
from tests.support.api_server.resources import BY_KIND, PODS
from tests.support.carrying import cluster, gated, of, served, two_waves
from tests.support.kubectl import needs_kubectl
from tests.support.plans import plan, shop

OURS = "stowplan.io/"


def apply_manifests(server: ApiServer, emission: Emission) -> None:
    """Create what an emission has manifests of, as kubectl apply does."""
    for file in emission.files:
        if file.name.endswith(".yaml"):
            for manifest in yaml.safe_load_all(file.content):
                server.store.create(BY_KIND[manifest["kind"]], manifest)


def left(server: ApiServer, *kinds: str) -> list[str]:
    """Return kind and name of all objects of some kinds."""
    return [f"{kind}/{found['metadata']['name']}" for kind in kinds for found in server.store.all(BY_KIND[kind])]


def marks(server: ApiServer) -> list[str]:
    """Return our labels and gates on pods."""
    pods = server.store.all(PODS)
    labels = [key for pod in pods for key in pod["metadata"].get("labels", {}) if key.startswith(OURS)]
    return labels + [gate["name"] for pod in pods for gate in pod["spec"].get("schedulingGates", ())]


POLICIES = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")


def pinned(made: Any, server: ApiServer, run: Any, *names: str) -> None:
    """Pin the replacements of pods; others wait behind the gate."""
    apply_manifests(server, emit_pin(made, EmitOptions()))
    for name in names:
        server.store.delete(PODS, "shop", name, {})
    server.cluster.settle()
    done = run("--yes", "1")
    assert done.returncode == 0, done.stderr
    server.cluster.settle()


@needs_kubectl
def test_what_pinning_left_is_taken_off_and_the_pods_stay_movable(tmp_path: Path) -> None:
    manifests = gated()
    web = [m["metadata"]["name"] for m in manifests if m["kind"] == "Pod"]
    made = plan([of(manifests, web[0], "n2", "m0001")])
    with served(manifests, made, emit_pin(made, EmitOptions()).files[0], tmp_path) as (server, run):
        pinned(made, server, run, *web[:2])
        server.store.create(
            BY_KIND["MutatingAdmissionPolicy"], {"kind": "MutatingAdmissionPolicy", "metadata": {"name": "other"}}
        )
        assert sorted(marks(server)) == [GATE, "stowplan.io/token"]
        removal = remove_pin(made, EmitOptions()).files[0]
        shown = run(other=removal)
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.count("would ") == 4
        assert sorted(marks(server)) == [GATE, "stowplan.io/token"]
        done = run("--yes", other=removal)
        assert done.returncode == 0, done.stderr
        assert marks(server) == []
        assert left(server, *POLICIES) == ["MutatingAdmissionPolicy/other"]
        again = run("--yes", other=removal)
        assert (again.returncode, again.stdout) == (0, "")
        items = [{"apiVersion": "v1", **item} for kind in ("Node", "Pod") for item in server.store.all(BY_KIND[kind])]
        (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        affinities = {pod["metadata"]["name"]: pod["spec"].get("affinity") for pod in server.store.all(PODS)}
        assert any(affinities.values())
        found = load([str(tmp_path / "dump.json")]).pods
        assert [pod.name for pod in found if pod.spec.affinity is not None] == []
        assert all(not key.startswith(OURS) for pod in found for key in pod.metadata.annotations)


@needs_kubectl
def test_what_cannot_be_removed_is_named(tmp_path: Path) -> None:
    manifests = gated()
    web = [m["metadata"]["name"] for m in manifests if m["kind"] == "Pod"]
    made = plan([of(manifests, web[0], "n2", "m0001")])
    with served(manifests, made, emit_pin(made, EmitOptions()).files[0], tmp_path) as (server, run):
        pinned(made, server, run, *web[:2])
        server.faults.on("delete", refuse(ApiError(403, "Forbidden", "no")), times=99)
        done = run("--yes", other=remove_pin(made, EmitOptions()).files[0])
        assert done.returncode == 1
        assert "stopped: cannot be removed: mutatingadmissionpolicybinding" in done.stderr
        assert marks(server) == []
        assert len(left(server, *POLICIES)) == 2


@needs_kubectl
def test_pinning_takes_everything_off_once_the_plan_has_expired(tmp_path: Path) -> None:
    manifests = gated()
    web = [m["metadata"]["name"] for m in manifests if m["kind"] == "Pod"]
    made = plan([of(manifests, web[0], "n2", "m0001")])
    late = made.model_copy(update={"expires_at": "2026-01-01T00:00:00Z"})
    with served(manifests, made, emit_pin(made, EmitOptions()).files[0], tmp_path) as (server, run):
        pinned(made, server, run, *web[:2])
        script = emit_pin(late, EmitOptions()).files[0]
        shown = run("1", other=script)
        assert shown.returncode == 1
        assert len(left(server, *POLICIES)) == 2
        done = run("--yes", "1", other=script)
        assert done.returncode == 1
        assert "stopped: the plan has expired; make a new one\n" in done.stderr
        assert marks(server) == []
        assert left(server, *POLICIES) == []


RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")


@needs_kubectl
def test_what_the_descheduler_was_given_is_taken_off(tmp_path: Path) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    emission = emit_descheduler(made, EmitOptions())
    script = emission.files[0]
    script = type(script)(script.name, script.content.replace("PROTECTED=''", "PROTECTED=m0002"))
    with served(manifests, made, script, tmp_path) as (server, run):
        apply_manifests(server, emission)
        assert run("label", "1").returncode == 0
        other = {"name": "theirs", "namespace": "kube-system", "labels": {PLAN_LABEL: "plan-other"}}
        server.store.create(BY_KIND["Job"], {"kind": "Job", "metadata": other, "spec": {}})
        removal = remove_descheduler(made, EmitOptions()).files[0]
        shown = run(other=removal)
        assert shown.returncode == 0, shown.stderr
        assert len(left(server, "Job", "ConfigMap")) == 5
        assert marks(server) != []
        done = run("--yes", other=removal)
        assert done.returncode == 0, done.stderr
        assert marks(server) == []
        assert not any(EVICT in p["metadata"].get("annotations", {}) for p in server.store.all(PODS))
        assert left(server, "Job", "ConfigMap") == ["Job/theirs"]
        assert len(left(server, *RIGHTS)) == 3
        assert f"{ACCOUNT} stays: other plans have Jobs in kube-system" in done.stdout
        server.store.remove(BY_KIND["Job"], "kube-system", "theirs")
        done = run("--yes", other=removal)
        assert done.returncode == 0, done.stderr
        assert left(server, *RIGHTS) == []


def test_the_command_writes_what_removes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = shop().model_copy(update={"expires_at": "2026-01-01T00:00:00Z"})
    path = tmp_path / "plan.json"
    path.write_text(made.model_dump_json(by_alias=True))
    assert run_command(["emit", str(path), "--to", "pin", "--remove"]) == 0
    out, err = capsys.readouterr()
    assert out == remove_pin(made, EmitOptions()).files[0].content
    assert err == ""
    for target, why in (("kubectl", "it leaves nothing in the cluster"), ("koordinator", "kubectl delete -f")):
        assert run_command(["emit", str(path), "--to", target, "--remove"]) != 0
        assert f"--remove: is not for --to {target}: " in (err := capsys.readouterr().err)
        assert why in err
