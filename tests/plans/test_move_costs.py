"""What a move weighs, and that the cheaper pod is the one that moves."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from stowplan.answers.solve import solve_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options
from stowplan.plans.movability.costs import has_costs, move_weight, weight_of
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.clusters import node, pod, snapshot

EVICTION = "scheduling.koordinator.sh/eviction-cost"
DISRUPTION = "karpenter.sh/disruption-cost"
DELETION = "controller.kubernetes.io/pod-deletion-cost"


def weight(**annotations: str) -> float:
    names = {"eviction": EVICTION, "disruption": DISRUPTION, "deletion": DELETION}
    manifest = pod("web", "n1", annotations={names[key]: value for key, value in annotations.items()})
    return move_weight(snapshot(pods=[manifest]).pods[0])


def test_weights_rise_with_the_cost_from_a_tenth_to_ten() -> None:
    costs = [-(2**31), -(2**20), -1000, -100, -10, -1, 0, 1, 10, 100, 1000, 2**20, 2**31 - 1]
    weights = [weight_of(cost) for cost in costs]
    assert weights[0] == 0.1
    assert weights[-1] == 10
    assert weight_of(0) == 1
    assert all(a < b for a, b in pairwise(weights))
    assert all(a * b == pytest.approx(1, abs=0.02) for a, b in zip(weights, reversed(weights), strict=True))


def test_whose_word_counts() -> None:
    assert weight() == 1
    assert weight(deletion="100") == weight_of(100)
    assert weight(deletion="100", disruption="-5") == weight_of(-5)
    assert weight(deletion="100", disruption="-5", eviction="7") == weight_of(7)
    assert weight(deletion="100", disruption="much") == 1


def crowd(first: str, second: str, third: str = "0") -> Snapshot:
    """Two nodes, and three alike pods on one of them where only two have room."""
    costs = zip("abc", (first, second, third), strict=True)
    pods = [pod(n, "n1", cpu="1", owner="ReplicaSet/web", annotations={DELETION: c}) for n, c in costs]
    return snapshot(nodes=[node("n1", cpu="2"), node("n2", cpu="2")], pods=pods)


def compiled(cluster: Snapshot, objective: str, weighed: bool = True) -> Compiled:
    weigh = move_weight if weighed and has_costs(cluster) else None
    return compile_problem(cluster, default_profile(K36), PRESETS[objective], weigh=weigh)


@pytest.mark.parametrize("objective", ["repair", "balance", "pack", "spread", "kube"])
@pytest.mark.parametrize("cheapest", [0, 1, 2])
def test_the_cheapest_pod_moves(objective: str, cheapest: int) -> None:
    costs = ["5000"] * 3
    costs[cheapest] = "-50"
    solution = solve_snapshot(
        compiled(crowd(*costs), objective), Options(time_limit=3, deterministic=True, memory=None)
    )
    assert [move.pod.name for move in solution.moves] == ["abc"[cheapest]]


def test_the_value_of_a_move_is_its_weight() -> None:
    problem = compiled(crowd("1000", "0", "-1000"), "repair")
    start = problem.assign(problem.problem.start)
    for name, price in (("a", 1000), ("b", 0), ("c", -1000)):
        moved = problem.placement({**start, f"default/{name}": "n2"})
        tier = problem.problem.tiers[-1]
        assert tier.shown(Evaluator(problem.problem).evaluate(moved).values[-1]) == weight_of(price)
    assert problem.notes == ("moves of 2 pods cost more or less than others, as annotations of theirs say",)


def test_nothing_changes_where_nobody_names_a_price() -> None:
    cluster = crowd("0", "0", "0")
    plain = compiled(cluster, "balance", weighed=False)
    weighed = compiled(cluster, "balance")
    assert weighed.problem.classes == plain.problem.classes
    assert weighed.notes == plain.notes
    assert [t.scale for t in weighed.problem.tiers] == [t.scale for t in plain.problem.tiers]


def test_shapes_tell_prices_apart_only_where_they_count() -> None:
    cluster = crowd("1", "2", "3")
    assert len(compiled(cluster, "balance").problem.classes) == 3
    assert len(compiled(cluster, "balance", weighed=False).problem.classes) == 1


def test_the_formula_is_the_documented_one() -> None:
    text = (Path(__file__).parents[2] / "docs" / "movability.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith(("| cost ", "| weight "))]
    costs, weights = ([cell.strip().replace("−", "-").replace(",", "") for cell in row[2:-1]] for row in rows)
    assert [weight_of(int(cost)) for cost in costs] == [float(weight) for weight in weights]
