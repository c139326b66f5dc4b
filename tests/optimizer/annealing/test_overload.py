"""Capacities that are overloaded on the way: what the search state counts of them, and what annealing gains."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Capacity, Origin, Placement, Prefer, Problem, Tier, Weighted
from stowplan.optimizer.annealing.anneal import anneal
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import evaluate_delta, shift
from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.annealing.schedule import overload_penalty
from stowplan.optimizer.annealing.state_builder import OVERLOAD, build_state, placement_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.support.cases import cases, count
from tests.support.choices import steps
from tests.support.problems import ints, problems_with_room

WHERE = Origin("test")


def _load(rule: Capacity, problem: Problem, placement: Placement) -> Ints:
    """``[N]`` what is charged; what started on a node stays charged there if the rule says so."""
    now = {(c, n): k for c, n, k in placement.entries()}
    before = {(c, n): k for c, n, k in problem.start.entries()} if rule.held_on_source else {}
    load = np.zeros(len(problem.nodes), dtype=np.int64)
    for c, n in now.keys() | before.keys():
        load[n] += rule.demand[c] * max(now.get((c, n), 0), before.get((c, n), 0))
    return load


@cases(40, at_least={"overloads": 24, "for a penalty only": 12}, problem=problems_with_room(), walk=steps(80, 2))
def test_overload_follows_every_move_and_is_predicted(problem: Problem, walk: list[tuple[int, ...]]) -> None:
    rules = [rule for rule in problem.rules if isinstance(rule, Capacity)]
    state = build_state(Evaluator(problem), problem.start)
    sound = [_load(rule, problem, problem.start) <= np.maximum(0, rule.free) for rule in rules]
    penalty = state.fix[: len(problem.nodes), state.head[at.H_F_PENALTY] :][:, : len(rules)]
    nodes, tiers = len(problem.nodes), len(problem.tiers)
    change = np.zeros(tiers + 2, dtype=np.int64)
    for which, where in walk:
        p, target = which % problem.pods, where % (nodes + 1)
        source = int(state.pod[p, at.P_NODE])
        if source == target:
            continue
        before = int(state.value[tiers + at.OVERLOAD])
        strict = evaluate_delta(state, p, -1, source, target, change, 0)
        for_a_penalty = evaluate_delta(state, p, -1, source, target, change, 1000 * OVERLOAD)
        shift(state, p, target)
        over = [
            np.where(fine, np.maximum(0, _load(rule, problem, placement_of(state)) - np.maximum(0, rule.free)), 0)
            for rule, fine in zip(rules, sound, strict=True)
        ]
        assert state.value[tiers + at.OVERLOAD] == sum(int(o @ penalty[:, r]) for r, o in enumerate(over))
        assert state.value[tiers + at.OVERLOADED] == sum(np.count_nonzero(o) for o in over)
        assert for_a_penalty or not strict
        if for_a_penalty:
            assert change[tiers + 1] == state.value[tiers + at.OVERLOAD] - before
            count("for a penalty only", not strict)
        count("overloads", bool(state.value[tiers + at.OVERLOADED]))


def two_full_nodes() -> Problem:
    """Build a problem where two pods of each node should change places, and no pod nor any two can do so alone."""
    demand = ints([10, 10, 9, 11, 0])
    prefer = Prefer(WHERE, np.arange(5), np.array([[5, 0], [5, 0], [0, 5], [0, 5], [0, 5]]))
    start = Placement.of([(0, 0, 1), (1, 0, 1), (2, 1, 1), (3, 1, 1), (4, 0, 1)])
    rules = (Capacity(WHERE, demand, np.full(2, 20), np.full(2, 1)),)
    ones = np.ones(5, dtype=np.int64)
    tiers = (Tier("prefer", (Weighted(1, prefer),)),)
    return Problem(("a", "b"), ("c", "d", "e", "f", "g"), ones, 0 * ones, start, rules, tiers)


def test_a_chain_that_overloads_nodes_crosses_illegal_placements() -> None:
    problem = two_full_nodes()
    evaluator = Evaluator(problem)
    found = evaluator.evaluate(anneal(evaluator, problem.start, Deadline(0.2, deterministic=True)))
    assert found.legal
    assert found.values == (0,)
    never = AnnealingParameters(tight=2.0)
    kept_legal = anneal(evaluator, problem.start, Deadline(0.2, deterministic=True), parameters=never)
    assert evaluator.evaluate(kept_legal).values == (20,)


def test_the_penalty_of_overload_rises_in_the_end() -> None:
    chosen = AnnealingParameters()
    early, closing, later, last = (overload_penalty(spent, chosen) for spent in (0, chosen.closing, 0.6, 0.9))
    assert 0 < early == closing < later < last
