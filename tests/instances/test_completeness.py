"""Incomplete dumps: which kinds, namespaces and pods are missing is named."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan.instances.completeness import ASKED, RESOURCES, statement
from stowplan.instances.load import load
from tests.support.clusters import node, pod
from tests.support.whole_dump import (
    ALL,
    READY,
    Manifest,
    agents_alone,
    dumped,
    emptied,
    items,
    read,
    uid,
    without,
)

BY_HAND = (
    "the dump has pods of 2 namespaces, and no Namespace is in it: it is not known whether pods of others are missing; "
    "stowplan snapshot writes that all were read"
)
"""What is said of every dump that does not say that it has all pods."""


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


def test_pods_of_the_system_alone_may_be_all() -> None:
    assert read(agents_alone("monitoring"), annotations={ASKED: ALL}).fatal_gaps == ()
    assert read(agents_alone("kube-system")).fatal_gaps == ()


def test_a_workload_that_wants_pods_may_have_none() -> None:
    """A quota may refuse them: what it wants proves nothing, and what was asked for is whole."""
    assert not read(emptied(0)).fatal_gaps
    assert not read(emptied(2), annotations={ASKED: ALL}).fatal_gaps


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
