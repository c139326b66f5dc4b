"""Rules that are looked at together: whatever is violated has to be among those that are looked at closely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import AtMost, Attract, Held, Occupy, Origin, Placement, Problem, Repel, Rule, Topology
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.screening import ViolationScreen
from stowplan.optimizer.evaluate.violations import place_names, places, violation
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn

CLASSES, NODES = 6, 5
NAME = Origin("test")


@dataclass(frozen=True)
class Crowd:
    """A problem with many rules, and placements that do not care for them."""

    problem: Problem
    placements: list[Placement]


def random_crowd(choices: Choices) -> Crowd:
    """Build a problem in which some nodes are in no domain, and some domains have no node."""
    keys = [Topology("key", choices.array(NODES, -1, size - 1), tuple(map(str, range(size)))) for size in (1, 2, 4)]
    somebody = Held(*choices.array((3, NODES), 0, 1))
    rules = [_rule(choices, keys, somebody) for _ in range(choices.integer(1, 24))]
    size = choices.array(CLASSES, 0, 3)
    names = tuple(map(str, range(max(CLASSES, NODES))))
    start, *placements = (random_placement(choices, size) for _ in range(1 + choices.integer(1, 5)))
    return Crowd(Problem(names[:NODES], names[:CLASSES], size, size, start, tuple(rules), ()), placements)


def _rule(choices: Choices, keys: list[Topology], somebody: Held) -> Rule:
    key = choices.one(keys)
    held = choices.array(key.size, 0, 1) * choices.integer(0, 1)
    outside = somebody if choices.chance(0.2) else Held(*(np.zeros(NODES, dtype=np.int64),) * 3)

    def some() -> Ints:
        return np.array(choices.subset(range(CLASSES), 0.4), dtype=np.int64)

    match choices.one(["at most", "occupy", "repel", "attract"]):
        case "at most":
            return AtMost(NAME, some(), key, choices.integer(0, 2), held)
        case "occupy":
            return Occupy(NAME, some(), key, choices.integer(0, 3), held)
        case "repel":
            return Repel(NAME, some(), some(), key, outside)
        case _:
            return Attract(NAME, some(), some(), tuple(keys[: choices.integer(1, 2)]), outside)


def random_placement(choices: Choices, size: Ints) -> Placement:
    return Placement.of(
        (c, choices.integer(0, NODES - 1), 1) for c, k in enumerate(size.tolist()) for _ in range(choices.integer(0, k))
    )


@cases(50, at_least={"violated": 120, "known to hold": 120}, crowd=drawn(random_crowd))
def test_whatever_is_violated_is_screened(crowd: Crowd) -> None:
    problem = crowd.problem
    candidate_violations, evaluator = ViolationScreen(problem), Evaluator(problem)
    for rule, before in zip(problem.rules, evaluator.start_violations, strict=True):
        assert np.array_equal(before, violation(rule, problem, problem.start))
        assert len(before) == places(rule, problem) == len(place_names(rule, problem))
    for placement in crowd.placements:
        screened = set(candidate_violations.of(placement).tolist())
        violated = {i for i, rule in enumerate(problem.rules) if violation(rule, problem, placement).any()}
        assert violated <= screened
        assert len(evaluator.evaluate(placement).violations) == sum(
            np.count_nonzero(violation(problem.rules[i], problem, placement)) for i in violated
        )
        count("violated", len(violated))
        count("known to hold", len(problem.rules) - len(screened))


def test_rules_that_plainly_hold_are_not_screened() -> None:
    key = Topology("key", np.array([0, 1]), ("a", "b"))
    zero, nobody = np.zeros(2, dtype=np.int64), Held(*(np.zeros(2, dtype=np.int64),) * 3)
    first, second = np.array([0]), np.array([1])
    rules = (
        AtMost(NAME, first, key, 1, zero),
        Occupy(NAME, np.array([0, 1]), key, 1, zero),
        Repel(NAME, first, np.array([2]), key, nobody),
        Attract(NAME, first, second, (key,), nobody),
    )
    ones = np.ones(3, dtype=np.int64)
    together = Placement.of([(0, 0, 1), (1, 0, 1), (2, 1, 1)])
    problem = Problem(("m", "n"), ("0", "1", "2"), ones, ones, together, rules, ())
    assert not len(ViolationScreen(problem).of(together))
    assert ViolationScreen(problem).of(Placement.of([(0, 0, 1), (1, 1, 1), (2, 0, 1)])).tolist() == [2, 3]
