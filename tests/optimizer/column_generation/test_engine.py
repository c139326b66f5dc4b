"""Patterns against brute force: bounds never above the optimum, placements legal, proofs true."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume

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
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.column_generation import PatternEngine
from stowplan.optimizer.column_generation.pricing.meet_in_the_middle import MeetInTheMiddle, key_of
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.structure import Structure, structure_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.support.brute_force import best, legal_values
from tests.support.cases import cases, count
from tests.support.choices import Choices, Seeded, drawn
from tests.support.random_clusters import Setup, clusters, setups

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


def random_packing(choices: Choices, *, plain: bool = False) -> Problem:
    """Build a tiny random packing with two groups of nodes and every rule that patterns read, perhaps broken.

    Parameters
    ----------
    plain
        With no rules but capacities and limits by node, and with all pods waiting.
    """
    classes, nodes, rows = choices.integer(2, 4), choices.integer(2, 3), choices.integer(1, 3)
    size = choices.array(classes, 1, 2)
    # Now and then a pod makes room for others.
    least = -2 if choices.chance(0.25) else 0
    demands = [choices.array(classes, least, 6) for _ in range(rows)]
    wide = choices.array(nodes, 0, 1)
    residual = [choices.integer(4, 8) + wide * choices.integer(0, 3) for _ in range(rows)]
    hostname = Topology("hostname", np.arange(nodes), tuple(f"n{i}" for i in range(nodes)))
    zone = Topology("zone", np.arange(nodes) // 2, tuple(f"z{i}" for i in range((nodes + 1) // 2)))
    topology = hostname if plain or not choices.chance(0.33) else zone
    rules: list[Rule] = []
    if choices.chance(0.4):
        group = ints(choices.subset(range(classes), 0.6))
        held = choices.array(topology.size, 0, 1)
        rules.append(AtMost(ORIGIN, group, topology, choices.integer(1, 2), held))
    if not plain:
        rules += _other_rules(choices, classes, nodes, topology)
    start = [] if plain else [(c, choices.integer(0, nodes - 1), 1) for c in range(classes) if choices.chance(0.35)]
    cost = choices.array(nodes, 1, 2) if choices.chance(0.5) else np.ones(nodes, dtype=np.int64)
    in_use = choices.array(nodes, 0, 4) // 4
    tiers = [
        unplaced(choices.array(classes, 0, 1)),
        unplaced(choices.array(classes, 1, 3)),
        opened(cost, in_use),
    ]
    return packing(demands, residual, size, tiers, tuple(rules), Placement.of(start))


def _other_rules(choices: Choices, classes: int, nodes: int, topology: Topology) -> list[Rule]:
    rules: list[Rule] = []
    if choices.chance(0.4):
        rules.append(Allow(ORIGIN, choices.array(classes, 0, 1), choices.array((2, nodes), 0, 9) < 7))
    if choices.chance(0.4):
        seekers, targets = (ints(choices.subset(range(classes))) for _ in range(2))
        held = Held(*(choices.array(nodes, 0, 4) // 4 for _ in range(3)))
        rules.append(Repel(ORIGIN, seekers, targets, topology, held))
    if choices.chance(0.4):
        use, limit = choices.array((2, classes), -1, 1), choices.array(nodes, 1, 3)
        there = choices.array((2, nodes), 0, 9) >= 8
        rules.append(Distinct(ORIGIN, use[0] % 2, use[1], (ints([0]), ints([0, 1])), limit, there))
    return rules


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


@cases(13, at_least={"above nothing": 6}, problem=drawn(random_packing))
def test_no_bound_is_above_what_can_be_had(problem: Problem) -> None:
    values, bounds = closed(problem)
    everything = Everything(problem)
    for tier, bound in enumerate(bounds):
        if bound is not None:
            assert bound <= everything.lowest(values[:tier]) <= values[tier]
            count("above nothing", bound > 0)


@cases(8, at_least={"above nothing": 3}, problem=drawn(random_packing, plain=True))
def test_packings_with_capacities_and_limits_by_node_are_solved_and_proven(problem: Problem) -> None:
    values, bounds = closed(problem)
    assert values == best(problem)
    assert all(bound in (None, value) for bound, value in zip(bounds, values, strict=True))  # `None`: it is constant
    count("above nothing", any(values))


@cases(15, at_least={"above nothing": 3}, cluster=clusters(), setup=setups())
def test_bounds_of_clusters_are_never_above_the_optimum(cluster: Snapshot, setup: Setup) -> None:
    problem = setup.compile(cluster).problem.steered
    evaluator = Evaluator(problem)
    engine = PatternEngine(evaluator)
    everything = Everything(problem)
    for tier in range(len(problem.tiers)):
        reached = evaluator.evaluate(problem.start).values[:tier]
        outcome = engine.close_tier(tier, reached, problem.start, Deadline(0.3, deterministic=True))
        if outcome is not None:
            assert outcome.bound is not None
            assert outcome.bound <= everything.lowest(reached)
            count("above nothing", outcome.bound > 0)


def patterns_of(s: Structure, g: int) -> list[tuple[int, ...]]:
    """Return all patterns of a group. With pods that make room, parts of a pattern need not be patterns."""
    ways = itertools.product(*(range(int(most) + 1) for most in s.upper[g]))
    return [x for x in ways if (ints(x) @ s.demand <= s.residual[g]).all()]


@dataclass(frozen=True)
class Prices:
    """What kinds are worth, from which worth on patterns are wanted, and how much room they may leave."""

    value: Ints
    share: int
    waste: Ints | None

    def of(self, kinds: int) -> Ints:
        return np.resize(self.value, kinds)

    def least(self, top: int) -> int:
        return top * self.share // 10

    def may_waste(self, rows: int, endless: int) -> Ints:
        return np.full(rows, endless) if self.waste is None else np.resize(self.waste, rows)


def random_prices(choices: Choices) -> Prices:
    waste = choices.array(3, 0, 11) if choices.chance(0.5) else None
    return Prices(choices.array(6, 0, 49), choices.integer(0, 10), waste)


@cases(15, at_least={"patterns wanted": 16}, problem=drawn(random_packing), prices=drawn(random_prices))
def test_pricing_finds_the_best_pattern_and_all_above_a_value(problem: Problem, prices: Prices) -> None:
    s = structure_of(Evaluator(problem))
    assert s is not None
    value = prices.of(s.kinds)
    for g in range(s.groups):
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
        least, waste = prices.least(top), prices.may_waste(s.demand.shape[1], 1000)
        left = {x: s.residual[g] - ints(x) @ s.demand for x in known}
        found = pricer.above(value, least, 10**6, 10_000, waste)
        assert found.complete
        got = {tuple(row.tolist()) for row in found.patterns}
        assert len(got) == len(found.patterns)
        tight = {x for x, worth in known.items() if worth >= least and (left[x] <= waste).all()}
        more = {x: [(*x[:k], x[k] + 1, *x[k + 1 :]) for k in range(s.kinds)] for x in tight}
        wanted = {x for x in tight if not any(y in tight for y in more[x])}
        assert wanted <= got
        # Rows that cannot be full are not looked at.
        assert got <= {x for x, worth in known.items() if worth >= least}
        count("patterns wanted", len(wanted))


@dataclass(frozen=True)
class Filling:
    """A node, kinds of pods to fill it with, and how much of each row may be left."""

    demand: Ints
    residual: Ints
    upper: Ints
    waste: Ints


def random_filling(choices: Choices) -> Filling:
    """Build a node that one way at least fills: its room is what that takes, and some of what may be left."""
    kinds, rows = choices.integer(2, 6), choices.integer(1, 3)
    demand = choices.array((kinds, rows), -3 if choices.chance(0.33) else 1, 39)
    upper = choices.array(kinds, 1, 3)
    # Nothing may be left of some rows, little of others.
    waste = choices.array(rows, 1, 29) * choices.array(rows, 0, 1)
    way = np.array([choices.integer(0, int(most)) for most in upper])
    residual = np.maximum(1, way @ demand) + np.array([choices.integer(0, int(most)) for most in waste])
    return Filling(demand, residual, upper, waste)


@cases(15, at_least={"patterns wanted": 48}, filling=drawn(random_filling))
def test_meeting_in_the_middle_misses_no_pattern_that_fills_a_node(filling: Filling) -> None:
    demand, residual, upper, waste = filling.demand, filling.residual, filling.upper, filling.waste
    key = key_of(demand, residual, waste, rare=0)
    assume(key is not None)
    assert key is not None
    meet_in_the_middle = MeetInTheMiddle(key, demand, residual, waste, longest=400_000)
    ways = itertools.product(*(range(int(most) + 1) for most in upper))
    left = {x: residual - ints(x) @ demand for x in ways}
    full = {x for x, free in left.items() if any(x) and ((free >= 0) & (free <= waste)).all()}
    for held in (0 * upper, *np.eye(len(upper), dtype=np.int64)):
        found, _, complete = meet_in_the_middle.find(upper, held, 10**8, 20_000)
        assert complete
        wanted = sorted(x for x in full if (ints(x) >= held).all())
        assert sorted(tuple(row.tolist()) for row in found) == wanted
        count("patterns wanted", len(wanted))


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
    problem = random_packing(Seeded(7))
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
