"""What becomes of a plan while it is carried out, and when somebody else interferes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stowplan.answers.assessment import Assessor
from stowplan.answers.solve import today
from stowplan.answers.verify_plan import verify_plan
from stowplan.models.kubernetes import Pod
from stowplan.models.limits import LimitsDocument
from stowplan.models.plan import Plan
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.portfolio import Options
from stowplan.planning.plan import planning_problem, sequence_placement
from stowplan.plans.drift import Drift, examine
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from stowplan.settings.terms import Terms
from tests.support.clusters import Manifest, labels, node, pod, snapshot
from tests.support.plans import move
from tests.support.plans import plan as hand_made
from tests.support.restless import READY, bound

PROFILE = default_profile(K36)
MADE = datetime(2026, 1, 1, 12, tzinfo=UTC)
SOON = MADE + timedelta(minutes=10)
BEFORE, SINCE = "2026-01-01T00:00:00Z", "2026-01-01T12:05:00Z"


def owned(name: str, at: str, kind: str = "ReplicaSet", **more: Any) -> Manifest:
    app = name.partition("-")[0]
    made = pod(name, at, labels={"app": app, "pod-template-hash": "h1"}, **more)
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": app, "uid": f"uid-{app}", "controller": True}
    made["metadata"] |= {"uid": f"uid-{name}", "ownerReferences": [owner], "creationTimestamp": BEFORE}
    made["status"]["conditions"] = READY
    return made


@pytest.fixture
def cluster() -> Snapshot:
    """Two full nodes whose pods change places, and one for parking; a StatefulSet's pod on the way."""
    return snapshot(
        nodes=[node("a", cpu="3"), node("b", cpu="3"), node("c", cpu="3")],
        pods=[
            owned("web-0", "a", cpu="2"),
            owned("web-1", "a", cpu="1"),
            owned("api-0", "b", cpu="2", priority=5),
            owned("db-0", "b", kind="StatefulSet", cpu="1"),
        ],
    )


@pytest.fixture
def plan(cluster: Snapshot) -> Plan:
    terms = Terms(limits=LimitsDocument(total=1), created_at=MADE)
    compiled = planning_problem(cluster, Settings(), terms)
    wanted = today(compiled) | {"default/web-0": "b", "default/api-0": "a", "default/db-0": "c"}
    return sequence_placement(Assessor(compiled), wanted, (), Settings(), terms, keep=True).plan


def found(plan: Plan, cluster: Snapshot, now: datetime = SOON) -> Drift:
    return examine(plan, cluster, PROFILE, now=now)


def edited(cluster: Snapshot, name: str, **metadata: Any) -> Snapshot:
    def edit(p: Pod) -> Pod:
        return replace(p, metadata=replace(p.metadata, **metadata)) if p.name == name else p

    return replace(cluster, pods=tuple(edit(p) for p in cluster.pods))


def moved(cluster: Snapshot, name: str, node: str, fresh: str, since: str = SINCE) -> Snapshot:
    """Return the cluster with a pod replaced on a node."""

    def move(p: Pod) -> Pod:
        if p.name != name:
            return p
        meta = replace(p.metadata, name=fresh, uid=f"uid-new-{fresh}", creation_timestamp=since)
        return bound(replace(p, metadata=meta), node)

    return replace(cluster, pods=tuple(move(p) for p in cluster.pods))


def without(cluster: Snapshot, name: str) -> Snapshot:
    return replace(cluster, pods=tuple(p for p in cluster.pods if p.name != name))


def test_the_plan_is_what_this_test_thinks_it_is(plan: Plan) -> None:
    assert [(m.pod.name, m.source, m.target, m.follows) for m in plan.moves] == [
        ("db-0", "b", "c", None),
        ("web-0", "a", "c", None),
        ("api-0", "b", "a", None),
        ("web-0", "c", "b", "m0002"),
    ]
    assert plan.moves[0].same_name


def test_nothing_done_and_everything_goes(plan: Plan, cluster: Snapshot) -> None:
    drift = found(plan, cluster)
    assert drift.holds
    assert (drift.done, drift.open) == ([], ["m0001", "m0002", "m0003", "m0004"])
    assert not drift.remarks


def test_move_by_move_it_is_done(plan: Plan, cluster: Snapshot) -> None:
    then = moved(cluster, "db-0", "c", "db-0")
    assert (found(plan, then).holds, found(plan, then).done) == (True, ["m0001"])
    then = moved(then, "web-0", "c", "web-x")
    assert (found(plan, then).holds, found(plan, then).done) == (True, ["m0001", "m0002"])
    then = moved(then, "api-0", "a", "api-x")
    assert (found(plan, then).holds, found(plan, then).done) == (True, ["m0001", "m0002", "m0003"])
    then = moved(then, "web-x", "b", "web-y")
    assert (found(plan, then).holds, found(plan, then).open) == (True, [])


def test_an_expired_plan_does_not_hold(plan: Plan, cluster: Snapshot) -> None:
    assert found(plan, cluster, MADE + timedelta(hours=3)).problems == ["expired at 2026-01-01T14:00:00Z"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda c: edited(c, "api-0", labels={"app": "api", "pod-template-hash": "h2"}),
            "is of template h2, planned with h1",
        ),
        (lambda c: edited(c, "api-0", owner_references=()), "is owned by no controller, not by ReplicaSet api"),
        (lambda c: edited(c, "api-0", deletion_timestamp=SINCE), "is terminating"),
        (lambda c: without(c, "api-0"), "is gone, and nothing has replaced it"),
        (lambda c: moved(c, "api-0", "c", "api-x"), "api-x, which may be its replacement, is on c"),
        (lambda c: moved(c, "db-0", "b", "db-0"), "db-0, which may be its replacement, is on b"),
        (lambda c: replace(c, nodes=c.nodes[:2]), "node c is gone"),
    ],
)
def test_what_drifted_is_named(plan: Plan, cluster: Snapshot, change: Any, problem: str) -> None:
    drift = found(plan, change(cluster))
    assert any(problem in line for line in drift.problems), drift.problems


