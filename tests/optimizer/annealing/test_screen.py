"""What is foretold of a move or an exchange, against what comes when it is made."""

from __future__ import annotations

import numpy as np
from hypothesis import assume

from stowplan.models.problem import Problem
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import evaluate_delta, legal, shift
from stowplan.optimizer.annealing.kernel.screen import forbidden, relation_costs
from stowplan.optimizer.annealing.state_builder import build_state
from stowplan.optimizer.evaluate import Evaluator
from tests.optimizer.annealing.test_kernel import counted_problem
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn, steps
from tests.support.problems import random_affinity


def any_problem(choices: Choices) -> Problem:
    return random_affinity(choices) if choices.chance(0.33) else counted_problem(choices)


@cases(
    75,
    at_least={"moves": 40, "exchanges": 15, "costs foretold": 40, "refused": 80},
    problem=drawn(any_problem),
    walk=steps(110, 3),
)
def test_what_the_screen_forbids_is_illegal_and_its_costs_are_exact(
    problem: Problem, walk: list[tuple[int, ...]]
) -> None:
    """Now and then a walk goes on from where the placement is illegal."""
    assume(problem.pods)
    state = build_state(Evaluator(problem), problem.start)
    nodes, tiers = len(problem.nodes), len(problem.tiers)
    change = np.zeros(tiers + 2, dtype=np.int64)
    for which, other, back in walk:
        p, q = which % problem.pods, other % (problem.pods + 1) - 1
        source = int(state.pod[p, at.P_NODE])
        target = int(state.pod[q, at.P_NODE]) if q >= 0 else back // 20 % (nodes + 1)
        c, e = (int(state.pod[i, at.P_CLASS]) if i >= 0 else -1 for i in (p, q))
        if source == target or c == e:
            continue
        was_legal, before = legal(state), state.value[:tiers].copy()
        possible = evaluate_delta(state, p, q, source, target, change, 0) and not forbidden(state, c, e, source, target)
        complete = relation_costs(state, c, e, source, target, change)
        shift(state, p, target)
        if q >= 0:
            shift(state, q, source)
        count("refused", not possible)
        if was_legal and legal(state):
            assert possible
            count("moves" if q < 0 else "exchanges")
            violated = np.any(state.violation_weight[:tiers] * (state.value[:tiers] - before))
            scores = q >= 0 and state.head[at.H_SCORES]
            if complete and not violated and not scores:
                assert np.array_equal(state.value[:tiers] - before, change[:tiers])
                count("costs foretold", bool(change[:tiers].any()))
        if not legal(state) and back % 20 < 19:
            if q >= 0:
                shift(state, q, target)
            shift(state, p, source)
