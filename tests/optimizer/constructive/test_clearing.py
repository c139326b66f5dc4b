"""Clearing: legal, nodes that stay in use have their pods back, and most of what emptying them one by one does."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import Objective, TierSettings
from stowplan.models.problem import Problem
from stowplan.models.settings import Settings
from stowplan.optimizer.constructive.clearing import Clearing
from stowplan.optimizer.constructive.emptying import empty_nodes
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.constructive.together import make_together
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.settings.problem import make_problem
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.random_clusters import random_cluster

FOREVER = Deadline(1e6)
MANY_NODES = ConstructiveParameters(clearing_table=0)


def pack_problem(choices: Choices) -> Problem:
    """Return a tiny cluster of which as few nodes as possible are to be in use."""
    objective = Objective(name="test", tiers=(TierSettings(name="nodes", nodes=1),))
    return make_problem(random_cluster(choices, broken=None), Settings(objective=objective)).problem


@cases(400, at_least={"emptied": 10, "moved": 10}, problem=drawn(pack_problem))
def test_what_is_cleared_is_legal_and_nothing_else_left_its_node(problem: Problem) -> None:
    tier = next((t for t, tier in enumerate(problem.tiers) if tier.name == "nodes"), None)
    if tier is None or not Clearing.suits(problem, tier, MANY_NODES):
        return
    evaluator = Evaluator(problem)
    state = State(evaluator, problem.start)
    emptied = Clearing(state, tier, ConstructiveParameters(clearing_table=0, clearing_first=0.5)).run(FOREVER)
    before, after = evaluator.evaluate(problem.start), evaluator.evaluate(state.placement)
    assert after.legal, after.violations
    assert after.values[:tier] <= before.values[:tier]
    assert before.values[tier] - after.values[tier] >= 0
    left = problem.start.beyond(state.placement, len(problem.nodes)).node
    gone = np.unique(left[state.pods[left] == 0])
    assert len(gone) == emptied
    count("emptied", emptied > 0)
    count("moved", after.moves > 0)


@cases(450, at_least={"some": 20, "not all": 20}, problem=drawn(pack_problem))
def test_moves_made_together_are_legal_together(problem: Problem) -> None:
    """Each node of the first half offers a pod to the node opposite."""
    evaluator = Evaluator(problem)
    state = State(evaluator, problem.start)
    half = state.nodes // 2
    entries = np.flatnonzero(state.placement.node < half)
    entries = entries[np.unique(state.placement.node[entries], return_index=True)[1]]
    target = state.placement.node[entries] + half
    fits = state.admit(state.placement.cls[entries], target)
    entries, target = entries[fits], target[fits]
    start = state.placement
    made = make_together(state, entries, target, np.zeros(len(entries), dtype=np.int64))
    after = evaluator.evaluate(state.placement)
    assert after.legal, after.violations
    assert start.moved(state.placement, state.nodes) == made.sum()
    count("some", bool(made.any()))
    count("not all", bool(len(made)) and not made.all())


@pytest.mark.parametrize("seed", range(3))
def test_it_empties_most_of_what_one_node_after_another_does(seed: int) -> None:
    problem = make_problem(synthetic_snapshot(150, 1500, seed, fill=0.5), Settings(objective="pack")).problem
    tier = next(t for t, tier in enumerate(problem.tiers) if Clearing.suits(problem, t, MANY_NODES))
    one, many = State(Evaluator(problem), problem.start), State(Evaluator(problem), problem.start)
    reference = empty_nodes(one, tier, FOREVER, ConstructiveParameters())
    assert Clearing(many, tier, MANY_NODES).run(FOREVER) > 0.7 * reference > 0


def test_time_ends_it() -> None:
    problem = make_problem(synthetic_snapshot(20, 100, 1), Settings(objective="pack")).problem
    tier = next(t for t, tier in enumerate(problem.tiers) if Clearing.suits(problem, t, MANY_NODES))
    state = State(Evaluator(problem), problem.start)
    assert Clearing(state, tier, MANY_NODES).run(Deadline(0.0)) == 0
    assert state.placement is problem.start
