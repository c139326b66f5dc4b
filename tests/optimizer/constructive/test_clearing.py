"""Clearing: legal, nodes that stay in use have their pods back, and most of what emptying them one by one does."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import Objective, TierSettings
from stowplan.models.problem import Allow, Capacity, Open, Placement, Problem, Tier, Weighted
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
from tests.support.problems import WHERE, ints
from tests.support.random_clusters import random_cluster

FOREVER = Deadline(1e6)
MANY_NODES = ConstructiveParameters(clearing_table=0)


def pack_problem(choices: Choices) -> Problem:
    """Return a tiny cluster of which as few nodes as possible are to be in use."""
    objective = Objective(name="test", tiers=(TierSettings(name="nodes", nodes=1),))
    return make_problem(random_cluster(choices, nodes=8, pods=16, broken=None), Settings(objective=objective)).problem


@cases(400, at_least={"emptied": 10, "several at once": 5, "some are not": 5}, problem=drawn(pack_problem))
def test_what_is_cleared_is_legal_and_counted(problem: Problem) -> None:
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
    started = problem.start.per_node(len(problem.nodes)) > 0
    assert (started & (state.pods == 0)).sum() == emptied
    count("emptied", emptied > 0)
    count("several at once", emptied > 1)
    count("some are not", bool((started & (state.pods > 0)).any()) and emptied > 0)


@cases(400, at_least={"some": 20, "several": 2, "not all": 20}, problem=drawn(pack_problem))
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
    count("several", int(made.sum()) > 1)
    count("not all", bool(len(made)) and not made.all())


@pytest.mark.parametrize("seed", range(3))
def test_it_empties_most_of_what_one_node_after_another_does(seed: int) -> None:
    problem = make_problem(synthetic_snapshot(150, 1500, seed, fill=0.5), Settings(objective="pack")).problem
    tier = next(t for t, tier in enumerate(problem.tiers) if Clearing.suits(problem, t, MANY_NODES))
    one, many = State(Evaluator(problem), problem.start), State(Evaluator(problem), problem.start)
    reference = empty_nodes(one, tier, FOREVER, ConstructiveParameters())
    assert Clearing(many, tier, MANY_NODES).run(FOREVER) > 0.7 * reference > 0
    assert Evaluator(problem).evaluate(many.placement).legal


def test_nodes_that_are_not_emptied_have_their_pods_back() -> None:
    """Of two nodes with two pods each, a third takes two and a half: one pod has to return to the node it left."""
    nodes = ("a", "b", "c")
    room = Capacity(WHERE, ints([2, 2, 2, 3, 9]), ints([9, 9, 14]), np.full(3, 1))
    start = Placement.of([(0, 0, 1), (1, 0, 1), (2, 1, 1), (3, 1, 1), (4, 2, 1)])
    tier = Tier("nodes", (Weighted(1, Open(WHERE, ints([1, 1, 1]), ints([0, 0, 0]))),))
    problem = Problem(nodes, tuple("defgh"), ints([1] * 5), ints([0] * 5), start, (room,), (tier,))
    state = State(Evaluator(problem), start)
    chosen = ConstructiveParameters(clearing_table=0, clearing_first=0.7)
    assert Clearing(state, 0, chosen).run(FOREVER) == 1
    assert Evaluator(problem).evaluate(state.placement).legal
    left = problem.start.beyond(state.placement, 3).node
    assert len(set(left.tolist())) == 1


def test_nodes_that_failed_do_not_keep_others_from_being_cleared() -> None:
    """A pod may only be where it is, so its node is tried in vain, though it has the fewest pods."""
    tied = 20
    nodes, classes = tied + 20, tied + 40
    mask = np.ones((1 + tied, nodes), dtype=np.bool_)
    mask[1:] = np.eye(tied, nodes, dtype=np.bool_)
    row = ints([1 + c if c < tied else 0 for c in range(classes)])
    on = [(c, c, 1) for c in range(tied)] + [(tied + i, tied + i // 2, 1) for i in range(40)]
    room = Capacity(WHERE, ints([1] * classes), ints([1] * tied + [40] * 20), np.full(nodes, 1))
    tier = Tier("nodes", (Weighted(1, Open(WHERE, ints([1] * nodes), ints([0] * nodes))),))
    names = tuple(f"n{n}" for n in range(nodes))
    problem = Problem(
        names,
        tuple(f"c{c}" for c in range(classes)),
        ints([1] * classes),
        ints([0] * classes),
        Placement.of(on),
        (Allow(WHERE, row, mask), room),
        (tier,),
    )
    assert Clearing(State(Evaluator(problem), problem.start), 0, MANY_NODES).run(FOREVER) > 5


def test_time_ends_it() -> None:
    problem = make_problem(synthetic_snapshot(20, 100, 1), Settings(objective="pack")).problem
    tier = next(t for t, tier in enumerate(problem.tiers) if Clearing.suits(problem, t, MANY_NODES))
    state = State(Evaluator(problem), problem.start)
    assert Clearing(state, tier, MANY_NODES).run(Deadline(0.0)) == 0
    assert state.placement is problem.start