def test_a_pod_of_the_owner_that_was_there_before_is_no_replacement(plan: Plan, cluster: Snapshot) -> None:
    old = moved(cluster, "api-0", "a", "api-old", since=BEFORE)
    assert any("nothing has replaced it" in line for line in found(plan, old).problems)


def test_somebody_who_takes_the_room_is_noticed(plan: Plan, cluster: Snapshot) -> None:
    crowd = snapshot(nodes=[node("c")], pods=[owned("crowd-0", "c", cpu="2")])
    drift = found(plan, replace(cluster, pods=(*cluster.pods, *crowd.pods)))
    assert any("NodeResourcesFit refuses it on c" in line for line in drift.problems)


def test_a_budget_that_came_since_is_noticed(plan: Plan, cluster: Snapshot) -> None:
    spec = {"selector": labels(app="api"), "minAvailable": 1}
    budget = {"metadata": {"name": "pdb", "namespace": "default"}, "spec": spec}
    later = replace(cluster, pod_disruption_budgets=snapshot(pod_disruption_budgets=[budget]).pod_disruption_budgets)
    drift = found(plan, later)
    assert any("m0003, default/api-0: the eviction is refused: 429" in line for line in drift.problems)


def test_a_cordon_is_remarked_upon_and_the_filters_refuse(plan: Plan, cluster: Snapshot) -> None:
    cordoned = snapshot(nodes=[node("a", cpu="3"), node("b", cpu="3"), node("c", cpu="3", unschedulable=True)])
    drift = found(plan, replace(cluster, nodes=cordoned.nodes))
    assert "node c is cordoned" in drift.remarks
    assert any("NodeUnschedulable" in line for line in drift.problems)


def test_false_claims_are_found(plan: Plan, cluster: Snapshot) -> None:
    assert verify_plan(cluster, plan, PROFILE, now=SOON).holds
    wave = plan.waves[1].model_copy(update={"tiers": tuple(value + 1 for value in plan.waves[1].tiers)})
    lying = plan.model_copy(update={"waves": (plan.waves[0], wave, *plan.waves[2:])})
    problems = verify_plan(cluster, lying, PROFILE, now=SOON).drift.problems
    assert any("after wave 2, tier imbalance" in problem for problem in problems)
    short = plan.model_copy(update={"tokens": plan.tokens[1:]})
    assert any("0 tokens for c" in p for p in verify_plan(cluster, short, PROFILE, now=SOON).drift.problems)
    crowded = plan.waves[0].model_copy(update={"moves": (*plan.waves[0].moves, *plan.waves[1].moves)})
    greedy = plan.model_copy(update={"waves": (crowded, *plan.waves[2:])})
    problems = verify_plan(cluster, greedy, PROFILE, now=SOON).drift.problems
    assert "wave 1 has more than 1 evictions in a wave" in problems


def test_planning_again_from_the_end_moves_nothing() -> None:
    from stowplan.planning.plan import make_plan

    pods = [owned(f"web-{i}", "a", cpu="500m") for i in range(4)]
    start = snapshot(nodes=[node("a"), node("b")], pods=pods)
    options = Options(time_limit=1, deterministic=True)
    planned = make_plan(start, Settings(), options, Terms(created_at=MADE))
    assert planned.plan.waves
    after = replace(start, pods=tuple(bound(p, planned.assignment[p.key]) for p in start.pods))
    assert not make_plan(after, Settings(), options, Terms(created_at=MADE)).plan.waves


def test_a_wave_that_fails_in_few_orders_only_does_not_hold() -> None:
    """One of twenty pods has to be gone before the other one comes, which no order that is tried shows."""
    leaving = [owned(f"web-{i}", "b", cpu="100m", memory="1Mi") for i in range(20)]
    found = snapshot(
        nodes=[node("a", cpu="4"), node("b", cpu="2"), node("c", cpu="4")],
        pods=[*leaving, owned("api-0", "a", cpu="100m", memory="1Mi")],
    )
    moves = [move(f"web-{i}", "b", "c", id=f"m{i:02}") for i in range(20)]
    refused = "m20, default/api-0: NodeResourcesFit refuses it on b in some order: Insufficient cpu"
    together = examine(hand_made([*moves, move("api-0", "a", "b", id="m20")]), found, PROFILE)
    assert any(refused in line for line in together.problems)
    apart = examine(hand_made(moves, [move("api-0", "a", "b", id="m20")]), found, PROFILE)
    assert not any(refused in line for line in apart.problems)


def test_a_pod_that_is_parked_twice_is_found_wherever_it_is(plan: Plan, cluster: Snapshot) -> None:
    *others, last = plan.waves
    onward = last.moves[0].model_copy(update={"id": "m0005", "source": "b", "target": "a", "follows": "m0004"})
    further = last.model_copy(update={"number": last.number + 1, "moves": [onward]})
    longer = plan.model_copy(update={"waves": [*others, last, further]})
    then = moved(moved(cluster, "db-0", "c", "db-0"), "api-0", "a", "api-x")
    for at, done in (("c", 3), ("b", 4), ("a", 5)):
        drift = found(longer, moved(then, "web-0", at, f"web-{at}"))
        assert not [problem for problem in drift.problems if "m0002" in problem or "m0004" in problem]
        assert drift.done == [move.id for move in longer.moves][:done]
