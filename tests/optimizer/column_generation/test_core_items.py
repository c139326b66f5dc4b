"""Proofs from a few large kinds against brute force, where next to no room is left."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.instances.suites.opening import open_suite
from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement, Problem
from stowplan.optimizer.column_generation import PatternEngine
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.core_items import refuted
from stowplan.optimizer.column_generation.master.generation import Generation
from stowplan.optimizer.column_generation.master.restricted import PatternPool
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.structure import structure_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.optimizer.column_generation.test_engine import opened, packing, unplaced
from tests.support.brute_force import best


def tight(seed: int) -> Problem:
    """Return a cluster that is all but full; every other one can be packed, by construction."""
    random = np.random.default_rng(seed)
    nodes, rows = int(random.integers(2, 4)), int(random.integers(1, 3))
    pods = int(random.integers(5, 7))
    where, sizes = random.integers(0, nodes, pods), random.integers(100_000, 900_000, (pods, rows))
    size = np.ones(pods, dtype=np.int64)
    if seed % 3 == 0:
        sizes[1] = sizes[0]  # two of a kind
    residual = np.array([sizes[where == n].sum(axis=0) for n in range(nodes)])
    if seed % 5 == 0:
        residual[:] = residual.max(axis=0)  # alike, but too roomy for a proof
    waste = random.integers(0, 4, rows)
    if seed % 2:
        # As much room in all, but not where it was.
        residual[0] += (shift := random.integers(1, 50_000, rows))
        residual[1] -= shift
    residual[0] += waste
    demands: list[Ints] = [np.ascontiguousarray(sizes[:, r]) for r in range(rows)]
    residuals: list[Ints] = [np.ascontiguousarray(residual[:, r]) for r in range(rows)]
    tier = unplaced(random.integers(1, 3, pods)) if seed % 4 < 2 else opened(np.ones(nodes, dtype=np.int64))
    tiers = [tier] if seed % 4 < 2 else [unplaced(np.ones(pods, dtype=np.int64)), tier]
    return packing(demands, residuals, size, tiers, start=Placement.of([]))


def generation(problem: Problem, tier: int, reached: tuple[int, ...]) -> Generation:
    structure = structure_of(Evaluator(problem))
    assert structure is not None
    pricers = [Pricer(structure, g) for g in range(structure.groups)]
    return Generation(structure, tier, reached, PatternPool(structure), pricers)


@pytest.mark.parametrize("seed", range(40))
def test_only_what_is_out_of_reach_is_refuted(seed: int) -> None:
    problem = tight(seed)
    values = best(problem)
    for tier, value in enumerate(values):
        looked = generation(problem, tier, values[:tier])
        for claim in range(value + 1):
            answers = {refuted(looked, claim, Budget(Deadline(5.0)), threads) for threads in (1, 3)}
            assert len(answers) == 1
            assert claim < value or answers == {False}


def test_next_to_no_room_is_enough_for_a_proof() -> None:
    proofs = 0
    for seed in range(40):
        problem = tight(seed)
        if best(problem)[0] > 0 and seed % 5:
            assert refuted(generation(problem, 0, ()), 0, Budget(Deadline(5.0, deterministic=True)))
            proofs += 1
    assert proofs > 10


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
