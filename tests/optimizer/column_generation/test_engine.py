"""Patterns against brute force: bounds never above the optimum, placements legal, proofs true."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    Allow,
    AtMost,
    Capacity,
    Distinct,
    Held,
    Open,
    Origin,
    Placement,
    Problem,
    Repel,
    Rule,
    Tier,
    Topology,
    Unplaced,
    Weighted,
)
from stowplan.models.stop import Stop
from stowplan.optimizer.column_generation import PatternEngine
from stowplan.optimizer.column_generation.pricing.meet_in_the_middle import MeetInTheMiddle, key_of
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.structure import Structure, structure_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.optimizer.test_brute_force import compiled
from tests.support.brute_force import best, legal_values

ORIGIN = Origin("test")


def ints(values: object) -> Ints:
    return np.array(values, dtype=np.int64)


def packing(
    demands: list[Ints],
    residual: list[Ints],
    size: Ints,
    tiers: list[Tier],
    rules: tuple[Rule, ...] = (),
    start: Placement | None = None,
) -> Problem:
    """Return a problem of capacities: ``demands[r][c]`` of what there is ``residual[r][n]``."""
    nodes, classes = len(residual[0]), len(size)
    start = start or Placement.of([])
    capacities = [
        Capacity(ORIGIN, d, r, np.ones(nodes, dtype=np.int64)) for d, r in zip(demands, residual, strict=True)
    ]
    return Problem(
        tuple(f"n{i}" for i in range(nodes)),
        tuple(f"c{i}" for i in range(classes)),
        size,
        size - start.placed(classes),
        start,
        (*capacities, *rules),
        tuple(tiers),
    )


def unplaced(cost: Ints) -> Tier:
    return Tier("pending", (Weighted(1, Unplaced(ORIGIN, cost)),))


def opened(cost: Ints, held: Ints | None = None) -> Tier:
    return Tier("nodes", (Weighted(1, Open(ORIGIN, cost, np.zeros_like(cost) if held is None else held)),))


def random_packing(seed: int) -> Problem:
    """Return a tiny random packing with two groups of nodes and every rule that patterns read, perhaps broken."""
    random = np.random.default_rng(seed)
    classes, nodes, rows = int(random.integers(2, 5)), int(random.integers(2, 4)), int(random.integers(1, 4))
    size = random.integers(1, 3, classes)
    # Now and then a pod makes room for others.
    demands = [random.integers(-2 if seed % 4 == 1 else 0, 7, classes) for _ in range(rows)]
    wide = random.integers(0, 2, nodes)
    residual = [ints(random.integers(4, 9) + wide * int(random.integers(0, 4))) for _ in range(rows)]
    hostname = Topology("hostname", np.arange(nodes), tuple(f"n{i}" for i in range(nodes)))
    zone = Topology("zone", np.arange(nodes) // 2, tuple(f"z{i}" for i in range((nodes + 1) // 2)))
    topology = zone if seed % 3 == 0 else hostname
    domains = topology.size
    rules: list[Rule] = []
    if random.random() < 0.4:
        rules.append(Allow(ORIGIN, random.integers(0, 2, classes), random.random((2, nodes)) < 0.7))
    if random.random() < 0.4:
        group = np.flatnonzero(random.random(classes) < 0.6)
        rules.append(AtMost(ORIGIN, group, topology, int(random.integers(1, 3)), random.integers(0, 2, domains)))
    if random.random() < 0.4:
        seekers, targets = (np.flatnonzero(random.random(classes) < 0.5) for _ in range(2))
        held = Held(*(random.integers(0, 5, nodes) // 4 for _ in range(3)))
        rules.append(Repel(ORIGIN, seekers, targets, topology, held))
    if random.random() < 0.4:
        rules.append(
            Distinct(
                ORIGIN,
                random.integers(0, 2, classes),
                random.integers(-1, 2, classes),
                (ints([0]), ints([0, 1])),
                random.integers(1, 4, nodes),
                random.random((2, nodes)) < 0.2,
            )
        )
    entries = [(c, int(random.integers(0, nodes)), 1) for c in range(classes) if random.random() < 0.35]
    tiers = [
        unplaced(random.integers(0, 2, classes)),
        unplaced(random.integers(1, 4, classes)),
        opened(
            random.integers(1, 3, nodes) if seed % 2 else np.ones(nodes, dtype=np.int64),
            random.integers(0, 5, nodes) // 4,
        ),
    ]
    return packing(demands, residual, size, tiers, tuple(rules), Placement.of(entries))


def closed(problem: Problem, seconds: float = 0.5) -> tuple[tuple[int, ...], list[int | None]]:
    """Settle every tier deterministically; return the values in the end and the bounds."""
    evaluator, at = Evaluator(problem), problem.start
    engine = PatternEngine(evaluator)
    bounds: list[int | None] = []
    for tier in range(len(problem.tiers)):
        values = evaluator.evaluate(at).values
        outcome = engine.close_tier(tier, values[:tier], at, Deadline(seconds, deterministic=True))
        bounds.append(outcome.bound if outcome else None)
        if outcome and outcome.placement is not None:
            at = outcome.placement
            found = evaluator.evaluate(at)
            assert found.legal
            assert all(now <= before for now, before in zip(found.values, values[:tier], strict=False))
            assert found.values[tier] == outcome.value < values[tier]
    return evaluator.evaluate(at).values, bounds


class Everything:
    """The values of all legal placements of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.values = legal_values(problem)

    def lowest(self, reached: tuple[int, ...]) -> int:
        """Return the least value of the tier after those reached, among the placements that keep them."""
        kept = [v for v in self.values if all(a <= b for a, b in zip(v, reached, strict=False))]
        return min(v[len(reached)] for v in kept)


