"""The scripts of the descheduler's recipe and of pinning, carried out by a real shell and a real kubectl."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.emitters.descheduler import emit_descheduler, remove_descheduler
from stowplan.emitters.emission import PLAN_LABEL, EmitOptions
from stowplan.emitters.pin import GATE, emit_pin, remove_pin
from stowplan.models.plan import Plan
from stowplan.plans.movability.annotations import EVICT
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import examine
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.api_server import ApiServer, Request
from tests.support.api_server.errors import ApiError
from tests.support.api_server.faults import refuse
from tests.support.api_server.manifests import budget
from tests.support.api_server.resources import NODES, PODS
from tests.support.carrying import Manifest, cluster, gated, of, served, two_waves, where
from tests.support.clusters import node, snapshot
from tests.support.descheduler import deschedule
from tests.support.kubectl import needs_kubectl
from tests.support.plans import move, plan, shop

SHELLCHECK = shutil.which("shellcheck") or str(Path(sys.executable).with_name("shellcheck"))


@pytest.mark.skipif(not Path(SHELLCHECK).exists(), reason="shellcheck is not installed")
@pytest.mark.parametrize("emit", [emit_descheduler, remove_descheduler, emit_pin, remove_pin])
def test_shellcheck_has_nothing_to_say(emit: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.sh").write_text(emit(shop(), EmitOptions()).files[0].content)
    done = subprocess.run([SHELLCHECK, str(tmp_path / "plan.sh")], capture_output=True, text=True)
    assert done.stdout == ""
    assert done.returncode == 0


# -- descheduler ----------------------------------------------------------------------------------------------


def policy_of(made: Plan, wave: int) -> Manifest:
    """Return a wave's policy."""
    (file,) = (f for f in emit_descheduler(made, EmitOptions()).files if f.name == f"wave-{wave}.yaml")
    config, _ = yaml.safe_load_all(file.content)
    content: Manifest = yaml.safe_load(config["data"]["policy.yaml"])
    return content


def labeled(server: ApiServer) -> list[str]:
    """Return the names of the pods that have our label."""
    return sorted(p["metadata"]["name"] for p in server.store.all(PODS) if PLAN_LABEL in p["metadata"]["labels"])


@needs_kubectl
def test_label_then_policy_wave_by_wave(tmp_path: Path) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    script = emit_descheduler(made, EmitOptions()).files[0]
    with served(manifests, made, script, tmp_path) as (server, run):
        early = run("label", "2")
        assert early.returncode == 1
        assert "stopped: wave 1 has not been checked" in early.stderr
        for wave, number in ((1, 2), (2, 3)):
            done = run("label", str(wave))
            assert done.returncode == 0, done.stderr
            assert len(labeled(server)) == number
            assert deschedule(server, policy_of(made, wave)) == [201] * number
            done = run("check", str(wave))
            assert done.returncode == 0, done.stderr
            assert labeled(server) == []
        assert where(server) == [("db", "n1"), ("web-5d5b", "n1"), ("web-5d5b", "n2"), ("web-5d5b", "n3")]


@needs_kubectl
def test_nodes_are_cordoned_from_the_label_to_the_check(tmp_path: Path) -> None:
    manifests = cluster()
    made = plan([of(manifests, "web-5d5b-aaaab", "n2", "m0001")])
    made = made.model_copy(update={"cordon": ("n1",), "waves": (made.waves[0].model_copy(update={"cordon": ("n3",)}),)})
    with served(manifests, made, emit_descheduler(made, EmitOptions()).files[0], tmp_path) as (server, run):

        def cordoned() -> list[str]:
            return [n["metadata"]["name"] for n in server.store.all(NODES) if n["spec"].get("unschedulable")]

        for step, nodes in (("label", ["n1", "n3"]), ("unlabel", ["n1"]), ("label", ["n1", "n3"])):
            done = run(step, "1")
            assert done.returncode == 0, done.stderr
            assert cordoned() == nodes
        assert deschedule(server, policy_of(made, 1)) == [201]
        assert run("check", "1").returncode == 0
        assert cordoned() == ["n1"]


@needs_kubectl
def test_a_refused_pod_is_found_by_the_check(tmp_path: Path) -> None:
    """The descheduler ends well whatever was refused; only the label tells."""
    manifests = [*cluster(), budget("shop", "db", "db", maxUnavailable=0)]
    made = two_waves(manifests)
    script = emit_descheduler(made, EmitOptions()).files[0]
    with served(manifests, made, script, tmp_path) as (server, run):
        assert run("label", "1").returncode == 0
        assert sorted(deschedule(server, policy_of(made, 1))) == [201, 429]
        done = run("check", "1")
        assert done.returncode == 1
        assert "stopped: not evicted: shop/db-0" in done.stderr
        assert run("unlabel", "1").returncode == 0
        assert labeled(server) == []
        assert run("label", "1").returncode == 0  # once more, for what is left of the wave
        assert labeled(server) == ["db-0"]


