"""What is foretold of a move or an exchange, against what comes when it is made."""

from __future__ import annotations

import random

import numpy as np
import pytest

from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import evaluate_delta, legal, shift
from stowplan.optimizer.annealing.kernel.screen import forbidden, relation_costs
from stowplan.optimizer.annealing.state_builder import build_state
from stowplan.optimizer.evaluate import Evaluator
from tests.optimizer.annealing.test_kernel import problem_of
from tests.support.problems import random_affinity


@pytest.mark.parametrize("seed", range(150))
def test_what_relations_say_of_moves_and_exchanges_comes_true(seed: int) -> None:
    """Whatever is barred is illegal, and prices are exact; walks go on to where placements are illegal too."""
    problem = random_affinity(seed) if seed % 3 == 0 else problem_of(seed)
    if not problem.pods:
        return
    state = build_state(Evaluator(problem), problem.start)
    rng = random.Random(seed)
    nodes, tiers = len(problem.nodes), len(problem.tiers)
    change = np.zeros(tiers + 2, dtype=np.int64)
    for _ in range(80):
        p, q = rng.randrange(problem.pods), rng.randrange(-1, problem.pods)
        source = int(state.pod[p, at.P_NODE])
        target = int(state.pod[q, at.P_NODE]) if q >= 0 else rng.randrange(nodes + 1)
        c, e = (int(state.pod[i, at.P_CLASS]) if i >= 0 else -1 for i in (p, q))
        if source == target or c == e:
            continue
        was_legal, before = legal(state), state.value[:tiers].copy()
        possible = evaluate_delta(state, p, q, source, target, change, 0) and not forbidden(state, c, e, source, target)
        complete = relation_costs(state, c, e, source, target, change)
        shift(state, p, target)
        if q >= 0:
            shift(state, q, source)
        if was_legal and legal(state):
            assert possible
            violated = np.any(state.violation_weight[:tiers] * (state.value[:tiers] - before))
            scores = q >= 0 and state.head[at.H_SCORES]
            if complete and not violated and not scores:
                assert np.array_equal(state.value[:tiers] - before, change[:tiers])
        if not legal(state) and rng.random() < 0.8:
            if q >= 0:
                shift(state, q, target)
            shift(state, p, source)