@pytest.mark.parametrize("seed", range(40))
def test_no_bound_is_above_what_can_be_had(seed: int) -> None:
    problem = random_packing(seed)
    values, bounds = closed(problem)
    everything = Everything(problem)
    for tier, bound in enumerate(bounds):
        if bound is not None:
            assert bound <= everything.lowest(values[:tier]) <= values[tier]


@pytest.mark.parametrize("seed", range(100, 130))
def test_packings_with_capacities_only_are_solved_and_proven(seed: int) -> None:
    problem = random_packing(seed)
    rules = tuple(rule for rule in problem.rules if isinstance(rule, Capacity | AtMost) and _by_node(rule))
    problem = Problem(
        problem.nodes, problem.classes, problem.size, problem.size, Placement.of([]), rules, problem.tiers
    )
    values, bounds = closed(problem)
    assert values == best(problem)
    assert tuple(bound or 0 for bound in bounds) == values


def _by_node(rule: Rule) -> bool:
    return isinstance(rule, Capacity) or (isinstance(rule, AtMost) and rule.topology.key == "hostname")


@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_on_random_clusters(seed: int) -> None:
    problem = compiled(seed).problem
    evaluator = Evaluator(problem)
    engine = PatternEngine(evaluator)
    everything = Everything(problem)
    for tier in range(len(problem.tiers)):
        reached = evaluator.evaluate(problem.start).values[:tier]
        outcome = engine.close_tier(tier, reached, problem.start, Deadline(0.3, deterministic=True))
        if outcome is None:
            continue
        assert outcome.bound is not None
        assert outcome.bound <= everything.lowest(reached)


def structure(seed: int) -> Structure:
    found = structure_of(Evaluator(random_packing(seed)))
    assert found is not None
    return found


def patterns_of(s: Structure, g: int) -> list[tuple[int, ...]]:
    """Return all patterns of a group. With pods that make room, parts of a pattern need not be patterns."""
    ways = itertools.product(*(range(int(most) + 1) for most in s.upper[g]))
    return [x for x in ways if (ints(x) @ s.demand <= s.residual[g]).all()]


@pytest.mark.parametrize("seed", range(60))
def test_pricing_finds_the_best_pattern_and_all_above_a_value(seed: int) -> None:
    s = structure(seed)
    random = np.random.default_rng(seed)
    for g in range(s.groups):
        value = random.integers(0, 50, s.kinds)
        known = {x: int(ints(x) @ value) for x in patterns_of(s, g)}
        top = max(known.values())
        pricer = Pricer(s, g)
        priced = pricer.best(value, 0, 10**6)
        assert priced.complete
        assert priced.bound == top
        if top:
            assert max(int(row @ value) for row in priced.patterns) == top
        for row in priced.patterns:
            assert tuple(row.tolist()) in known
        # Cut off at once, the bound is still one.
        assert pricer.best(value, 0, 1).bound >= top
        # All patterns above a value that leave little room, as long as nothing can be added to them.
        least = int(random.integers(0, top + 1))
        waste = random.integers(0, 12, s.demand.shape[1]) if seed % 2 else np.full(s.demand.shape[1], 1000)
        left = {x: s.residual[g] - ints(x) @ s.demand for x in known}
        found = pricer.above(value, least, 10**6, 10_000, waste)
        assert found.complete
        got = {tuple(row.tolist()) for row in found.patterns}
        assert len(got) == len(found.patterns)
        tight = {x for x, worth in known.items() if worth >= least and (left[x] <= waste).all()}
        more = {x: [(*x[:k], x[k] + 1, *x[k + 1 :]) for k in range(s.kinds)] for x in tight}
        assert {x for x in tight if not any(y in tight for y in more[x])} <= got
        # Rows that cannot be full are not looked at.
        assert got <= {x for x, worth in known.items() if worth >= least}


