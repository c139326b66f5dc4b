"""Budgets come to what the disruption controller and the Eviction API make of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budget, Budgets, EvictionResponse
from tests.support.clusters import Manifest, labels, node, pod, snapshot
from tests.support.restless import READY

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def web(
    i: int, *, ready: bool = True, owner: str | None = "ReplicaSet/web", phase: str = "Running", **more: Any
) -> Manifest:
    made = pod(f"web-{i}", "n0", labels={"app": "web"}, phase=phase, **({"owner": owner} if owner else {}), **more)
    for reference in made["metadata"].get("ownerReferences", []):
        reference |= {"apiVersion": "apps/v1", "uid": "uid-web"}
    made["status"]["conditions"] = READY if ready else []
    return made


def budget(status: Manifest | None = None, generation: int = 1, **spec: Any) -> Manifest:
    return {
        "metadata": {"name": "pdb", "namespace": "default", "generation": generation},
        "spec": {"selector": labels(app="web"), **spec},
        **({"status": {"observedGeneration": 1, **status}} if status is not None else {}),
    }


def cluster(pods: list[Manifest], *budgets: Manifest, replicas: int | None = None, **more: Any) -> Snapshot:
    owner = {
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
        "spec": {"replicas": replicas if replicas is not None else len(pods)},
    }
    objects: dict[str, Any] = {"replica_sets": [owner], **more}
    return snapshot(nodes=[node("n0")], pods=pods, pod_disruption_budgets=list(budgets), **objects)


def only(found: Snapshot) -> Budget:
    return Budgets(found, NOW).all[0]


@pytest.mark.parametrize(
    ("spec", "pods", "desired", "allowed"),
    [
        ({"minAvailable": "50%"}, 7, 4, 3),  # 3.5 rounds up
        ({"maxUnavailable": "30%"}, 7, 4, 3),  # 2.1 rounds up
        ({"maxUnavailable": "100%"}, 3, 0, 3),
        ({"maxUnavailable": 1}, 3, 2, 1),
        ({"maxUnavailable": 9}, 3, 0, 3),
        ({"maxUnavailable": 0}, 3, 3, 0),
        ({"minAvailable": 2}, 3, 2, 1),
        ({"minAvailable": 5}, 3, 5, 0),
        ({"minAvailable": "0%"}, 3, 0, 3),
        ({}, 3, 0, 0),  # neither: nothing is expected, and nothing allowed
        ({"minAvailable": "two"}, 3, 0, 0),
    ],
)
def test_how_many_have_to_be_healthy(spec: Manifest, pods: int, desired: int, allowed: int) -> None:
    found = only(cluster([web(i) for i in range(pods)], budget(**spec)))
    assert (found.desired, found.allowed) == (desired, allowed)


def test_a_share_is_taken_of_what_controllers_want_and_not_of_the_pods_that_are_there() -> None:
    found = only(cluster([web(0), web(1)], budget(minAvailable="50%"), replicas=10))
    assert (found.expected, found.desired, found.healthy, found.allowed) == (10, 5, 2, 0)


def test_a_number_is_taken_of_the_pods_that_are_there() -> None:
    found = only(cluster([web(0), web(1)], budget(minAvailable=1), replicas=10))
    assert (found.expected, found.allowed) == (2, 1)


def test_replicas_of_a_deployment_count_once_for_all_its_replica_sets() -> None:
    chief = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-d", "controller": True}

    def owner(name: str, replicas: int) -> Manifest:
        meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": [chief]}
        return {"metadata": meta, "spec": {"replicas": replicas}}

    old, new = web(0, owner="ReplicaSet/old"), web(1, owner="ReplicaSet/new")
    old["metadata"]["ownerReferences"][0]["uid"], new["metadata"]["ownerReferences"][0]["uid"] = "uid-old", "uid-new"
    deployment = {"metadata": {"name": "web", "namespace": "default", "uid": "uid-d"}, "spec": {"replicas": 3}}
    found = cluster(
        [old, new],
        budget(maxUnavailable=1),
        replica_sets=[owner("old", 1), owner("new", 2)],
        deployments=[deployment],
    )
    assert only(found).expected == 3


@pytest.mark.parametrize(
    ("pods", "healthy"),
    [
        ([web(0), web(1, ready=False), web(2, deletionTimestamp="2026-01-01T00:00:00Z")], 1),
        ([web(0), web(1, phase="Pending"), web(2, phase="Failed", ready=False)], 2),
    ],
)
def test_who_is_healthy(pods: list[Manifest], healthy: int) -> None:
    assert only(cluster(pods, budget(minAvailable=1))).healthy == healthy


@pytest.mark.parametrize(("since", "healthy"), [("2026-01-01T11:58:01Z", 1), ("2026-01-01T11:57:59Z", 2)])
def test_an_eviction_under_way_counts_for_two_minutes(since: str, healthy: int) -> None:
    stated = budget({"disruptionsAllowed": 0, "disruptedPods": {"web-0": since}}, minAvailable=1)
    assert only(cluster([web(0), web(1)], stated)).healthy == healthy


def test_pods_without_a_controller_are_left_out_of_the_share() -> None:
    found = only(cluster([web(0), web(1, owner=None)], budget(maxUnavailable=1), replicas=1))
    assert (found.expected, found.healthy, found.allowed) == (1, 2, 2)


@pytest.mark.parametrize("kind", ["Job", "DaemonSet"])
def test_a_controller_without_a_scale_makes_the_budget_allow_nothing(kind: str) -> None:
    found = only(cluster([web(0), web(1, owner=f"{kind}/web")], budget({"disruptionsAllowed": 2}, maxUnavailable=1)))
    assert found.allowed == 0
    assert "has no scale" in found.failure


def test_a_controller_of_another_uid_is_another_controller() -> None:
    pods = [web(0)]
    pods[0]["metadata"]["ownerReferences"][0]["uid"] = "uid-before"
    assert "is not there" in only(cluster(pods, budget(maxUnavailable=1))).failure


def test_where_the_snapshot_lacks_the_controllers_the_status_is_taken() -> None:
    stated = budget({"disruptionsAllowed": 1, "expectedPods": 4, "desiredHealthy": 1}, maxUnavailable="75%")
    found = only(cluster([web(0), web(1)], stated, replica_sets=[]))
    assert (found.expected, found.desired, found.allowed) == (4, 1, 1)
    assert "taken from its status" in found.remark


def test_a_status_that_differs_is_remarked_upon() -> None:
    found = Budgets(cluster([web(0), web(1)], budget({"disruptionsAllowed": 2}, maxUnavailable=1)), NOW)
    assert found.remarks == ["PodDisruptionBudget default/pdb: allows 1 disruptions, its status says 2"]


@pytest.mark.parametrize(("selector", "covers"), [({}, True), (None, False), (labels(app="db"), False)])
def test_an_empty_selector_selects_all_and_a_missing_one_nothing(selector: Manifest | None, covers: bool) -> None:
    found = cluster([web(0)], budget(minAvailable=1) | {"spec": {"selector": selector, "minAvailable": 1}})
    assert bool(Budgets(found, NOW).covering(found.pods[0])) is covers


# -- the Eviction API -----------------------------------------------------------------------------------------


def verdict(pods: list[Manifest], *budgets: Manifest, of: int = 0) -> EvictionResponse:
    found = cluster(pods, *budgets)
    return Budgets(found, NOW).ledger().response(found.pods[of])


def test_no_budget_no_question() -> None:
    assert verdict([web(0)]) is EvictionResponse.FREE


def test_two_budgets_are_an_error_and_come_before_the_question_of_health() -> None:
    assert verdict([web(0, ready=False)], budget(minAvailable=1), budget(minAvailable=1)) is EvictionResponse.SEVERAL


@pytest.mark.parametrize("phase", ["Pending", "Failed", "Succeeded"])
def test_who_does_not_run_leaves_without_a_budget(phase: str) -> None:
    assert verdict([web(0, phase=phase)], budget(maxUnavailable=0), budget(maxUnavailable=0)) is EvictionResponse.FREE


@pytest.mark.parametrize(
    ("policy", "others_ready", "expected"),
    [
        (None, True, EvictionResponse.FREE),
        (None, False, EvictionResponse.EXHAUSTED),
        ("IfHealthyBudget", True, EvictionResponse.FREE),
        ("IfHealthyBudget", False, EvictionResponse.EXHAUSTED),
        ("AlwaysAllow", False, EvictionResponse.FREE),
    ],
)
def test_an_unhealthy_pod_leaves_if_the_others_suffice(
    policy: str | None, others_ready: bool, expected: EvictionResponse
) -> None:
    pods = [web(0, ready=False), web(1, ready=others_ready), web(2)]
    spec: Manifest = {"minAvailable": 2} | ({"unhealthyPodEvictionPolicy": policy} if policy else {})
    assert verdict(pods, budget(**spec)) is expected


def test_where_nothing_has_to_be_healthy_an_unhealthy_pod_is_counted() -> None:
    assert verdict([web(0, ready=False), web(1)], budget(minAvailable=0)) is EvictionResponse.COUNTED


def test_a_budget_is_used_up_and_restored() -> None:
    found = cluster([web(i) for i in range(3)], budget(maxUnavailable=1))
    ledger = Budgets(found, NOW).ledger()
    first, second, _ = found.pods
    assert ledger.evict(first) is EvictionResponse.COUNTED
    assert ledger.evict(second) is EvictionResponse.EXHAUSTED
    ledger.restore(first)
    assert ledger.evict(second) is EvictionResponse.COUNTED


def test_a_replacement_that_is_ready_raises_what_is_allowed() -> None:
    found = cluster([web(0, ready=False), web(1), web(2)], budget(maxUnavailable=1))
    ledger = Budgets(found, NOW).ledger()
    assert ledger.allowed(0) == 0
    assert ledger.evict(found.pods[0]) is EvictionResponse.FREE
    assert ledger.allowed(0) == 0
    ledger.restore(found.pods[0])
    assert ledger.allowed(0) == 1
