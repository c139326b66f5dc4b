"""Local search keeps its books right, never breaks a rule, and never makes anything worse."""

from __future__ import annotations

import random

import numpy as np
import pytest

from models.objective import PRESETS
from models.problem import Problem
from optimizer.control import Deadline, Stop
from optimizer.evaluate import Judge
from optimizer.search.descent import descend
from optimizer.search.state import State
from plugins_compat.compiler.compile import Compiled, compile_problem
from plugins_compat.profiles import default_profile
from plugins_compat.release import K24, K36
from tests.support.clusters import random_cluster
from tests.support.problems import random_problem

NAMES = list(PRESETS)
STEPS = 12


def compiled(seed: int) -> Compiled:
    snapshot = random_cluster(seed, broken=seed % 2 == 1, nodes=4, pods=9)
    profile = default_profile(K24 if seed % 3 == 0 else K36)
    return compile_problem(snapshot, profile, PRESETS[NAMES[seed % 5]], max_moves=3 if seed % 11 == 0 else None)


@pytest.mark.parametrize("seed", range(60))
def test_the_books_agree_with_the_judge_after_any_change(seed: int) -> None:
    """Take pods off and put them on at random; whatever the state calls legal, the judge does, at the same values."""
    keeps_its_books(compiled(seed).problem, seed)


@pytest.mark.parametrize("seed", range(60))
def test_the_books_agree_where_no_cluster_compiles_to(seed: int) -> None:
    keeps_its_books(random_problem(seed, broken=seed % 2 == 1), seed)


def keeps_its_books(problem: Problem, seed: int) -> None:
    judge, rng = Judge(problem), random.Random(seed)
    state = State(judge, problem.start)
    assert state.values() == judge.evaluate(problem.start).values
    for _ in range(STEPS):
        mark = state.mark()
        standing = [(c, n) for n, classes in enumerate(state.on) for c in classes]
        if standing and rng.random() < 0.6:
            state.shift(*rng.choice(standing), -1)
        waiting = [c for c, missing in enumerate(state.unplaced) if missing]
        if waiting:
            c = rng.choice(waiting)
            for n in np.flatnonzero(state.open_to(c)).tolist():
                before = state.mark()
                state.shift(c, n, 1)
                evaluation = judge.evaluate(state.placement())
                legal = all(breach.legal for breach in evaluation.breaches)
                if state.legal(state.touched(mark)):
                    assert legal, evaluation.breaches
                if legal:
                    assert state.values() == evaluation.values
                state.undo(before)
            open_nodes = np.flatnonzero(state.open_to(c)).tolist()
            if open_nodes:
                state.shift(c, rng.choice(open_nodes), 1)
        if not all(breach.legal for breach in judge.evaluate(state.placement()).breaches):
            state.undo(mark)


@pytest.mark.parametrize("seed", range(60))
def test_descent_is_legal_and_no_worse(seed: int) -> None:
    problem = compiled(seed).problem
    judge = Judge(problem)
    found = judge.evaluate(descend(judge, problem.start, Deadline(5, deterministic=True)))
    assert found.legal
    assert found.values <= judge.evaluate(problem.start).values


def test_a_stop_signal_ends_the_descent_at_once() -> None:
    problem = compiled(3).problem
    stop = Stop()
    stop.set()
    assert descend(Judge(problem), problem.start, Deadline(60, stop=stop)).same_as(problem.start)