@needs_kubectl
def test_a_protected_pod_is_annotated_and_no_other(tmp_path: Path) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    db = next(m for m in manifests if m["metadata"]["name"] == "db-0")
    db["spec"] = {**db["spec"], "volumes": [{"name": "scratch", "emptyDir": {}}]}
    script = emit_descheduler(made, EmitOptions()).files[0]
    script = type(script)(script.name, script.content.replace("PROTECTED=''", "PROTECTED=m0002"))
    with served(manifests, made, script, tmp_path) as (server, run):
        done = run("label", "1")
        assert done.returncode == 0, done.stderr
        annotated = [p["metadata"]["name"] for p in server.store.all(PODS) if p["metadata"].get("annotations")]
        assert annotated == ["db-0"]
        assert run("unlabel", "1").returncode == 0
        assert labeled(server) == []
        assert not any(p["metadata"].get("annotations") for p in server.store.all(PODS))
        assert run("label", "1").returncode == 0
        assert deschedule(server, policy_of(made, 1)) == [201, 201]


@needs_kubectl
def test_an_annotation_of_somebody_else_stays(tmp_path: Path) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    db = next(m for m in manifests if m["metadata"]["name"] == "db-0")
    db["metadata"] = {**db["metadata"], "annotations": {EVICT: "true"}}
    with served(manifests, made, emit_descheduler(made, EmitOptions()).files[0], tmp_path) as (server, run):
        assert run("label", "1").returncode == 0
        assert run("unlabel", "1").returncode == 0
        assert labeled(server) == []
        assert server.store.get(PODS, "shop", "db-0")["metadata"]["annotations"] == {EVICT: "true"}


@needs_kubectl
def test_a_kill_between_label_and_annotation_leaves_nothing_that_unlabel_does_not_find(tmp_path: Path) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    script = emit_descheduler(made, EmitOptions()).files[0]
    script = type(script)(script.name, script.content.replace("PROTECTED=''", "PROTECTED=m0002"))
    with served(manifests, made, script, tmp_path) as (server, run):
        # The first pod's label, then whatever comes first for the second; nothing after that gets through.
        server.faults.on("patch", refuse(ApiError(403, "Forbidden", "no")), skip=2, times=99)
        assert run("label", "1").returncode == 1
        server.faults.clear()
        assert run("unlabel", "1").returncode == 0
        assert not any(p["metadata"].get("annotations") for p in server.store.all(PODS))


