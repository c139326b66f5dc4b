"""Whatever regions do at the same time, all of it together is legal, and what they gain adds up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stowplan.models.problem import MovePeak, Problem
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.regions.budgets import budgets
from stowplan.optimizer.regions.drawing import dealt
from stowplan.optimizer.regions.region import Division, Region, joined
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import affinity_problems, random_legal_move
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
            tuple(whole.violated(now)),
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


def without_peaks(problem: Problem) -> Problem:
    """Leave out what no region can know: which group of all leaves the most nodes."""
    tiers = [
        replace(tier, terms=tuple(weighted for weighted in tier.terms if not isinstance(weighted.term, MovePeak)))
        for tier in problem.tiers
    ]
    return replace(problem, tiers=tuple(tiers))


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
    play.check(without_peaks(problem))


def test_nodes_are_dealt_in_the_order_of_their_costs() -> None:
    cost = np.repeat([9.0, 1.0, 0.0], [4, 9, 28])
    region = dealt(cost, 4, np.random.default_rng(0))
    assert np.bincount(region[:4]).tolist() == [1, 1, 1, 1]
    assert np.ptp(np.bincount(region)) == 1
    assert not (region == dealt(cost, 4, np.random.default_rng(1))).all()
