"""What a solve keeps of bounds when placements turn up that they did not reckon with."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.models.problem import Origin, Placement, Prefer, Problem, Tier, Weighted
from stowplan.models.result import TRIVIAL, Status
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.run import Run, silent

HERE = Origin("test")


def run_of(*tables: list[int], gap: float = 0.0) -> Run:
    """Begin a solve: one pod on the first of the nodes, and what each node costs in each tier."""
    nodes = len(tables[0])
    tiers = tuple(
        Tier(f"tier {t}", (Weighted(1, Prefer(HERE, np.zeros(1, dtype=np.int64), np.array([table]))),))
        for t, table in enumerate(tables)
    )
    one = np.ones(1, dtype=np.int64)
    names = tuple(f"n{n}" for n in range(nodes))
    problem = Problem(names, ("c",), one, 0 * one, Placement.of([(0, 0, 1)]), (), tiers)
    return Run(Evaluator(problem), 10.0, False, Stop(), None, silent, gap)


def test_a_refuted_bound_is_dropped_and_named() -> None:
    run = run_of([9, 4])
    run.raise_bound(0, 6, "a wrong proof")
    assert run.offer(Placement.of([(0, 1, 1)]), "annealing")
    assert run.bounds == [0]
    assert run.notes == ["a wrong proof claimed that tier 0 cannot be below 6, yet annealing found 4: bound dropped"]
    (tier,) = run.outcome().tiers
    assert (tier.value, tier.bound, tier.bound_by) == (4, 0, TRIVIAL)


def test_a_bound_holds_while_no_earlier_tier_has_become_worse() -> None:
    run = run_of([5, 3], [7, 6])
    run.raise_bound(1, 6, "a proof")
    assert run.offer(Placement.of([(0, 1, 1)]), "annealing")
    assert run.bounds == [0, 6]
    assert not run.notes


def test_a_bound_of_a_tier_is_forgotten_once_an_earlier_one_has_become_worse() -> None:
    run = run_of([5, 3], [1, 8], [7, 2])
    run.raise_bound(0, 3, "a proof")
    run.raise_bound(1, 1, "a proof")
    run.raise_bound(2, 7, "a proof for 1 in tier 1")
    assert run.offer(Placement.of([(0, 1, 1)]), "annealing")
    assert run.bounds == [3, 1, 0]
    assert [run.has_bound(tier) for tier in range(3)] == [True, True, False]
    assert not run.notes


def test_a_bound_that_was_proven_for_other_values_of_earlier_tiers_is_left_aside() -> None:
    run = run_of([5, 3], [1, 8], [7, 2])
    given = run.values[:2]
    assert run.offer(Placement.of([(0, 1, 1)]), "annealing")
    run.raise_bound(2, 2, "a proof for 1 in tier 1", given)
    assert run.bounds == [0, 0, 0]
    run.raise_bound(2, 2, "a proof for 9 in tier 1", (5, 9))
    assert run.bounds == [0, 0, 2]
    assert not run.notes


@pytest.mark.parametrize("left", [0.0, 1.0])
def test_seconds_are_a_share_of_what_is_left_and_all_of_it_where_nothing_is_left(left: float) -> None:
    run = run_of([5])
    run._deadline = Deadline(left)
    assert run.share_of(0.0) == 0.0
    assert run.share_of(left / 2) == pytest.approx(0.5 if left else 0.0, abs=0.1)
    assert run.share_of(5.0) == 1.0


@pytest.mark.parametrize(
    ("gap", "value", "bound", "is_open"),
    [
        (0.0, 10**17 + 1, 10**17, True),
        (0.0, 10**17, 10**17, False),
        (0.05, 100, 95, False),
        (0.05, 100, 94, True),
        (0.05, 20 * 10**17, 19 * 10**17, False),
        (0.05, 20 * 10**17, 19 * 10**17 - 1, True),
        (0.05, 1, 0, True),
        (0.05, 0, 0, False),
        (0.99, 100, 1, False),
    ],
)
def test_a_tier_is_open_while_the_gap_is_larger_than_allowed(gap: float, value: int, bound: int, is_open: bool) -> None:
    run = run_of([value], gap=gap)
    run.raise_bound(0, bound, "a proof")
    assert run.is_open(0) is is_open
    assert run.closed is not is_open
    (tier,) = run.outcome().tiers
    assert (tier.status == Status.OPTIMAL) == (value == bound)