@pytest.mark.parametrize(
    ("conditions", "code", "said"),
    [("Complete ", 0, ""), ("FailureTarget Failed ", 1, "Job has failed"), ("", 1, "Job did not complete")],
)
def test_a_job_is_waited_for_until_it_has_ended_either_way(
    tmp_path: Path, conditions: str, code: int, said: str
) -> None:
    made = plan([move("shop/web-a", "n1", "n2", id="m0001")], timeout=1 if not conditions else 600)
    for file in emit_descheduler(made, EmitOptions()).files:
        (tmp_path / file.name).write_text(file.content)
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"""#!/bin/sh\ncase "$*" in 'get job'*) printf '%s' '{conditions}' ;; esac\n""")
    kubectl.chmod(0o755)
    done = subprocess.run(
        ["sh", "plan-7f3a-descheduler.sh", "apply", "1"],
        cwd=tmp_path,
        env={**os.environ, "KUBECTL": str(kubectl), "STOWPLAN_INTERVAL": "0.1"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == code
    assert said in done.stderr


@needs_kubectl
def test_a_pod_that_changes_meanwhile_is_looked_at_again(tmp_path: Path) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    script = emit_descheduler(made, EmitOptions()).files[0]
    with served(manifests, made, script, tmp_path) as (server, run):
        server.faults.on("patch", refuse(ApiError(409, "Conflict", "the object has been modified")), times=1)
        done = run("label", "1")
        assert done.returncode == 0, done.stderr
        assert len(labeled(server)) == 2


@needs_kubectl
def test_an_expired_plan_can_be_cleared_away_and_no_more(tmp_path: Path) -> None:
    manifests = gated()
    made = two_waves(manifests, expires_at="2026-01-01T00:00:00Z")
    for script, begin, clear in (
        (emit_descheduler(made, EmitOptions()).files[0], ["label", "1"], ["unlabel", "1"]),
        (emit_pin(made, EmitOptions()).files[0], ["--yes", "1"], ["--yes", "release"]),
    ):
        with served(manifests, made, script, tmp_path) as (_, run):
            done = run(*begin)
            assert done.returncode == 1
            assert "stopped: the plan has expired" in done.stderr
            assert run(*clear).returncode == 0


def test_a_wave_has_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "plan.sh").write_text(emit_descheduler(shop(), EmitOptions()).files[0].content)
    for arguments in ([], ["label"], ["run", "3"], ["run", "0"], ["2"]):
        done = subprocess.run(["sh", "plan.sh", *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2, arguments
        assert done.stderr.startswith("usage: ")


# -- pinning --------------------------------------------------------------------------------------------------

TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
HOLD = {"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}


def required(*terms: Manifest) -> Manifest:
    """Return an affinity to nodes."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}}


@needs_kubectl
@pytest.mark.parametrize(
    "affinity",
    [
        None,
        {},
        {"nodeAffinity": {}},
        {"podAffinity": {}, "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        required(TERM, {"matchFields": [HOLD]}, {**TERM, "matchFields": [HOLD]}),
    ],
    ids=["none", "empty", "no terms", "preferences", "terms"],
)
def test_gated_pods_get_their_nodes(tmp_path: Path, affinity: Manifest | None) -> None:
    manifests = gated(affinity, ("example.com/quota", GATE))
    web = [m["metadata"]["name"] for m in manifests if m["kind"] == "Pod"]
    made = plan([of(manifests, web[0], "n2", "m0001"), of(manifests, web[1], "n3", "m0002")])
    script = emit_pin(made, EmitOptions()).files[0]
    with served(manifests, made, script, tmp_path) as (server, run):
        for name in web[:2]:
            server.store.delete(PODS, "shop", name, {})
        server.cluster.settle()
        done = run("--yes", "1", "--seconds", "20")
        assert done.returncode == 0, done.stderr
        pods = [p for p in server.store.all(PODS) if p["spec"].get("schedulingGates")]
        assert [p["spec"]["schedulingGates"] for p in pods] == [[{"name": "example.com/quota"}]] * 2
        assert sorted(admitted(p) for p in pods) == [["n2"], ["n3"]]
        for pod in pods:
            terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            was = (affinity or {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
            assert len(terms["nodeSelectorTerms"]) == (len(was["nodeSelectorTerms"]) if was else 1)


def admitted(manifest: Manifest) -> list[str]:
    """Return the nodes that a pod's affinity lets it have, by our own filter."""
    nodes = [node(f"n{i}", labels={"disk": "ssd"}) for i in (1, 2, 3, 9)]
    spec = {key: value for key, value in manifest["spec"].items() if key != "schedulingGates"}
    made = snapshot(nodes=nodes, pods=[{**manifest, "spec": spec}])
    state = ClusterState(made, K36, Signatures(made.pods))
    framework = Framework(replace(default_profile(K36), tie_break="first"), state)
    return [made.nodes[i].name for i in examine(framework, made.pods[0]).diagnosis.feasible.tolist()]


@needs_kubectl
def test_a_token_is_for_so_many_pods_and_the_others_are_released(tmp_path: Path) -> None:
    manifests = gated()
    web = [m["metadata"]["name"] for m in manifests if m["kind"] == "Pod"]
    made = plan([of(manifests, web[0], "n2", "m0001")])
    script = emit_pin(made, EmitOptions()).files[0]
    with served(manifests, made, script, tmp_path) as (server, run):
        for name in web[:3]:
            server.store.delete(PODS, "shop", name, {})
        server.cluster.settle()
        shown = run("1")
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.count("would pin shop/web-5d5b-") == 1
        done = run("--yes", "1")
        assert done.returncode == 0, done.stderr
        again = run("--yes", "1")
        assert (again.returncode, again.stdout) == (0, "")
        server.cluster.settle()
        assert where(server).count(("web-5d5b", "n2")) == 1
        assert sum(bool(p["spec"].get("schedulingGates")) for p in server.store.all(PODS)) == 2
        done = run("--yes", "release")
        assert done.returncode == 0, done.stderr
        assert not any(p["spec"].get("schedulingGates") for p in server.store.all(PODS))


@needs_kubectl
def test_pods_that_do_not_come_are_told(tmp_path: Path) -> None:
    manifests = gated()
    made = plan([of(manifests, "web-5d5b-aaaab", "n2", "m0001")])
    with served(manifests, made, emit_pin(made, EmitOptions()).files[0], tmp_path) as (_, run):
        done = run("--yes", "--seconds", "1", "1")
        assert done.returncode == 1
        assert "stopped: 1 pods of wave 1 have not come" in done.stderr


@needs_kubectl
def test_a_wave_that_has_begun_is_pinned_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan expires when the script has looked for the first time, and the pod comes later."""
    manifests = gated()
    web = next(m["metadata"]["name"] for m in manifests if m["kind"] == "Pod")
    made = plan([of(manifests, web, "n2", "m0001")])
    late, date = tmp_path / "late", tmp_path / "bin" / "date"
    date.parent.mkdir()
    date.write_text(f"""#!/bin/sh
case "$*" in -u*) [ ! -e {late} ] || exec echo 99991231000000 ;; esac
exec {shutil.which("date")} "$@"
""")
    date.chmod(0o755)
    monkeypatch.setenv("PATH", f"{date.parent}:{os.environ['PATH']}")
    with served(manifests, made, emit_pin(made, EmitOptions()).files[0], tmp_path) as (server, run):

        def expire(request: Request) -> None:
            late.touch()
            server.store.delete(PODS, "shop", web, {})

        server.faults.on("list", expire, matching="/pods", after=True)
        done = run("--yes", "1", "--seconds", "20")
        assert done.returncode == 0, done.stderr
        assert "pinned shop/web-5d5b-" in done.stdout
        again = run("--yes", "1")
        assert again.returncode == 1
        assert "the plan has expired" in again.stderr
