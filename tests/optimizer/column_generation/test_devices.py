"""Patterns with shares of devices against brute force, and against CP-SAT where that is too slow."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from stowplan.models.arrays import Ints
from stowplan.models.bin_packing import EFFORT, pack
from stowplan.models.problem import Devices, Placement, Problem
from stowplan.optimizer.column_generation import PatternEngine
from stowplan.optimizer.column_generation.pricing.dual_feasible import demanded_weights
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.structure import Structure, structure_of
from stowplan.optimizer.compiled.bin_packing import QUICK_EFFORT, admit, distribute
from stowplan.optimizer.cpsat.solve import solve_tier
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.models.test_bin_packing import random_parts
from tests.optimizer.column_generation.test_engine import ORIGIN, Everything, closed, ints, opened, packing, unplaced
from tests.support.brute_force import best

SIZE = 12


def random_devices(seed: int, *, pods: int, broken: bool = False) -> Problem:
    """Return two nodes of a few devices with hardly a limit beside, and about so many pods; perhaps a broken start."""
    rng = np.random.default_rng(seed)
    classes, nodes = int(rng.integers(3, 5)), 2
    size = rng.integers(1, max(2, 2 * pods // classes), classes)
    whole = np.where(rng.random(classes) < 0.2, 1, 0)
    part = np.where((whole == 0) | (rng.random(classes) < 0.3), rng.integers(2, 9, classes), 0)
    count = int(rng.integers(1, 4)) + rng.integers(0, 2, nodes)
    held = ints([n for n in range(nodes) if rng.random() < 0.3])
    rule = Devices(ORIGIN, whole, part, SIZE, count, 0 * count, held, rng.integers(1, SIZE, len(held)))
    start = [(c, int(rng.integers(0, nodes)), 1) for c in range(classes) if rng.random() < 0.5] if broken else []
    tiers = [unplaced(SIZE * whole + part), unplaced(rng.integers(1, 4, classes)), opened(rng.integers(1, 3, nodes))]
    residual = rng.integers(8, 20, nodes)
    return packing([rng.integers(0, 4, classes)], [residual], size, tiers, (rule,), Placement.of(start))


@pytest.mark.parametrize("seed", range(30))
def test_no_bound_is_above_what_can_be_had(seed: int) -> None:
    problem = random_devices(seed, pods=6, broken=True)
    values, bounds = closed(problem, seconds=0.2)
    everything = Everything(problem)
    for tier, bound in enumerate(bounds):
        if bound is not None:
            assert bound <= everything.lowest(values[:tier]) <= values[tier]


@pytest.mark.parametrize("seed", range(30))
def test_what_can_be_had_is_found_and_proven(seed: int) -> None:
    problem = random_devices(seed, pods=7)
    values, bounds = closed(problem, seconds=0.2)
    assert values == best(problem)
    assert tuple(bound or 0 for bound in bounds) == values


def fits(problem: Problem, s: Structure, g: int, x: tuple[int, ...]) -> bool:
    """Whether a node of a group holds so many pods of each kind: by the rule, and by the rows of the structure."""
    rule = next(rule for rule in problem.rules if isinstance(rule, Devices))
    node, cls = int(np.flatnonzero(s.group == g)[0]), np.unique(s.kind, return_index=True)[1]
    shares = [*np.repeat(rule.part[cls], x).tolist(), *rule.held_part[rule.held_node == node].tolist()]
    bins = pack(tuple(sorted((part for part in shares if part), reverse=True)), rule.size)[0]
    devices = int(rule.whole[cls] @ ints(x)) + bins <= rule.count[node]
    return devices and bool((ints(x) @ s.demand <= s.residual[g]).all())


@pytest.mark.parametrize("seed", range(60))
def test_pricing_finds_the_best_pattern_and_all_above_a_value(seed: int) -> None:
    problem = random_devices(seed, pods=14)
    s = structure_of(Evaluator(problem))
    assert s is not None
    if seed % 3:
        # Without the sums that follow from the rule, all is up to the packer.
        s = replace(s, demand=0 * s.demand[:, :1], residual=0 * s.residual[:, :1] + 1)
    rng = np.random.default_rng(seed)
    for g in range(s.groups):
        value = rng.integers(0, 50, s.kinds)
        ways = itertools.product(*(range(int(most) + 1) for most in s.upper[g]))
        known = {x: int(ints(x) @ value) for x in ways if fits(problem, s, g, x)}
        top = max(known.values())
        pricer = Pricer(s, g)
        priced = pricer.best(value, 0, 10**6)
        assert priced.complete
        assert priced.bound == top
        for row in (*priced.patterns, *pricer.greedy(value)[0]):
            assert tuple(row.tolist()) in known
        assert pricer.best(value, 0, 1).bound >= top  # cut off at once
        least = int(rng.integers(0, top + 1))
        # With waste below the room, patterns may be found by meeting in the middle.
        waste = rng.integers(0, 12, s.demand.shape[1]) if seed % 2 else np.full(s.demand.shape[1], 10**9)
        found = pricer.above(value, least, 10**6, 10_000, waste)
        assert found.complete
        got = {tuple(row.tolist()) for row in found.patterns}
        assert len(got) == len(found.patterns)
        tight = {x for x, v in known.items() if v >= least and (s.residual[g] - ints(x) @ s.demand <= waste).all()}
        more = {x: [(*x[:k], x[k] + 1, *x[k + 1 :]) for k in range(s.kinds)] for x in tight}
        assert {x for x in tight if not any(y in tight for y in more[x])} <= got <= {*known}


@pytest.mark.parametrize("seed", range(4))
def test_cp_sat_agrees_where_enumeration_is_too_slow(seed: int) -> None:
    """Four nodes of four devices of 1,000, more asked for than there is, and nothing but devices in the way."""
    rng = np.random.default_rng(seed)
    whole = ints([0, 0, 0, 0, 0, 1, 2, 4])
    part = ints([*rng.choice(np.arange(100, 900, 10), 5, replace=False), 0, 0, 0])
    size = ints([*rng.integers(2, 6, 5), 3, 1, 1])
    nobody = np.zeros(0, dtype=np.int64)
    rule = Devices(ORIGIN, whole, part, 1000, np.full(4, 4), np.zeros(4, dtype=np.int64), nobody, nobody)
    tier = unplaced(1000 * whole + part)
    problem = packing([np.ones(8, dtype=np.int64)], [np.full(4, 50)], size, [tier], (rule,))
    evaluator = Evaluator(problem)
    exact = solve_tier(evaluator, 0, (), problem.start, Deadline(10.0, deterministic=True), workers=1, seed=0)
    outcome = PatternEngine(evaluator).close_tier(0, (), problem.start, Deadline(3.0, deterministic=True))
    assert outcome is not None
    assert outcome.bound is not None
    assert exact.placement is not None
    least = evaluator.evaluate(exact.placement).values[0]
    assert exact.bound == least
    assert outcome.bound <= least <= outcome.value
    assert outcome.value == least


def test_a_value_between_two_steps_is_no_bound() -> None:
    """A device of 10 holds one of two shares of 6: what waits is a multiple of 6."""
    nobody = np.zeros(0, dtype=np.int64)
    rule = Devices(ORIGIN, ints([0]), ints([6]), 10, ints([1]), ints([0]), nobody, nobody)
    problem = packing([ints([1])], [ints([9])], ints([2]), [unplaced(ints([6]))], (rule,))
    s = structure_of(Evaluator(problem))
    assert s is not None
    assert [s.attainable(0, value) for value in (-1, 0, 1, 6, 7)] == [0, 0, 6, 6, 12]
    assert closed(problem) == ((6,), [6])


@pytest.mark.parametrize("seed", range(60))
def test_on_no_device_do_weights_add_up_to_more_than_their_limit(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.choice([7, 20, 100, 10**9])
    parts = ints(sorted({rng.randint(max(1, size // 6), size) for _ in range(rng.randint(1, 6))}))
    number = ints([rng.randint(1, 9) for _ in parts])
    limit, weight = demanded_weights(parts, number, size, 4096, 200)
    assert (weight >= 0).all()
    ways = itertools.product(*(range(size // part + 1) for part in parts.tolist()))
    assert max(int(ints(x) @ weight) for x in ways if ints(x) @ parts <= size) == limit
    shares = sorted(np.repeat(parts, number).tolist(), reverse=True)
    bins = pack(tuple(shares), size)[0]
    # The bound of the linear program is not above the number needed, nor below the volume.
    assert Fraction(sum(shares), size) - Fraction(1, 1000) <= Fraction(int(number @ weight), limit) <= bins


def test_weights_made_to_measure_say_more_than_those_for_all() -> None:
    """Six shares of 3, five of 7 and five of 10 take 11 devices of 12, as weights made to measure know."""
    nobody = np.zeros(0, dtype=np.int64)
    parts, number = ints([3, 7, 10]), ints([6, 5, 5])
    assert pack(tuple(sorted(np.repeat(parts, number).tolist(), reverse=True)), SIZE)[0] == 11
    limit, weight = demanded_weights(parts, number, SIZE, 4096, 200)
    assert int(number @ weight) > 10 * limit
    rule = Devices(ORIGIN, 0 * parts, parts, SIZE, ints([10]), ints([0]), nobody, nobody)
    assert all(int(number @ demand) <= 10 * most for most, demand, _ in rule.sums)


@pytest.mark.parametrize("seed", range(200))
def test_pods_get_devices_exactly_if_the_packer_says_so(seed: int) -> None:
    rng = random.Random(seed)
    size, devices = rng.choice([10, 100]), rng.randint(0, 7)
    parts = random_parts(rng, 8, size)
    kinds = len(parts) + 2
    whole = ints([*([0] * len(parts)), rng.randint(1, 2), 1])
    part = ints([*parts, 0, size // 3])
    x = ints([rng.randint(0, 2) for _ in range(kinds)])
    held = ints(random_parts(rng, 2, size))

    def needed(x: Ints) -> int:
        shares = sorted([*held.tolist(), *np.repeat(part, x)[np.repeat(part, x) > 0].tolist()], reverse=True)
        return int(whole @ x) + pack(tuple(shares), size)[0]

    residual, after = np.zeros(devices, dtype=np.int64), np.zeros(devices, dtype=np.int64)
    verdict = distribute(x, -1, whole, part, size, held, EFFORT, residual)
    assert verdict == (1 if needed(x) <= devices else -1)
    if verdict < 0:
        return
    assert residual.sum() == devices * size - size * int(whole @ x) - int(part @ x) - int(held.sum())
    assert (residual >= 0).all()
    refused = ints([size + 1, devices + 1])
    for k in rng.sample(range(kinds), kinds):
        more = x.copy()
        more[k] += 1
        admitted, _ = admit(x, k, whole, part, size, held, True, residual, after, refused, EFFORT)
        assert admitted == (1 if needed(more) <= devices else -1)
        hasty, _ = admit(
            x, k, whole, part, size, held, True, residual, after, ints([size + 1, devices + 1]), QUICK_EFFORT
        )
        assert hasty in (0, admitted)
