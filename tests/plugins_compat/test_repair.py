"""Which standing violations are repaired: what Kubernetes lets be stays, but nobody comes there anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.models.objective import PRESETS, REPAIRED, Objective
from stowplan.models.problem import Placement
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluation, Evaluator
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.clusters import labels, node, pod, snapshot


def compiled(cluster: Snapshot, *repair: str, drop: tuple[str, ...] = ()) -> Compiled:
    """Compile with the default kinds, or with those given."""
    kinds = repair or tuple(kind for kind in REPAIRED if kind not in drop)
    objective = Objective.model_validate({**PRESETS["balance"].model_dump(), "repair": kinds})
    return compile_problem(cluster, default_profile(K36), objective)


def today(found: Compiled) -> Evaluation:
    return Evaluator(found.problem).evaluate(found.problem.start)


def placed(found: Compiled, **moved: str) -> Evaluation:
    """Evaluate today's placement after some pods of namespace ``default`` moved."""
    assignment = found.snapshot.assignment.moved((f"default/{name}", at) for name, at in moved.items())
    return Evaluator(found.problem).evaluate(found.placement(assignment))


TAINTED = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
EVICTING = [{"key": "dedicated", "value": "x", "effect": "NoExecute"}]
CORDON = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]


def two_pods(**first: Any) -> Snapshot:
    """Return two equal pods, one on a node that is as said, one on a plain node."""
    pods = [pod(name, at, owner="ReplicaSet/a") for name, at in (("p0", "n0"), ("p1", "n1"))]
    return snapshot(nodes=[node("n0", **first), node("n1"), node("n2")], pods=pods)


@pytest.mark.parametrize(
    ("first", "kind"),
    [({"taints": TAINTED}, "taints"), ({"unschedulable": True, "taints": CORDON}, "cordons")],
)
def test_cordons_and_taints_are_no_violations_and_let_nobody_in(first: dict[str, Any], kind: str) -> None:
    found = compiled(two_pods(**first))
    assert not today(found).violations
    assert found.notes == (f"standing violations that the objective does not repair: {kind} (1 movable pod)",)
    assert not placed(found, p1="n0").legal
    assert placed(found, p0="n2").legal
    assert not placed(found, p0="n1", p1="n0").legal


@pytest.mark.parametrize(
    ("first", "kind"),
    [({"taints": TAINTED}, "taints"), ({"unschedulable": True, "taints": CORDON}, "cordons")],
)
def test_each_is_repaired_once_where_the_objective_says_so(first: dict[str, Any], kind: str) -> None:
    found = compiled(two_pods(**first), "taints", "cordons")
    assert [violation.amount for violation in today(found).violations] == [1]
    assert found.notes == ()
    other = "cordons" if kind == "taints" else "taints"
    assert not today(compiled(two_pods(**first), other)).violations


def test_no_execute_taints_are_repaired_by_default() -> None:
    assert len(today(compiled(two_pods(taints=EVICTING))).violations) == 1
    found = compiled(two_pods(taints=EVICTING), drop=("no-execute",))
    assert not today(found).violations
    assert found.notes == ("standing violations that the objective does not repair: no-execute (1 movable pod)",)


def test_a_node_with_both_effects_is_left() -> None:
    assert len(today(compiled(two_pods(taints=[*TAINTED, {**EVICTING[0], "key": "other"}]))).violations) == 1


ZONE = "topology.kubernetes.io/zone"


def apart(topology: str = "kubernetes.io/hostname") -> dict[str, Any]:
    term = {"topologyKey": topology, "labelSelector": labels(app="a")}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def together() -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": labels(app="b")}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": labels(app="a"),
    }
]
PORT = [{"containerPort": 80, "hostPort": 80}]
BROKEN: dict[str, list[dict[str, Any]]] = {
    "overcommit": [pod("p0", "n0", cpu="3"), pod("p1", "n0", cpu="3")],
    "host-ports": [pod("p0", "n0", ports=PORT), pod("p1", "n0", ports=PORT)],
    "anti-affinity": [pod(name, "n0", labels={"app": "a"}, **apart()) for name in ("p0", "p1")],
    "affinity": [pod("p0", "n0", **together()), pod("p1", "n1", labels={"app": "b"})],
    "spread": [pod(name, "n0", labels={"app": "a"}, topologySpreadConstraints=SPREAD) for name in ("p0", "p1", "p2")],
    "node-affinity": [pod("p0", "n0", nodeSelector={"disk": "ssd"})],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_every_other_kind_is_repaired_or_left_as_asked(kind: str) -> None:
    cluster = snapshot(nodes=[node("n0"), node("n1", labels={"disk": "ssd"})], pods=BROKEN[kind])
    assert today(compiled(cluster)).violations
    left = compiled(cluster, drop=(kind,))
    assert not today(left).violations
    assert f" {kind} (1 " in left.notes[0]
    assert today(compiled(cluster, kind)).violations


def test_rules_that_hold_are_not_relaxed() -> None:
    cluster = snapshot(
        nodes=[node("n0"), node("n1")],
        pods=[pod("p0", "n0", labels={"app": "a"}, **apart()), pod("p1", "n1", labels={"app": "a"}, **apart())],
    )
    found = compiled(cluster, "cordons")
    assert found.notes == ()
    both_on_one = Placement.of([(0, 0, 2)])
    assert len(found.problem.classes) == 1
    assert not Evaluator(found.problem).evaluate(both_on_one).legal


def test_pods_that_a_node_would_refuse_have_a_class_for_each_such_node() -> None:
    nodes = [node(f"n{i}", unschedulable=True) for i in range(3)] + [node("n3")]
    pods = [pod(f"p{i}", f"n{i % 4}", owner="ReplicaSet/a") for i in range(8)]
    found = compiled(snapshot(nodes=nodes, pods=pods))
    assert sorted(found.problem.size.tolist()) == [2, 2, 2, 2]
    assert np.array_equal(np.sort(found.problem.start.count), [2, 2, 2, 2])
