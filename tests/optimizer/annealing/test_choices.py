"""The nodes that a class can draw: all that can hold one of its pods alone, and no others but where it started."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.models.problem import Allow, Capacity, Placement, Problem
from stowplan.optimizer.annealing import choices as drawing
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.state_builder import build_state
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.violations import violation
from tests.support.cases import cases, count
from tests.support.problems import ints, problems_with_room


def drawable(problem: Problem) -> list[set[int]]:
    """Return the nodes that the kernel draws from, by class."""
    state = build_state(Evaluator(problem), problem.start)
    begin, end = state.cls[:, at.C_CHOICE], state.cls[:, at.C_CHOICE_END]
    return [set(state.choice[i:j].tolist()) for i, j in zip(begin.tolist(), end.tolist(), strict=True)]


def holds(problem: Problem, c: int, n: int) -> bool:
    """Whether a node holds one pod of a class that came from elsewhere, with no other pod in the cluster."""
    alone = Placement(ints([c]), ints([n]), ints([1]))
    rules = [rule for rule in problem.rules if isinstance(rule, (Allow, Capacity))]
    return not any(violation(rule, problem, alone)[n] for rule in rules if not makes_room(rule))


def makes_room(rule: Allow | Capacity) -> bool:
    return isinstance(rule, Capacity) and bool((rule.demand < 0).any())


def opened(problem: Problem, c: int) -> set[int]:
    rules = [rule for rule in problem.rules if isinstance(rule, Allow)]
    return set(np.flatnonzero(np.logical_and.reduce([np.ones(len(problem.nodes)), *(r.mask[r.row[c]] for r in rules)])))


@cases(40, at_least={"a node is too small": 10, "a node is large enough": 10}, problem=problems_with_room())
def test_a_class_draws_every_node_that_holds_it_alone(problem: Problem) -> None:
    homes = set(zip(problem.start.cls.tolist(), problem.start.node.tolist(), strict=True))
    for c, nodes in enumerate(drawable(problem)):
        for n in opened(problem, c):
            wanted = holds(problem, c, n)
            assert (n in nodes) == wanted or (c, n) in homes
            assert n in nodes or (c, n) not in homes
            count("a node is too small", not wanted)
            count("a node is large enough", wanted)
        assert nodes <= opened(problem, c)


@cases(20, problem=problems_with_room())
def test_lists_that_would_be_long_are_shared(problem: Problem) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "MOST", 0)
        assert drawable(problem) == [opened(problem, c) for c in range(len(problem.classes))]