@pytest.mark.parametrize("seed", range(40))
def test_meeting_in_the_middle_misses_no_pattern_that_fills_a_node(seed: int) -> None:
    random = np.random.default_rng(seed)
    kinds, rows = int(random.integers(2, 7)), int(random.integers(1, 4))
    demand = random.integers(-3 if seed % 3 == 0 else 1, 40, (kinds, rows))
    residual, upper = random.integers(80, 150, rows), random.integers(1, 4, kinds)
    # Nothing may be left of some rows, little of others.
    waste = np.where(random.random(rows) < 0.5, 0, random.integers(1, 30, rows))
    key = key_of(demand, residual, waste, rare=0)
    assert key is not None
    meet_in_the_middle = MeetInTheMiddle(key, demand, residual, waste, longest=400_000)
    ways = itertools.product(*(range(int(most) + 1) for most in upper))
    left = {x: residual - ints(x) @ demand for x in ways}
    full = {x for x, free in left.items() if any(x) and ((free >= 0) & (free <= waste)).all()}
    for held in (0 * upper, *np.eye(kinds, dtype=np.int64)):
        found, _, complete = meet_in_the_middle.find(upper, held, 10**8, 20_000)
        assert complete
        wanted = sorted(x for x in full if (ints(x) >= held).all())
        assert sorted(tuple(row.tolist()) for row in found) == wanted


def triplets(bins: int, rows: int, seed: int) -> Problem:
    """Return triples of items that fill a bin exactly, shuffled: the optimum is the number of triples."""
    random = np.random.default_rng(seed)
    items = []
    for _ in range(bins):
        first, second = random.integers(20, 45, (2, rows))
        items += [first, second, 100 - first - second]
    sizes = ints(items)[random.permutation(3 * bins)]
    nodes = 3 * bins
    start = Placement.of((i, i, 1) for i in range(nodes))
    return packing(
        [np.ascontiguousarray(sizes[:, r]) for r in range(rows)],
        [np.full(nodes, 100)] * rows,
        np.ones(nodes, dtype=np.int64),
        [opened(np.ones(nodes, dtype=np.int64))],
        start=start,
    )


@pytest.mark.parametrize(("bins", "rows"), [(12, 2), (20, 3), (40, 5)])
def test_triplets_are_packed_perfectly_and_proven(bins: int, rows: int) -> None:
    values, bounds = closed(triplets(bins, rows, seed=bins), seconds=20)
    assert values == (bins,)
    assert bounds == [bins]


def test_the_same_answer_on_every_run() -> None:
    problem = random_packing(7)
    assert closed(problem) == closed(problem)
    big = triplets(15, 1, seed=3)
    evaluator = Evaluator(big)
    first, second = (
        PatternEngine(evaluator).close_tier(0, (), big.start, Deadline(0.5, deterministic=True)) for _ in range(2)
    )
    assert first is not None
    assert second is not None
    assert (first.value, first.bound, first.columns) == (second.value, second.bound, second.columns)
    assert (first.placement is None) == (second.placement is None)
    if first.placement is not None and second.placement is not None:
        assert first.placement.same_as(second.placement)


def test_a_word_to_stop_is_heard() -> None:
    problem = triplets(30, 1, seed=5)
    stop = Stop()
    stop.set()
    outcome = PatternEngine(Evaluator(problem)).close_tier(0, (), problem.start, Deadline(60, stop=stop))
    assert outcome is not None
    assert outcome.seconds < 1
    assert outcome.bound is not None
    assert outcome.bound <= 30


def test_a_tier_without_pods_or_nodes_to_count_is_left_alone() -> None:
    problem = packing([ints([1])], [ints([4, 4])], ints([2]), [Tier("nothing", ())])
    assert PatternEngine(Evaluator(problem)).close_tier(0, (), problem.start, Deadline(1)) is None
