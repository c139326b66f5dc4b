"""Proofs from a few large kinds against brute force, where next to no room is left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from stowplan.instances.suites.opening import open_suite
from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement, Problem
from stowplan.optimizer.column_generation import PatternEngine
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.core_items import refuted
from stowplan.optimizer.column_generation.master.generation import Generation
from stowplan.optimizer.column_generation.master.restricted import PatternPool
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.structure import structure_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.optimizer.column_generation.test_engine import opened, packing, unplaced
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn


class Full(NamedTuple):
    """A cluster that is all but full, and whether next to no room is left on each of its nodes."""

    problem: Problem
    tight: bool


def random_full(choices: Choices, *, placing: bool | None = None) -> Full:
    """Build a cluster that is all but full; every other one can be packed, by construction.

    Parameters
    ----------
    placing
        The first tier weighs the pods that wait; otherwise it counts nodes. None leaves it to chance.
    """
    placing = choices.chance(0.5) if placing is None else placing
    nodes, rows, pods = choices.integer(2, 3), choices.integer(1, 2), choices.integer(5, 6)
    where, sizes = choices.array(pods, 0, nodes - 1), choices.array((pods, rows), 100_000, 899_999)
    if choices.chance(0.33):
        sizes[1] = sizes[0]  # two of a kind
    residual = np.array([sizes[where == n].sum(axis=0) for n in range(nodes)])
    alike = choices.chance(0.2)
    if alike:
        residual[:] = residual.max(axis=0)  # alike, but too roomy for a proof
    waste = choices.array(rows, 0, 3)
    if choices.chance(0.5):
        # As much room in all, but not where it was.
        residual[0] += (shift := choices.array(rows, 1, 49_999))
        residual[1] -= shift
    residual[0] += waste
    demands: list[Ints] = [np.ascontiguousarray(sizes[:, r]) for r in range(rows)]
    residuals: list[Ints] = [np.ascontiguousarray(residual[:, r]) for r in range(rows)]
    one = np.ones(pods, dtype=np.int64)
    tiers = (
        [unplaced(choices.array(pods, 1, 2))] if placing else [unplaced(one), opened(np.ones(nodes, dtype=np.int64))]
    )
    return Full(packing(demands, residuals, one, tiers, start=Placement.of([])), not alike)


def generation(problem: Problem, tier: int, reached: tuple[int, ...]) -> Generation:
    structure = structure_of(Evaluator(problem))
    assert structure is not None
    pricers = [Pricer(structure, g) for g in range(structure.groups)]
    return Generation(structure, tier, reached, PatternPool(structure), pricers)


@cases(15, at_least={"refuted": 3}, full=drawn(random_full))
def test_only_what_is_out_of_reach_is_refuted(full: Full) -> None:
    values = best(full.problem)
    for tier, value in enumerate(values):
        looked = generation(full.problem, tier, values[:tier])
        for claim in range(value + 1):
            answers = {refuted(looked, claim, Budget(Deadline(5.0)), threads) for threads in (1, 3)}
            assert len(answers) == 1
            assert claim < value or answers == {False}
            count("refuted", answers == {True})


@cases(15, at_least={"proofs": 2}, full=drawn(random_full))
def test_next_to_no_room_is_enough_for_a_proof(full: Full) -> None:
    if full.tight and best(full.problem)[0] > 0:
        assert refuted(generation(full.problem, 0, ()), 0, Budget(Deadline(5.0, deterministic=True)))
        count("proofs")


@pytest.mark.parametrize("seed", range(3))
def test_full_clusters_are_packed_and_proven(seed: int) -> None:
    """Published proofs end far before clusters of this size; bytes of memory leave no way to fill a node."""
    problem = (
        open_suite("priority-matters:nodes8_pods64_prio1_util100", count=1, seed=seed).instances[0].state().problem
    )
    engine = PatternEngine(Evaluator(problem))
    outcome = engine.close_tier(0, (), problem.start, Deadline(2.0, deterministic=True))
    assert outcome is not None
    assert (outcome.value, outcome.bound) == (1, 1)
