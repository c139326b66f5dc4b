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
from stowplan.instances.completeness import ASKED
from stowplan.instances.load import load
from stowplan.models.snapshot import Snapshot
from tests.support.clusters import node, pod

Manifest = dict[str, Any]
READY = [{"type": "Ready", "status": "True"}]


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


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
    made.append(("policy/v1", "PodDisruptionBudget", {"metadata": {"name": "web", "namespace": "default"}}))
    bound = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"volumeName": "pv"}}
    made.append(("v1", "PersistentVolumeClaim", bound))
    made.append(("v1", "PersistentVolume", {"metadata": {"name": "pv"}, "spec": {"nfs": {}}}))
    for _, kind, content in made:
        if kind == "Node":
            content["status"]["conditions"] = READY
    return [{"apiVersion": version, "kind": kind, **content} for version, kind, content in made]


def dumped(found: list[Manifest], **meta: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": meta, "items": found})


def read(found: list[Manifest], **meta: Any) -> Snapshot:
    return load(io.BytesIO(dumped(found, **meta).encode()))


def without(test: Callable[[Manifest], bool]) -> list[Manifest]:
    return [item for item in items() if not test(item)]


def test_a_whole_dump_has_no_gaps() -> None:
    snapshot = read(items(), resourceVersion="")
    assert (snapshot.gaps, snapshot.notes) == ((), ())


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
    assert snapshot.gaps[0].startswith(said)
    assert snapshot.notes[0] == snapshot.gaps[0]
    assert not snapshot.fatal_gaps


def test_what_was_asked_is_not_missed() -> None:
    found = without(lambda item: item["kind"] == "PodDisruptionBudget")
    assert read(found, annotations={ASKED: "nodes,poddisruptionbudgets.policy"}).gaps == ()
    assert len(read(found, annotations={ASKED: "nodes"}).gaps) == 1


def test_a_cluster_written_by_hand_is_taken_as_whole() -> None:
    assert load(io.BytesIO(dumped([{"apiVersion": "v1", "kind": "Node", **node("n1")}]).encode())).gaps == ()


FATAL: dict[str, tuple[Callable[[], str], str]] = {
    "one namespace": (
        lambda: dumped(without(lambda item: item["metadata"].get("namespace") == "kube-system")),
        "2 nodes have neither a DaemonSet pod nor a static pod; all pods are in namespace default: pods are missing",
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
    assert bool(gaps) == bool(kinds or namespaces or fields)
    for kind in kinds - {"PersistentVolume", "PersistentVolumeClaim"}:
        assert any(kind in gap for gap in gaps)
    for _, field in fields:
        assert any(f"status.{field}" in gap for gap in gaps)
