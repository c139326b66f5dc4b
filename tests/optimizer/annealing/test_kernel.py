"""The kernels against the evaluator: after every move, legal or not, both say the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume

from stowplan.models.problem import Capacity, GroupMoveBudget, Move, Origin, Placement, Problem, Tier, Weighted
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import evaluate_delta, legal, place_all, shift
from stowplan.optimizer.annealing.kernel.screen import forbidden
from stowplan.optimizer.annealing.state_builder import build_state, placement_of
from stowplan.optimizer.evaluate import Evaluator
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn, steps
from tests.support.problems import random_problem
from tests.support.random_clusters import random_cluster, random_setup


def compiled_problem(choices: Choices) -> Problem:
    """Return a random problem: three of four are compiled from a cluster."""
    if choices.chance(0.25):
        return random_problem(choices, broken=None)
    setup = random_setup(choices)
    return setup.compile(random_cluster(choices, broken=None)).problem.steered


def counted_problem(choices: Choices) -> Problem:
    """Return such a problem without limits on the moves of some pods, which the kernel does not count."""
    problem = compiled_problem(choices)
    return replace(problem, rules=tuple(rule for rule in problem.rules if not isinstance(rule, GroupMoveBudget)))


@cases(
    50,
    at_least={"legal moves": 56, "illegal moves": 96, "costs foretold": 32},
    problem=drawn(counted_problem),
    walk=steps(80, 3),
)
def test_values_and_legality_follow_every_move(problem: Problem, walk: list[tuple[int, ...]]) -> None:
    assume(problem.pods)
    evaluator = Evaluator(problem)
    state = build_state(evaluator, problem.start)
    nodes, tiers = len(problem.nodes), len(problem.tiers)
    change = np.zeros(tiers + 2, dtype=np.int64)
    for which, where, back in walk:
        p, target = which % problem.pods, where % (nodes + 1)
        source = int(state.pod[p, at.P_NODE])
        if source == target:
            continue
        c = int(state.pod[p, at.P_CLASS])
        was_legal, before = legal(state), state.value[:tiers].copy()
        possible = evaluate_delta(state, p, -1, source, target, change, 0) and not forbidden(
            state, c, -1, source, target
        )
        shift(state, p, target)
        evaluation = evaluator.evaluate(placement_of(state))
        # What a budget is exceeded by is not followed, nor how much more is exceeded than may be by some other rules.
        counted = state.head[at.H_DEVICES] == 0 and not np.any(state.relation[:, at.R_KIND] == at.AFFINITY)
        counted = counted and not state.value[tiers + at.OVERLOADED]
        if evaluation.legal or (counted and evaluation.moves <= state.head[at.H_MOVE_LIMIT]):
            assert tuple(state.value[:tiers]) == evaluation.values
        assert legal(state) == evaluation.legal
        assert state.value[tiers + at.MOVED] == evaluation.moves
        assert state.value[tiers + at.UNPLACED] == evaluation.unplaced
        count("legal moves" if evaluation.legal else "illegal moves")
        if was_legal and evaluation.legal:
            assert possible
            if not state.cls[c, at.C_COSTED] and not np.any(
                state.violation_weight[:tiers] * (state.value[:tiers] - before)
            ):
                expected = state.value[:tiers] - before
                different = expected != change[:tiers]
                assert np.array_equal(change[:tiers][different], expected[different])
                count("costs foretold", bool(expected.any()))
        if not evaluation.legal and back % 20 < 19:
            shift(state, p, source)
            assert tuple(state.value[:tiers]) == tuple(before)
            assert legal(state) == was_legal


def test_lists_of_pods_hold_when_many_change_places_at_once() -> None:
    """Full nodes that exchange their pods one after the other would have to hold twice as many on the way."""
    nodes, pods = 12, 110
    ones = np.ones(nodes, dtype=np.int64)
    room = Capacity(Origin("test"), ones, pods * ones, ones)
    start = Placement.of([(c, c, pods) for c in range(nodes)])
    names = tuple(f"n{n}" for n in range(nodes))
    tier = Tier("moves", (Weighted(1, Move(Origin("test"), ones)),))
    problem = Problem(names, names, pods * ones, 0 * ones, start, (room,), (tier,))
    state = build_state(Evaluator(problem), start)
    home = state.pod[:, at.P_NODE].copy()
    rng = np.random.default_rng(1)
    for where in (rng.permutation(home), rng.permutation(home), home):
        place_all(state, where)
        assert np.array_equal(state.pod[:, at.P_NODE], where)
        assert np.array_equal(state.width[:nodes], pods * ones)
        slots = state.on_at[state.pod[:, at.P_NODE]] + state.pod[:, at.P_SLOT]
        assert np.array_equal(state.on[slots], np.arange(problem.pods))
        assert state.value[0] == np.count_nonzero(where != home)
        assert legal(state)
