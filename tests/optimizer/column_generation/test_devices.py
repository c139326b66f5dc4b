"""Patterns with shares of devices against brute force, and against CP-SAT where that is too slow."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from stowplan.models.arrays import Ints
from stowplan.models.bin_packing import EFFORT, pack
from stowplan.models.problem import Devices, Placement, Problem
from stowplan.optimizer.column_generation import PatternEngine
from stowplan.optimizer.column_generation.dual_feasible import demanded_weights
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.structure import Structure, structure_of
from stowplan.optimizer.compiled.bin_packing import QUICK_EFFORT, admit, distribute
from stowplan.optimizer.cpsat.solve import solve_tier
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.models.test_bin_packing import random_parts
from tests.optimizer.column_generation.test_engine import (
    ORIGIN,
    Everything,
    Prices,
    closed,
    ints,
    opened,
    packing,
    random_prices,
    unplaced,
)
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn

SIZE = 12


def random_devices(choices: Choices, *, pods: int, broken: bool = False) -> Problem:
    """Build two nodes of a few devices with hardly a limit beside, and about so many pods; perhaps a broken start."""
    classes, nodes = choices.integer(3, 4), 2
    size = choices.array(classes, 1, max(2, 2 * pods // classes) - 1)
    whole = np.array([int(choices.chance(0.2)) for _ in range(classes)])
    part = np.array([choices.integer(2, 8) if not w or choices.chance(0.3) else 0 for w in whole.tolist()])
    count = choices.integer(1, 3) + choices.array(nodes, 0, 1)
    held = ints([n for n in range(nodes) if choices.chance(0.3)])
    rule = Devices(ORIGIN, whole, part, SIZE, count, 0 * count, held, choices.array(len(held), 1, SIZE - 1))
    start = [(c, choices.integer(0, nodes - 1), 1) for c in range(classes) if choices.chance(0.5)] if broken else []
    opening = opened(choices.array(nodes, 1, 2))
    tiers = [unplaced(SIZE * whole + part), unplaced(choices.array(classes, 1, 3)), opening]
    residual = choices.array(nodes, 8, 19)
    return packing([choices.array(classes, 0, 3)], [residual], size, tiers, (rule,), Placement.of(start))


@cases(15, at_least={"above nothing": 8}, problem=drawn(random_devices, pods=6, broken=True))
def test_no_bound_is_above_what_can_be_had(problem: Problem) -> None:
    values, bounds = closed(problem, seconds=0.2)
    everything = Everything(problem)
    for tier, bound in enumerate(bounds):
        if bound is not None:
            assert bound <= everything.lowest(values[:tier]) <= values[tier]
            count("above nothing", bound > 0)


@cases(15, at_least={"nodes are counted": 6}, problem=drawn(random_devices, pods=7))
def test_what_can_be_had_is_found_and_proven(problem: Problem) -> None:
    values, bounds = closed(problem, seconds=0.2)
    assert values == best(problem)
    assert tuple(bound or 0 for bound in bounds) == values
    count("nodes are counted", values[-1] > 0)


def fits(problem: Problem, s: Structure, g: int, x: tuple[int, ...]) -> bool:
    """Whether a node of a group holds so many pods of each kind: by the rule, and by the rows of the structure."""
    rule = next(rule for rule in problem.rules if isinstance(rule, Devices))
    node, cls = int(np.flatnonzero(s.group == g)[0]), np.unique(s.kind, return_index=True)[1]
    shares = [*np.repeat(rule.part[cls], x).tolist(), *rule.held_part[rule.held_node == node].tolist()]
    bins = pack(tuple(sorted((part for part in shares if part), reverse=True)), rule.size)[0]
    devices = int(rule.whole[cls] @ ints(x)) + bins <= rule.count[node]
    return devices and bool((ints(x) @ s.demand <= s.residual[g]).all())


@cases(
    30,
    at_least={"patterns wanted": 40},
    problem=drawn(random_devices, pods=14),
    prices=drawn(random_prices),
    packer_alone=st.booleans(),
)
def test_pricing_finds_the_best_pattern_and_all_above_a_value(
    problem: Problem, prices: Prices, packer_alone: bool
) -> None:
    s = structure_of(Evaluator(problem))
    assert s is not None
    if packer_alone:
        # Without the sums that follow from the rule, all is up to the packer.
        s = replace(s, demand=0 * s.demand[:, :1], residual=0 * s.residual[:, :1] + 1)
    value = prices.of(s.kinds)
    for g in range(s.groups):
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
        # With waste below the room, patterns may be found by meeting in the middle.
        least, waste = prices.least(top), prices.may_waste(s.demand.shape[1], 10**9)
        found = pricer.above(value, least, 10**6, 10_000, waste)
        assert found.complete
        got = {tuple(row.tolist()) for row in found.patterns}
        assert len(got) == len(found.patterns)
        tight = {x for x, v in known.items() if v >= least and (s.residual[g] - ints(x) @ s.demand <= waste).all()}
        more = {x: [(*x[:k], x[k] + 1, *x[k + 1 :]) for k in range(s.kinds)] for x in tight}
        wanted = {x for x in tight if not any(y in tight for y in more[x])}
        assert wanted <= got <= {*known}
        count("patterns wanted", len(wanted))


def random_shares(choices: Choices) -> tuple[Ints, Ints]:
    """Return the shares that five kinds of pods ask for, in thousandths of a device, and how many pods there are."""
    return ints([10 * tens for tens in choices.some(range(10, 90), 5)]), choices.array(5, 2, 5)


@cases(4, asked=drawn(random_shares))
def test_cp_sat_agrees_where_enumeration_is_too_slow(asked: tuple[Ints, Ints]) -> None:
    """Four nodes of four devices of 1,000, more asked for than there is, and nothing but devices in the way."""
    shares, pods = asked
    whole = ints([0, 0, 0, 0, 0, 1, 2, 4])
    part, size = ints([*shares, 0, 0, 0]), ints([*pods, 3, 1, 1])
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


def random_demand(choices: Choices) -> tuple[int, Ints, Ints]:
    """Return the size of a device, shares of a sixth of it or more, and how many there are of each."""
    size = choices.one([7, 20, 100, 10**9])
    parts = sorted({choices.integer(max(1, size // 6), size) for _ in range(choices.integer(1, 6))})
    return size, ints(parts), choices.array(len(parts), 1, 9)


@cases(30, at_least={"more than the volume says": 8}, demand=drawn(random_demand))
def test_on_no_device_do_weights_add_up_to_more_than_their_limit(demand: tuple[int, Ints, Ints]) -> None:
    size, parts, number = demand
    limit, weight = demanded_weights(parts, number, size, 4096, 200)
    assert (weight >= 0).all()
    ways = itertools.product(*(range(size // part + 1) for part in parts.tolist()))
    assert max(int(ints(x) @ weight) for x in ways if ints(x) @ parts <= size) == limit
    shares = sorted(np.repeat(parts, number).tolist(), reverse=True)
    bins = pack(tuple(shares), size)[0]
    # The bound of the linear program is not above the number needed, nor below the volume.
    volume, bound = Fraction(sum(shares), size), Fraction(int(number @ weight), limit)
    assert volume - Fraction(1, 1000) <= bound <= bins
    count("more than the volume says", bound > volume)


def test_weights_made_to_measure_say_more_than_those_for_all() -> None:
    """Six shares of 3, five of 7 and five of 10 take 11 devices of 12, as weights made to measure know."""
    nobody = np.zeros(0, dtype=np.int64)
    parts, number = ints([3, 7, 10]), ints([6, 5, 5])
    assert pack(tuple(sorted(np.repeat(parts, number).tolist(), reverse=True)), SIZE)[0] == 11
    limit, weight = demanded_weights(parts, number, SIZE, 4096, 200)
    assert int(number @ weight) > 10 * limit
    rule = Devices(ORIGIN, 0 * parts, parts, SIZE, ints([10]), ints([0]), nobody, nobody)
    assert all(int(number @ demand) <= 10 * most for most, demand, _ in rule.sums)


class Ask(NamedTuple):
    """What a node with devices holds, and in which order one more pod of each kind is asked about."""

    size: int
    devices: int
    whole: Ints
    part: Ints
    pods: Ints
    held: Ints
    order: list[int]


def random_ask(choices: Choices) -> Ask:
    size = choices.one([10, 100])
    parts = random_parts(choices, 8, size)
    held = ints(random_parts(choices, 2, size))
    whole, part = ints([*([0] * len(parts)), choices.integer(1, 2), 1]), ints([*parts, 0, size // 3])
    # About as many devices as pods ask for, so that there are often too few.
    pods = choices.array(len(part), 0, 2)
    volume = (int(pods @ (size * whole + part)) + int(held.sum())) / size
    devices = max(0, round(volume) + choices.integer(0, 2) - 1)
    return Ask(size, devices, whole, part, pods, held, choices.any_order(range(len(part))))


@cases(
    100,
    at_least={"they fit": 24, "they do not": 24, "one more does not": 40, "one more fits": 40},
    ask=drawn(random_ask),
)
def test_pods_get_devices_exactly_if_the_packer_says_so(ask: Ask) -> None:
    size, devices, whole, part, x, held, order = ask

    def needed(x: Ints) -> int:
        shares = sorted([*held.tolist(), *np.repeat(part, x)[np.repeat(part, x) > 0].tolist()], reverse=True)
        return int(whole @ x) + pack(tuple(shares), size)[0]

    residual, after = np.zeros(devices, dtype=np.int64), np.zeros(devices, dtype=np.int64)
    verdict = distribute(x, -1, whole, part, size, held, EFFORT, residual)
    assert verdict == (1 if needed(x) <= devices else -1)
    count("they fit" if verdict > 0 else "they do not")
    if verdict < 0:
        return
    assert residual.sum() == devices * size - size * int(whole @ x) - int(part @ x) - int(held.sum())
    assert (residual >= 0).all()
    refused = ints([size + 1, devices + 1])
    for k in order:
        more = x.copy()
        more[k] += 1
        admitted, _ = admit(x, k, whole, part, size, held, True, residual, after, refused, EFFORT)
        assert admitted == (1 if needed(more) <= devices else -1)
        count("one more fits" if admitted > 0 else "one more does not")
        hasty, _ = admit(
            x, k, whole, part, size, held, True, residual, after, ints([size + 1, devices + 1]), QUICK_EFFORT
        )
        assert hasty in (0, admitted)
