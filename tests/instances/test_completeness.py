"""Incomplete dumps: what is missing is named, and plans of them are refused unless told otherwise."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan.cli import run
from stowplan.instances.completeness import ASKED, RESOURCES, statement
from stowplan.instances.load import load
from stowplan.models.snapshot import Snapshot
from tests.support.clusters import node, pod

Manifest = dict[str, Any]
GIVEN = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists"} for key in ("not-ready", "unreachable")]
READY = [{"type": "Ready", "status": "True"}]


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


ALL = ",".join(RESOURCES)
"""What `ASKED` says if every kind was read."""

BY_HAND = (
    "the dump has pods of 2 namespaces, and no Namespace is in it: it is not known whether pods of others are missing; "
    "stowplan snapshot writes that all were read"
)
"""What is said of every dump that does not say that it has all pods."""


def items() -> list[Manifest]:
    """Return the objects of a small cluster that lacks nothing."""
    made: list[tuple[str, str, Manifest]] = []
    for i in (1, 2):
        made.append(("v1", "Node", node(f"n{i}", uid=uid(i))))
        agent = pod(f"agent-{i}", f"n{i}", cpu="100m", owner="DaemonSet/agent", namespace="kube-system")
        made.append(("v1", "Pod", agent))
        made.append(("storage.k8s.io/v1", "CSINode", {"metadata": {"name": f"n{i}"}, "spec": {"drivers": []}}))
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    made.append(("v1", "Pod", pod("web-1", "n1", owner="ReplicaSet/web")))
    made.append(("v1", "Pod", pod("db-0", "n1", owner="StatefulSet/db", volumes=claim)))
    made.append(("apps/v1", "ReplicaSet", {"metadata": {"name": "web", "namespace": "default"}}))
    made.append(("apps/v1", "StatefulSet", {"metadata": {"name": "db", "namespace": "default"}}))
    made.append(("v1", "Service", {"metadata": {"name": "kubernetes", "namespace": "default"}}))
    budget = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}
    made.append(
        ("policy/v1", "PodDisruptionBudget", {"metadata": {"name": "web", "namespace": "default"}, "spec": budget})
    )
    bound = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"volumeName": "pv"}}
    made.append(("v1", "PersistentVolumeClaim", bound))
    made.append(("v1", "PersistentVolume", {"metadata": {"name": "pv"}, "spec": {"nfs": {}}}))
    for _, kind, content in made:
        if kind == "Node":
            content["status"]["conditions"] = READY
        content["metadata"].setdefault("uid", uid(50))
        if kind == "Pod":
            content["metadata"]["uid"] = uid(len(content["metadata"]["name"]))
            content["metadata"]["ownerReferences"][0]["uid"] = uid(99)
            content["metadata"]["labels"] = {"app": content["metadata"]["name"].partition("-")[0]}
            content["spec"]["tolerations"] = copy.deepcopy(GIVEN)
    return [{"apiVersion": version, "kind": kind, **content} for version, kind, content in made]


def dumped(found: list[Manifest], **meta: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": meta, "items": found})


def read(found: list[Manifest], **meta: Any) -> Snapshot:
    return load(io.BytesIO(dumped(found, **meta).encode()))


def without(test: Callable[[Manifest], bool]) -> list[Manifest]:
    return [item for item in items() if not test(item)]


def test_a_whole_dump_has_no_gaps() -> None:
    snapshot = read(items(), resourceVersion="", annotations={ASKED: ALL})
    assert (snapshot.gaps, snapshot.notes) == ((), ())


def test_a_dump_by_hand_is_not_known_to_be_whole() -> None:
    kinds = (
        "ReplicationController, Deployment, Job, StorageClass, CSIDriver, CSIStorageCapacity, VolumeAttachment, "
        "PriorityClass"
    )
    assert read(items()).gaps == (
        "objects are of a DaemonSet, but none is in the dump, so it is not known which of its pods are missing",
        f"not in the dump, and not known to be none in the cluster: {kinds}",
        BY_HAND,
    )


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("PodDisruptionBudget", "no PodDisruptionBudget is in the dump, so it is not known which evictions are"),
        ("CSINode", "no CSINode is in the dump, so it is not known how many volumes a node attaches"),
        ("Service", "no Service is in the dump"),
        ("ReplicaSet", "pods are of a ReplicaSet, but none is in the dump"),
        ("StatefulSet", "pods are of a StatefulSet, but none is in the dump"),
        ("PersistentVolumeClaim", "1 claim of pods not in the dump"),
        ("PersistentVolume", "1 volume of claims not in the dump"),
    ],
)
def test_a_kind_that_is_missing_is_warned_of(kind: str, said: str) -> None:
    snapshot = read(without(lambda item: item["kind"] == kind))
    assert sum(gap.startswith(said) for gap in snapshot.gaps) == 1
    assert snapshot.notes[: len(snapshot.gaps)] == snapshot.gaps
    assert not snapshot.fatal_gaps


def test_workloads_without_pods_are_named() -> None:
    found = without(lambda item: item["metadata"]["name"] == "web-1")
    for item in found:
        if item["kind"] == "ReplicaSet":
            item["spec"] = {"replicas": 2}
    said = "1 workload with replicas and no pod in the dump, such as ReplicaSet default/web"
    assert said in read(found).gaps
    assert read(found, annotations={ASKED: ALL}).gaps == ()
    web = next(item for item in items() if item["metadata"]["name"] == "web-1")
    assert said not in read([*found, web]).gaps


def test_pods_that_are_to_be_created_are_not_of_the_dump() -> None:
    """They have neither uid nor tolerations, and their namespace is no second one of the dump."""
    new = {"apiVersion": "v1", "kind": "Pod", **pod("new-1", owner="Job/new", namespace="shop"), "status": {}}
    assert read([*items(), new]).gaps == read(items()).gaps
    assert read([*agents_alone("monitoring"), new]).fatal_gaps == read(agents_alone("monitoring")).fatal_gaps != ()


def test_what_was_asked_is_not_missed() -> None:
    found = without(lambda item: item["kind"] == "PodDisruptionBudget")
    assert read(found, annotations={ASKED: ALL}).gaps == ()
    budgets = "poddisruptionbudgets.policy"
    asked = ",".join(resource for resource in RESOURCES if resource != budgets)
    assert len(read(found, annotations={ASKED: asked}).gaps) == 1


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Pod", "the dump says that it holds 4 Pod objects, and 1 of them is missing"),
        ("Service", "the dump says that it holds 1 Service object, and 1 of them is missing"),
    ],
)
def test_what_is_lost_from_a_dump_that_says_what_it_has(kind: str, said: str) -> None:
    counts = {item["kind"]: sum(other["kind"] == item["kind"] for other in items()) for item in items()}
    stated = statement((resource, counts.get(name, 0)) for resource, (_, name) in RESOURCES.items())
    assert read(items(), annotations={ASKED: stated}).gaps == ()
    found = items()
    found.remove(next(item for item in found if item["kind"] == kind))
    snapshot = read(found, annotations={ASKED: stated})
    assert (snapshot.gaps, snapshot.fatal_gaps) == ((said,), (said,))


def test_a_resource_version_that_is_none() -> None:
    whole = {ASKED: ALL}
    assert read(items(), annotations=whole, resourceVersion="81234").gaps == ()
    assert "resourceVersion 'merged'" in read(items(), annotations=whole, resourceVersion="merged").gaps[0]


def namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": uid(77)}}


def test_namespaces_without_pods_are_named() -> None:
    found = [*items(), *(namespace(name) for name in ("default", "kube-system", "kube-public", "shop"))]
    gaps = read(found).gaps
    assert "1 namespace has no pod in the dump (shop): none, or left out" in gaps
    assert gaps[-1].startswith("the dump has pods of 2 namespaces: it is not known whether pods of others are missing")
    assert read(found, annotations={ASKED: ALL}).gaps == ()


VOLUME = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "lost"}}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {**VOLUME, "spec": {"nfs": {}, "claimRef": {"namespace": "shop", "name": "db"}}},
            "1 claim of volumes not in the dump (shop/db), so pods may be missing",
        ),
        (
            {**VOLUME, "spec": {"nfs": {}, "storageClassName": "fast"}},
            "1 storage class not in the dump (fast), so it is not known where claims are made",
        ),
        (
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": "api",
                    "namespace": "default",
                    "ownerReferences": [{"kind": "Deployment", "name": "api", "controller": True}],
                },
            },
            "ReplicaSets are of a Deployment, but none is in the dump, so it is not known what is rolled out",
        ),
        (
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": "tidy",
                    "namespace": "default",
                    "ownerReferences": [{"kind": "CronJob", "name": "tidy", "controller": True}],
                },
            },
            "objects are of a DaemonSet and CronJob, but none is in the dump, so it is not known which of its pods",
        ),
    ],
)
def test_what_others_name_is_missed(more: Manifest, said: str) -> None:
    assert any(gap.startswith(said) for gap in read([*items(), more]).gaps)
    assert not any(gap.startswith(said) for gap in read(items()).gaps)


def changed(kind: str, name: str, change: Callable[[Manifest], object]) -> Snapshot:
    found = copy.deepcopy(items())
    change(next(item for item in found if item["kind"] == kind and item["metadata"]["name"].startswith(name)))
    return read(found, annotations={ASKED: ALL})


MOUNTING = {"name": "main", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}


@pytest.mark.parametrize(
    ("kind", "name", "change", "said", "fatal"),
    [
        ("Node", "n1", lambda item: item["status"].pop("allocatable"), "1 node without status.allocatable", True),
        ("Node", "n1", lambda item: item["status"].pop("conditions"), "1 node without status.conditions", False),
        ("Node", "n1", lambda item: item["metadata"].pop("labels"), "1 node without metadata.labels", False),
        ("Node", "n1", lambda item: item["metadata"].pop("uid"), "1 node without metadata.uid", False),
        ("Pod", "web", lambda item: item["status"].pop("phase"), "1 pod without status.phase", True),
        ("Pod", "web", lambda item: item["metadata"].pop("uid"), "1 pod without metadata.uid", False),
        (
            "Pod",
            "web",
            lambda item: (item["spec"].pop("nodeName"), item["status"].update(hostIP="10.0.0.1")),
            "1 pod without spec.nodeName that run",
            True,
        ),
        ("Pod", "web", lambda item: item["spec"].pop("containers"), "1 pod without spec.containers, so", True),
        (
            "Pod",
            "web",
            lambda item: (item["spec"]["containers"][0].pop("resources"), item["status"].update(qosClass="Burstable")),
            "1 pod without spec.containers[].resources",
            True,
        ),
        (
            "Pod",
            "web",
            lambda item: item["spec"].update(containers=[MOUNTING]),
            "1 pod without spec.volumes that their containers mount",
            True,
        ),
        (
            "Pod",
            "web",
            lambda item: item["spec"].update(priorityClassName="high"),
            "1 pod without spec.priority",
            False,
        ),
        (
            "Pod",
            "web",
            lambda item: (item["metadata"].pop("ownerReferences"), item["metadata"].update(generateName="web-")),
            "1 pod without metadata.ownerReferences",
            False,
        ),
        (
            "ReplicaSet",
            "web",
            lambda item: item.update(spec={"selector": {"matchLabels": {"app": "api"}}}),
            "1 pod whose metadata.labels their controller does not select",
            False,
        ),
    ],
)
def test_a_field_that_is_missing_is_named(
    kind: str, name: str, change: Callable[[Manifest], object], said: str, fatal: bool
) -> None:
    snapshot = changed(kind, name, change)
    assert len(snapshot.gaps) == 1
    assert snapshot.gaps[0].startswith(said)
    assert bool(snapshot.fatal_gaps) is fatal


def test_a_pod_that_lost_its_node_and_its_phase_is_named_for_both() -> None:
    def lose_both(item: Manifest) -> None:
        del item["spec"]["nodeName"]
        item["status"] = {"startTime": "2024-05-01T10:00:00Z"}

    without_phase, without_node = sorted(changed("Pod", "web", lose_both).fatal_gaps, reverse=True)
    assert without_phase.startswith("1 pod without status.phase")
    assert without_node.startswith("1 pod without spec.nodeName")


@pytest.mark.parametrize("field", ["selector", "maxUnavailable"])
def test_a_budget_that_lost_a_field_is_named(field: str) -> None:
    snapshot = changed("PodDisruptionBudget", "web", lambda item: item["spec"].pop(field))
    said = "PodDisruptionBudget default/web without a selector or a limit, so it is not known what it forbids"
    assert (snapshot.gaps, snapshot.fatal_gaps) == ((said,), ())


def test_a_priority_class_that_a_pod_names_is_missed() -> None:
    other = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 1}
    found = [*copy.deepcopy(items()), other]
    for item in found:
        if item["kind"] == "Pod":
            item["spec"] |= {"priority": 7, "priorityClassName": "high"}
    said = "1 priority class of pods not in the dump (high), so it is not known who preempts"
    assert read(found, annotations={ASKED: ALL}).gaps == (said,)


def test_tolerations_that_all_others_have_are_missed() -> None:
    found = copy.deepcopy(items())
    pods = [item for item in found if item["kind"] == "Pod"]
    pods[0]["spec"].pop("tolerations")
    assert read(found, annotations={ASKED: ALL}).gaps == (
        "1 pod without spec.tolerations, so it is not known on which nodes they can run",
    )


def test_priorities_that_others_have_are_missed() -> None:
    found = copy.deepcopy(items())
    pods = [item for item in found if item["kind"] == "Pod"]
    for item in pods[1:]:
        item["spec"]["priority"] = 0
    assert read(found, annotations={ASKED: ALL}).gaps == (
        "1 pod without spec.priority although others have one, so it is not known who may preempt whom",
    )


@pytest.mark.parametrize("registered", [True, False])
def test_nodes_that_a_kubelet_reports_need_no_uid_to_be_real(registered: bool) -> None:
    real = node("n1")
    real["status"]["nodeInfo"] = {"kubeletVersion": "v1.36.0"}
    if registered:
        real["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    else:
        real["status"]["conditions"] = READY
    snapshot = load(io.BytesIO(dumped([{"apiVersion": "v1", "kind": "Node", **real}]).encode()))
    assert snapshot.fatal_gaps[0].startswith("1 node has neither a DaemonSet pod nor a static pod: pods are missing")


def test_a_cluster_written_by_hand_is_taken_as_whole() -> None:
    assert load(io.BytesIO(dumped([{"apiVersion": "v1", "kind": "Node", **node("n1")}]).encode())).gaps == ()


def agents_alone(space: str) -> list[Manifest]:
    """Return nodes, and one agent on each as the only pods, all in one namespace."""
    found = without(lambda item: item["metadata"].get("namespace", "kube-system") != "kube-system")
    for item in found:
        if item["kind"] == "Pod":
            item["metadata"]["namespace"] = space
    return found


def test_pods_of_the_system_alone_may_be_all() -> None:
    assert read(agents_alone("monitoring"), annotations={ASKED: ALL}).fatal_gaps == ()
    assert read(agents_alone("kube-system")).fatal_gaps == ()


def emptied(reported: int) -> list[Manifest]:
    """Return the pods of two other namespaces, and a ReplicaSet that has pods as its controller reports."""
    found = without(lambda item: item["kind"] == "Pod" and item["metadata"].get("namespace") == "default")
    for item in found:
        if item["kind"] == "ReplicaSet":
            item |= {"spec": {"replicas": 2}, "status": {"replicas": reported}}
    return [*found, *(item for item in agents_alone("monitoring") if item["kind"] == "Pod")]


def test_a_workload_that_wants_pods_may_have_none() -> None:
    """A quota may refuse them: what it wants proves nothing, and what was asked for is whole."""
    assert not read(emptied(0)).fatal_gaps
    assert not read(emptied(2), annotations={ASKED: ALL}).fatal_gaps


FATAL: dict[str, tuple[Callable[[], str], str]] = {
    "one namespace": (
        lambda: dumped(without(lambda item: item["metadata"].get("namespace") == "kube-system")),
        "2 nodes have neither a DaemonSet pod nor a static pod; all pods are in namespace default: pods are missing",
    ),
    "one namespace with an agent on each node": (
        lambda: dumped(agents_alone("monitoring")),
        "all pods are in namespace monitoring: those of other namespaces are missing",
    ),
    "a namespace with workloads": (
        lambda: dumped(emptied(2)),
        "workloads of 1 namespace have pods, and none of them is in the dump (default): pods are missing",
    ),
    "remaining items": (lambda: dumped(items(), remainingItemCount=7), "not read to its end: 7 objects are missing"),
    "continue": (lambda: dumped(items(), **{"continue": "x"}), "not read to its end: objects are missing"),
    "allocatable": (lambda: dumped(stripped("Node", "allocatable")), "2 nodes without status.allocatable"),
    "phase": (lambda: dumped(stripped("Pod", "phase")), "4 pods without status.phase"),
}


def stripped(kind: str, field: str) -> list[Manifest]:
    found = copy.deepcopy(items())
    for item in found:
        if item["kind"] == kind:
            item["status"].pop(field, None)
    return found


@pytest.mark.parametrize("case", FATAL)
@pytest.mark.parametrize("command", [["plan"], ["drain", "n1", "--from"], ["fit", "--pod", "default/web-1"]])
def test_plans_of_such_dumps_are_refused(
    case: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, said = FATAL[case]
    path = tmp_path / "dump.json"
    path.write_text(make())
    assert run([*command, str(path)]) == 1
    printed = capsys.readouterr()
    assert "the dump is incomplete: " in printed.err
    assert said in printed.err
    assert "--partial plans nevertheless" in printed.err
    assert not printed.out
    assert load(path).notes[0] in printed.err


@pytest.mark.parametrize("command", [["emit", "--to", "kubectl"], ["apply"]])
def test_nobody_carries_out_a_partial_plan(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, plan = tmp_path / "dump.json", tmp_path / "plan.json"
    path.write_text(FATAL["one namespace"][0]())
    assert run(["plan", str(path), "--partial", "-q", "-t", "1", "--deterministic", "-o", "json"]) == 0
    plan.write_text(capsys.readouterr().out)
    written = json.loads(plan.read_text())
    assert list(written)[:4] == ["apiVersion", "kind", "gaps", "partial"]
    assert (written["partial"], written["gaps"][0][:21]) == (True, "2 nodes have neither ")
    assert run([*command, str(plan)]) == 1
    told = capsys.readouterr().err
    assert "was made from an incomplete dump: 2 nodes have neither a DaemonSet pod" in told
    assert "--partial goes on nevertheless" in told
    if command[0] == "emit":
        assert run([*command, str(plan), "--partial"]) == 0
        assert "the dump of the plan is incomplete: 2 nodes have neither" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["compare"], ["solve"], ["plan", "--partial"], ["drain", "n1", "--partial", "--from"]]
)
def test_the_first_line_says_what_is_missing(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "dump.json"
    path.write_text(dumped(without(lambda item: item["kind"] == "PodDisruptionBudget")))
    assert run([*command, str(path), "-q", "-t", "1", "--deterministic"]) in (0, 3)
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(
        "Incomplete dump: no PodDisruptionBudget is in the dump, so it is not known which evictions"
    )


def test_partial_plans_nevertheless_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.json"
    path.write_text(FATAL["one namespace"][0]())
    assert run(["plan", str(path), "--partial", "-q", "-t", "1", "--deterministic", "-o", "json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("stowplan: warning: 2 nodes have neither a DaemonSet pod nor a static pod")
    assert json.loads(printed.out)["notes"][0].startswith("2 nodes have neither")


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.sets(st.sampled_from(sorted({item["kind"] for item in items()} - {"Node", "Pod"}))),
    namespaces=st.sets(st.sampled_from(["kube-system"])),
    fields=st.sets(st.sampled_from([("Node", "allocatable"), ("Node", "conditions"), ("Pod", "phase")])),
)
def test_whatever_is_taken_away_is_named(kinds: set[str], namespaces: set[str], fields: set[tuple[str, str]]) -> None:
    found = [
        item for item in items() if item["kind"] not in kinds and item["metadata"].get("namespace") not in namespaces
    ]
    for item in found:
        for kind, field in fields:
            if item["kind"] == kind:
                item["status"].pop(field, None)
    gaps = read(found).gaps
    for kind in kinds:
        assert any(kind in gap or ("claim" in gap and "Claim" in kind) for gap in gaps)
    for _ in namespaces:
        assert any("neither a DaemonSet pod nor a static pod; all pods are in namespace default" in gap for gap in gaps)
    assert bool(set(gaps) - set(read(items()).gaps)) == bool(kinds or namespaces or fields)
    for _, field in fields:
        assert any(f"status.{field}" in gap for gap in gaps)
