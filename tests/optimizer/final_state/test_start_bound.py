"""The bound from where pods are: no legal placement is below it, whatever is read, and however many may move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.problem import Problem
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import move_prices
from stowplan.optimizer.final_state import start_bound as module
from stowplan.optimizer.final_state.start_bound import start_bound
from stowplan.plugins_compat.release import K5, K20, K24, K36, Release
from stowplan.settings.problem import make_problem
from tests.optimizer.final_state.test_branching_program import random_problem
from tests.plugins_compat.final_state.test_affinity_floor import random_workload
from tests.plugins_compat.final_state.test_scorer import random_attraction
from tests.support.brute_force import legal_values, placements
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, pod, snapshot
from tests.support.random_clusters import Setup, clusters, setups


def bound_of(problem: Problem, seconds: float = 60.0) -> int:
    tier = problem.tiers[-1]
    assert tier.final is not None
    move = move_prices(tier, len(problem.size))
    return start_bound(problem, tier.final, move, upper_bounds(problem), Deadline(seconds))


@cases(
    60,
    at_least={"above nothing": 15, "near": 8, "mixed": 5, "any number": 2},
    cluster=st.one_of(drawn(random_attraction), drawn(random_workload), clusters(broken=None), clusters(broken=True)),
    setup=setups("kube"),
    release=st.sampled_from([K5, K20, K24, K36]),
    limit=st.sampled_from([1, 2, 3, None]),
)
def test_no_legal_placement_is_below_it(cluster: Snapshot, setup: Setup, release: Release, limit: int | None) -> None:
    problem = replace(setup, release=release, max_moves=limit).compile(cluster).problem
    legal = legal_values(problem)
    if not legal:
        return
    bound, least = bound_of(problem), min(values[-1] for values in legal)
    assert bound <= least
    final = problem.tiers[-1].final
    assert final is not None
    parts = final.relaxation(problem.start, limit)
    count("above nothing", bound > 0)
    count("near", bound > 0.5 * least > 0)
    count("mixed", any(part.crowding is not None and bool((part.crowding < 0).any()) for part in parts))
    count("any number", limit is None and bound > 0)


class HalfOver(Deadline):
    """Is over once it was asked some times."""

    asked: Iterator[int]

    def __init__(self, times: int) -> None:
        super().__init__(60.0)
        object.__setattr__(self, "asked", iter(range(times)))

    @property
    def over(self) -> bool:
        return next(self.asked, None) is None


def scored_in_many_ways(choices: Choices) -> Problem:
    return random_problem(choices, choices.one([1, 2, None]))


@cases(60, at_least={"above nothing": 30, "any number": 8, "most allocated": 5}, problem=drawn(scored_in_many_ways))
def test_no_legal_placement_is_below_it_whatever_scores_there_are(problem: Problem) -> None:
    tier = problem.tiers[-1]
    if tier.final is None:
        return
    evaluator = Evaluator(replace(problem, tiers=(*problem.tiers[:-1], replace(tier, terms=(), surrogate=()))))
    seen = [evaluator.evaluate(placement) for placement in placements(problem)]
    least, unmoved = min(one.values[-1] for one in seen if one.legal), np.zeros_like(problem.size)
    asked = problem, tier.final, unmoved, upper_bounds(problem)
    bound = start_bound(*asked, Deadline(60.0))
    assert start_bound(*asked, Deadline(60.0), resting=False) <= bound <= least
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAIRS_AT_ONCE", 1)  # classes one by one, of which half are read
        assert start_bound(*asked, HalfOver(len(problem.size) // 2)) <= least
    for part in tier.final.relaxation(problem.start):
        if not part.signed and part.crowding is not None and part.held is not None:
            assert min(part.crowding.min(), part.held.min()) >= 0, part.name
    count("above nothing", bound > 0)
    count("any number", bound > 0 and problem.move_limit is None)
    fit = next(part for part in tier.final.relaxation(problem.start) if part.name == "NodeResourcesFit")
    count("most allocated", fit.crowding is not None and bool((fit.crowding < 0).any()))


def test_overhead_that_counts_for_less_in_the_score_of_a_pod() -> None:
    heavy = {"overhead": {"cpu": "1"}, "owner": "ReplicaSet/a"}
    cluster = snapshot(
        nodes=[node(name, cpu="4", memory="8Gi") for name in ("n0", "n1")],
        pods=[pod(f"p{i}", f"n{i}", cpu="1", memory="2Gi", **heavy) for i in range(2)],
    )
    for limit in (1, None):
        problem = Setup("kube", K20, "never", limit).compile(cluster).problem
        assert 0 < bound_of(problem) <= min(values[-1] for values in legal_values(problem))


@pytest.mark.parametrize("limit", [2, 20, None])
def test_classes_may_be_read_one_by_one(monkeypatch: pytest.MonkeyPatch, limit: int | None) -> None:
    problem = make_problem(synthetic_snapshot(6, 50, 4), Settings(objective="kube", max_moves=limit)).problem
    at_once = bound_of(problem)
    # Tiny clusters would have all their classes read at once.
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 1)
    assert 0 < bound_of(problem) == pytest.approx(at_once, rel=1e-6)


def test_it_says_most_where_no_more_than_a_few_pods_move() -> None:
    snapshot = synthetic_snapshot(40, 400, 4)
    today, bounds = 0, []
    for limit in (1, 5, 20, 100, None):
        problem = make_problem(snapshot, Settings(objective="kube", max_moves=limit)).problem
        today = Evaluator(problem).evaluate(problem.start).values[-1]
        bounds.append(bound_of(problem))
    assert bounds == sorted(bounds, reverse=True)
    assert 0.8 * today < bounds[0] < today
    assert bounds[-1] > 0.1 * today


def test_what_is_not_read_counts_as_nothing() -> None:
    problem = make_problem(synthetic_snapshot(6, 50, 4), Settings(objective="kube", max_moves=2)).problem
    assert bound_of(problem, 0.0) == 0 < bound_of(problem)
    tier = problem.tiers[-1]
    assert tier.final is not None
    upper, move = upper_bounds(problem), np.zeros(len(problem.size), dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAIRS_AT_ONCE", 1)  # as above
        half = start_bound(problem, tier.final, move, upper, HalfOver(len(problem.size) // 2))
    assert 0 < half < bound_of(problem)
