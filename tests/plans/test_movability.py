"""Who can be moved by whom, case by case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.plan import Executor
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.plans.movability.annotations import cost, duration
from stowplan.plans.movability.causes import Cause
from stowplan.plans.movability.movable import Movability, immovable
from stowplan.plans.movability.workloads import may_migrate
from stowplan.settings.freeze import make_movability
from tests.support.clusters import node, pod, snapshot

API: Executor = "eviction-api"
DESCHEDULER: Executor = "descheduler"
KOORDINATOR: Executor = "koordinator"
ALL: tuple[Executor, ...] = get_args(Executor)

EVICT = {"descheduler.alpha.kubernetes.io/evict": "false"}
PREFER_NOT = {"descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"}
EMPTY_DIR = [{"name": "cache", "emptyDir": {}}]
HOST_PATH = [{"name": "data", "hostPath": {"path": "/data"}}]
IN_MEMORY = [{"name": "cache", "emptyDir": {"medium": "Memory"}}]
CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
COST = "scheduling.koordinator.sh/eviction-cost"
DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def cause(executor: Executor, replicas: int = 3, waived: tuple[Cause, ...] = (), **spec: Any) -> str | None:
    """Return the cause that keeps one pod of a ReplicaSet of so many replicas where it is."""
    spec = {"owner": "ReplicaSet/web", "schedulerName": "koord-scheduler", **spec}
    cluster = cluster_of(replicas, spec)
    blocker = Movability(cluster, executor, waived=waived).blocker(cluster.pods[0])
    return blocker and blocker.cause.value


def cluster_of(replicas: int, *specs: dict[str, Any]) -> Snapshot:
    pods = [pod(f"web-{i}", "n1", **spec) for i, spec in enumerate(specs)]
    return snapshot(
        nodes=[node("n1")], pods=pods, replica_sets=[{"metadata": {"name": "web"}, "spec": {"replicas": replicas}}]
    )


# What is asked, and the cause for eviction-api, descheduler and koordinator.
CASES: dict[str, tuple[dict[str, Any], str | None, str | None, str | None]] = {
    "an ordinary pod": ({}, None, None, None),
    "a mirror pod": ({"annotations": {"kubernetes.io/config.mirror": "x"}}, "tied", "tied", "tied"),
    "a static pod": ({"annotations": {"kubernetes.io/config.source": "file"}}, "tied", "tied", "tied"),
    "a pod from the API": ({"annotations": {"kubernetes.io/config.source": "api"}}, None, None, None),
    "a static pod that says evict": (
        {"annotations": {"kubernetes.io/config.mirror": "x", **EVICT}},
        "tied",
        "tied",
        "tied",
    ),
    "a DaemonSet pod": ({"owner": "DaemonSet/agent"}, "tied", "tied", "tied"),
    "a terminating pod": ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "tied", "tied", "tied"),
    "a bare pod": ({"owner": None}, "bare", "bare", "bare"),
    "a bare pod that says evict": ({"owner": None, "annotations": EVICT}, "bare", "bare", "bare"),
    "emptyDir": ({"volumes": EMPTY_DIR}, *["local-storage"] * 3),
    "hostPath": ({"volumes": HOST_PATH}, *["local-storage"] * 3),
    "emptyDir, says evict": ({"volumes": EMPTY_DIR, "annotations": EVICT}, None, None, None),
    "emptyDir in memory": ({"volumes": IN_MEMORY}, None, "local-storage", "local-storage"),
    "emptyDir, safe to evict": (
        {"volumes": EMPTY_DIR, "annotations": {SAFE: "true"}},
        None,
        "local-storage",
        "local-storage",
    ),
    "a claim": ({"volumes": CLAIM}, None, None, None),
    "priority just below critical": ({"priority": 1_999_999_999}, None, None, None),
    "critical": ({"priority": 2_000_000_000}, None, "critical", "critical"),
    "critical, says evict": ({"priority": 2_000_001_000, "annotations": EVICT}, None, None, None),
    "bound, not running": ({"phase": "Pending"}, None, "not-running", None),
    "not ready": ({"conditions": [{"type": "Ready", "status": "False"}]}, *["not-ready"] * 3),
    "ready": ({"conditions": [{"type": "Ready", "status": "True"}]}, None, None, None),
    "another scheduler": ({"schedulerName": "default-scheduler"}, None, None, "scheduler"),
    "a Job": ({"owner": "Job/import"}, *["jobs"] * 3),
    "a controller of unknown behavior": ({"owner": "InstanceManager/im"}, *["owner"] * 3),
    "a missing ReplicaSet": ({"owner": "ReplicaSet/gone"}, None, None, "replicas"),
    "prefer no eviction": ({"annotations": PREFER_NOT}, *["prefer-no-eviction"] * 3),
    "prefer no eviction, says evict": ({"annotations": {**PREFER_NOT, **EVICT}}, None, None, None),
    "safe-to-evict false": ({"annotations": {SAFE: "false"}}, *["safe-to-evict"] * 3),
    "safe-to-evict on completion": ({"annotations": {SAFE: "on-completion"}}, *["safe-to-evict"] * 3),
    "safe-to-evict true": ({"annotations": {SAFE: "true"}}, None, None, None),
    "safe-to-evict in words unknown": ({"annotations": {SAFE: "False"}}, None, None, None),
    "unsafe to evict, says evict": ({"annotations": {SAFE: "false", **EVICT}}, *["safe-to-evict"] * 3),
    "do not disrupt": ({"annotations": {DISRUPT: "true"}}, *["do-not-disrupt"] * 3),
    "disrupt": ({"annotations": {DISRUPT: "false"}}, None, None, None),
    "never evict": ({"annotations": {COST: "2147483647"}}, *["eviction-cost"] * 3),
    "never evict, says evict": ({"annotations": {COST: "2147483647", **EVICT}}, "eviction-cost", "eviction-cost", None),
    "almost never evict": ({"annotations": {COST: "2147483646"}}, None, None, None),
    "a cost that is none": ({"annotations": {COST: "+2147483647"}}, None, None, None),
}


@pytest.mark.parametrize("case", CASES)
def test_every_cause(case: str) -> None:
    spec, *expected = CASES[case]
    assert [cause(executor, **spec) for executor in ALL] == expected


def test_pods_that_are_not_ready_stay_unless_asked_for() -> None:
    """From a node that is drained they go in any case."""
    crashing = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
    cluster = cluster_of(3, {"owner": "ReplicaSet/web", "conditions": [crashing]}, {"owner": "ReplicaSet/web"})
    assert immovable(cluster, API) == {"default/web-0": "not ready: ContainersNotReady"}
    assert immovable(cluster, API, waived=[Cause.NOT_READY]) == {}
    for drained, stay in (("n1", False), ("n2", True)):
        given = Settings(objective=PRESETS["balance"], executor=API, drain=(drained,))
        blocker = make_movability(cluster, given).blocker(cluster.pods[0])
        assert (blocker is not None) == stay


@pytest.mark.parametrize(
    ("replicas", "refused"),
    [(0, True), (1, True), (2, False), (3, False), (4, False), (10, False), (11, False), (19, False), (100, False)],
)
def test_koordinator_refuses_workloads_of_one(replicas: int, refused: bool) -> None:
    assert (cause(KOORDINATOR, replicas) == "replicas") == refused
    assert cause(DESCHEDULER, replicas) is None
    assert cause(KOORDINATOR, replicas, annotations=EVICT) is None


def test_how_many_koordinator_migrates_at_once() -> None:
    # GetMaxMigrating of koordinator: 1 below 4 replicas, 2 up to 10, then 10 % rounded down, and never above replicas.
    assert [may_migrate(n) for n in (0, 1, 3, 4, 10, 11, 19, 20, 99, 100)] == [0, 1, 1, 2, 2, 1, 1, 2, 9, 10]


def test_replicas_are_counted_where_no_workload_was_dumped() -> None:
    specs = [{"owner": "ReplicaSet/web", "schedulerName": "koord-scheduler"}] * 2
    pods = [pod(f"web-{i}", "n1", **dict(spec)) for i, spec in enumerate(specs)]
    assert not immovable(snapshot(nodes=[node("n1")], pods=pods), KOORDINATOR)
    assert immovable(snapshot(nodes=[node("n1")], pods=pods[:1]), KOORDINATOR) == {
        "default/web-0": "too few replicas: 1"
    }


@pytest.mark.parametrize(
    ("said", "age", "protected"),
    [
        ("5m", 299, True),
        ("5m", 300, False),
        ("1h30m", 5399, True),
        ("1h30m", 5400, False),
        ("1.5h", 5399, True),
        ("0s", 0, False),
        ("-5m", 1, False),
        ("5", 1, False),
        ("5 m", 1, False),
        ("True", 1, False),
    ],
)
def test_a_protection_runs_out(said: str, age: int, protected: bool) -> None:
    now = datetime(2026, 6, 1, 12, tzinfo=UTC)
    manifest = pod("web-0", "n1", owner="ReplicaSet/web", annotations={DISRUPT: said})
    manifest["status"]["startTime"] = (now - timedelta(seconds=age)).isoformat()
    cluster = snapshot(nodes=[node("n1")], pods=[manifest])
    assert bool(immovable(cluster, API, now=now)) == protected


def test_without_a_clock_the_latest_moment_of_the_snapshot_counts() -> None:
    old = pod("old", "n1", owner="ReplicaSet/web", annotations={DISRUPT: "1h"})
    old["status"]["startTime"] = "2026-06-01T12:00:00Z"
    young = pod("young", "n1", owner="ReplicaSet/web")
    young["metadata"]["creationTimestamp"] = "2026-06-01T12:59:59Z"
    assert set(immovable(snapshot(nodes=[node("n1")], pods=[old, young]), API)) == {"default/old"}
    young["metadata"]["creationTimestamp"] = "2026-06-01T15:00:01+02:00"
    assert not immovable(snapshot(nodes=[node("n1")], pods=[old, young]), API)


def test_one_that_has_not_started_is_protected() -> None:
    assert cause(API, annotations={DISRUPT: "1ns"}) == "do-not-disrupt"


def test_causes_can_be_waived_one_by_one() -> None:
    spec = {"volumes": EMPTY_DIR, "annotations": {SAFE: "false", DISRUPT: "true"}}
    assert cause(DESCHEDULER, **spec) == "local-storage"
    assert cause(DESCHEDULER, waived=(Cause.LOCAL_STORAGE,), **spec) == "safe-to-evict"
    assert cause(DESCHEDULER, waived=(Cause.LOCAL_STORAGE, Cause.SAFE_TO_EVICT), **spec) == "do-not-disrupt"
    waived = (Cause.LOCAL_STORAGE, Cause.SAFE_TO_EVICT, Cause.DO_NOT_DISRUPT)
    assert cause(DESCHEDULER, waived=waived, **spec) is None


def guarded(pods: int, ready: int, budgets: int = 1, phase: str = "Running", **spec: Any) -> dict[str, str]:
    """Return who cannot be moved of a ReplicaSet under budgets; the first pods are ready, and the others may go."""
    manifests = []
    for i in range(pods):
        conditions = [{"type": "Ready", "status": "True" if i < ready else "False"}]
        about = {"owner": "ReplicaSet/web", "labels": {"app": "web"}, "phase": phase, "conditions": conditions}
        manifests.append(pod(f"web-{i}", "n1", **about))
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    cluster = snapshot(
        nodes=[node("n1")],
        pods=manifests,
        replica_sets=[{"metadata": {"name": "web"}, "spec": {"replicas": pods}}],
        pod_disruption_budgets=[{"metadata": {"name": f"b{i}"}, "spec": spec} for i in range(budgets)],
    )
    return dict(immovable(cluster, API, waived=[Cause.NOT_READY]))


NEVER = "PodDisruptionBudget never allows an eviction: b0, which wants"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"maxUnavailable": 1}, ""),
        ({"maxUnavailable": 0}, f"{NEVER} 3 of 3 pods"),
        ({"maxUnavailable": "0%"}, f"{NEVER} 3 of 3 pods"),
        ({"maxUnavailable": "1%"}, ""),
        ({"minAvailable": 2}, ""),
        ({"minAvailable": 3}, f"{NEVER} 3 of 3 pods"),
        ({"minAvailable": "67%"}, f"{NEVER} 3 of 3 pods"),
        ({"minAvailable": "66%"}, ""),
        ({"selector": None, "maxUnavailable": 0}, ""),
        ({"selector": {"matchLabels": {"app": "db"}}, "maxUnavailable": 0}, ""),
        ({"selector": {}, "maxUnavailable": 0}, f"{NEVER} 3 of 3 pods"),
    ],
)
def test_budgets_that_never_allow_it(spec: dict[str, Any], reason: str) -> None:
    assert guarded(3, 3, **spec) == ({f"default/web-{i}": reason for i in range(3)} if reason else {})


def test_a_budget_that_allows_nothing_today_is_a_matter_of_waves() -> None:
    assert not guarded(3, 2, maxUnavailable=1)


def test_unhealthy_pods_may_leave_where_a_budget_says_so() -> None:
    assert set(guarded(3, 2, maxUnavailable=0)) == {"default/web-0", "default/web-1", "default/web-2"}
    always = guarded(3, 2, maxUnavailable=0, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert set(always) == {"default/web-0", "default/web-1"}


def test_pods_that_are_not_running_leave_whatever_budgets_say() -> None:
    assert not guarded(3, 0, maxUnavailable=0, phase="Pending")
    assert not guarded(3, 0, budgets=2, maxUnavailable=1, phase="Pending")


def test_two_budgets_are_one_too_many() -> None:
    assert guarded(2, 2, budgets=2, maxUnavailable=1) == {
        f"default/web-{i}": "several PodDisruptionBudgets: b0, b1" for i in range(2)
    }


def test_a_budget_that_cannot_be_counted_allows_nothing() -> None:
    manifest = pod("import", "n1", owner="Job/import", labels={"app": "web"})
    manifest["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    budget = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}}
    cluster = snapshot(nodes=[node("n1")], pods=[manifest], pod_disruption_budgets=[budget])
    assert immovable(cluster, API) == {
        "default/import": "PodDisruptionBudget never allows an eviction: b, Job import has no scale"
    }


def test_pods_that_wait_or_are_over_are_left_out() -> None:
    cluster = snapshot(nodes=[node("n1")], pods=[pod("waits"), pod("over", "n1", phase="Succeeded"), pod("bare", "n1")])
    assert set(immovable(cluster, API)) == {"default/bare"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("7", 7), ("-7", -7), ("-007", -7), ("+7", 0), ("07", 0), ("7.5", 0), ("", 0), ("2147483648", 0)],
)
def test_costs_are_read_as_upstream_reads_them(text: str, value: int) -> None:
    assert cost({COST: text}, COST) == value
    assert cost({}, COST) is None


def test_durations() -> None:
    assert duration("1h2m3.5s") == timedelta(hours=1, minutes=2, seconds=3.5)
    assert duration("100ms") == timedelta(milliseconds=100)
    assert duration(".5h") == timedelta(minutes=30)
    assert duration("9999999999999h") == timedelta.max
    assert [duration(text) for text in ("", "h", "1d", "1h ", "0", "0m")] == [None] * 6
