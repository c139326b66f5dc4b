"""Whatever regions do at the same time, all of it together is legal, and what they gain adds up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stowplan.models.problem import Attract, Capacity, Held, MovePeak, Placement, Problem, Spread, Topology
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.regions.budgets import budgets
from stowplan.optimizer.regions.drawing import Division, dealt
from stowplan.optimizer.regions.region import Region, joined
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import WHERE, affinity_problems, random_legal_move
from tests.support.random_clusters import Setup, clusters, setups


class Play:
    """Draws a placement that moves have led to, and what each region makes of it."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def check(self, problem: Problem) -> None:
        """Move pods, divide the nodes, move pods in each region, and compare."""
        choices, nodes = self.choices, len(problem.nodes)
        whole = Evaluator(problem)
        best = random_legal_move(choices, problem)
        now = choices.one([best, problem.start])
        regions = choices.one([2, 2, 3])
        region = np.array([choices.integer(0, regions - 1) for _ in range(nodes)])
        division = Division(
            region,
            regions,
            choices.integer(0, 99),
            frozenset(whole.violated(now)),
            budgets(problem, now, best, region, regions),
        )
        before = whole.evaluate(now)
        answers, gained = {}, np.zeros(len(problem.tiers), dtype=np.int64)
        for number in range(regions):
            one = Region(problem, now, division, number)
            judge = Evaluator(one.problem)
            here = judge.evaluate(one.now)
            assert here.legal
            tried = (random_legal_move(choices, one.problem) for _ in range(4))
            there = next((placement for placement in tried if not placement.same_as(one.now)), one.now)
            after = judge.evaluate(there)
            assert after.legal
            answers[number] = one.outside(there)
            gained += np.array(after.values) - here.values
        placed = joined(now, region, answers, nodes)
        found = whole.evaluate(placed)
        assert found.legal, [v for v in found.violations if not v.legal]
        count("moves", not placed.same_as(now))
        assert (np.array(found.values) - before.values <= gained).all(), (found.values, before.values, gained)
        count("exactly", tuple(np.array(found.values) - before.values) == tuple(gained))


def for_regions(problem: Problem) -> Problem:
    """Leave out what no region can know: which group of all leaves the most nodes, and what leavers still hold."""
    tiers = [
        replace(tier, terms=tuple(weighted for weighted in tier.terms if not isinstance(weighted.term, MovePeak)))
        for tier in problem.tiers
    ]
    rules = [replace(rule, held_on_source=False) if isinstance(rule, Capacity) else rule for rule in problem.rules]
    return replace(problem, tiers=tuple(tiers), rules=tuple(rules))


@cases(
    150,
    at_least={"moves": 8, "exactly": 100},
    cluster=clusters(nodes=6, pods=16, broken=False),
    setup=setups(),
    play=drawn(Play),
)
def test_regions_of_clusters_go_together(cluster: Snapshot, setup: Setup, play: Play) -> None:
    play.check(setup.compile(cluster).problem.steered)


@cases(150, at_least={"moves": 15}, problem=affinity_problems(), play=drawn(Play))
def test_regions_with_relations_go_together(problem: Problem, play: Play) -> None:
    play.check(for_regions(problem))


def test_who_needs_one_mate_does_not_change_places_with_who_needs_another() -> None:
    """Pods that both need and give a mate need two that give; guards tell them from those that only need one."""
    domain = np.array([0, 0, 1, 1])
    zones = Topology("zone", domain, ("a", "b"))
    held = Held(*np.zeros((3, 4), dtype=np.int64))
    near = Attract(WHERE, np.array([0, 1]), np.array([0, 2]), (zones,), held)  # both, seeker, target
    now = Placement.of([(1, 0, 1), (2, 0, 1), (0, 2, 1), (2, 2, 1), (3, 1, 1), (3, 3, 1)])
    names = tuple(f"c{c}" for c in range(4)), tuple(f"n{n}" for n in range(4))
    none = np.zeros(4, dtype=np.int64)
    problem = Problem(names[1], names[0], np.array([1, 1, 2, 2]), none, now, (near,), ())
    apart = np.array([0, 1, 0, 1])
    one = Region(problem, now, Division(apart, 2, 0, frozenset(), {}), 0)
    changed = Placement.of([(0, 0, 1), (1, 2, 1), (2, 2, 2), (3, 1, 1), (3, 3, 1)])
    assert not Evaluator(problem).evaluate(changed).legal
    inner = Placement.of([(c, n // 2, k) for c, n, k in changed.entries() if n % 2 == 0])
    assert not Evaluator(one.problem).evaluate(inner).legal


def test_a_pod_alone_stays_with_mates_outside_the_problem_that_are_in_another_region() -> None:
    hosts = Topology("host", np.arange(4), tuple("abcd"))
    outside = Held(np.array([0, 0, 0, 1]), *np.zeros((2, 4), dtype=np.int64))
    near = Attract(WHERE, np.array([0]), np.array([0]), (hosts,), outside)
    now = Placement.of([(0, 0, 1)])
    one_each = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    problem = Problem(tuple("abcd"), ("c",), *one_each, now, (near,), ())
    region = Division(np.array([0, 0, 1, 1]), 2, 0, frozenset(Evaluator(problem).violated(now)), {})
    one = Region(problem, now, region, 0)
    assert not Evaluator(problem).evaluate(Placement.of([(0, 1, 1)])).legal
    assert not Evaluator(one.problem).evaluate(Placement.of([(0, 1, 1)])).legal


def test_who_owns_what_has_pods_of_it() -> None:
    """A workload in one region of two is that region's own, whatever is drawn."""
    zones = Topology("zone", np.array([0, 1, 0, 1]), ("a", "b"))
    spread = Spread(WHERE, np.array([0]), np.array([0]), zones, 1, 1, *np.zeros((2, 2), dtype=np.int64))
    now = Placement.of([(0, 0, 1), (0, 1, 1)])
    problem = Problem(tuple("abcd"), ("c",), np.array([2]), np.zeros(1, dtype=np.int64), now, (spread,), ())
    for seed in range(6):
        one = Region(problem, now, Division(np.array([0, 0, 1, 1]), 2, seed, frozenset(), {}), 0)
        assert [type(rule) for rule in one.problem.rules] == [Spread]


def test_nodes_are_dealt_in_the_order_of_their_costs() -> None:
    cost = np.repeat([9.0, 1.0, 0.0], [4, 9, 28])
    region = dealt(cost, 4, np.random.default_rng(0))
    assert np.bincount(region[:4]).tolist() == [1, 1, 1, 1]
    assert np.ptp(np.bincount(region)) == 1
    assert not (region == dealt(cost, 4, np.random.default_rng(1))).all()
