"""Incomplete dumps: fields that objects have lost are named."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from stowplan.instances.completeness import ASKED
from stowplan.models.snapshot import Snapshot
from tests.support.whole_dump import (
    ALL,
    Manifest,
    items,
    read,
)


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
