"""Rules that are looked at together: whatever is exceeded has to be suspected."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.models.problem import AtMost, Attract, Held, Occupy, Origin, Placement, Problem, Repel, Rule, Topology
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.screening import ViolationScreen
from stowplan.optimizer.evaluate.violations import place_names, places, violation

CLASSES, NODES = 6, 5
NAME = Origin("test")


def topology(rng: np.random.Generator, size: int) -> Topology:
    """Some nodes are in no domain, some domains have no node."""
    return Topology("key", rng.integers(-1, size, NODES), tuple(map(str, range(size))))


def some(rng: np.random.Generator) -> np.ndarray:
    return np.flatnonzero(rng.random(CLASSES) < 0.4)


def random_problem(rng: np.random.Generator) -> Problem:
    keys = [topology(rng, size) for size in (1, 2, 4)]
    nobody = Held(*(np.zeros(NODES, dtype=np.int64),) * 3)
    somebody = Held(*rng.integers(0, 2, (3, NODES)))
    rules: list[Rule] = []
    for _ in range(12):
        key = keys[rng.integers(3)]
        held = rng.integers(0, 2, key.size) * rng.integers(0, 2)
        affinity = somebody if rng.random() < 0.2 else nobody
        rules += [
            AtMost(NAME, some(rng), key, int(rng.integers(0, 3)), held),
            Occupy(NAME, some(rng), key, int(rng.integers(0, 4)), held),
            Repel(NAME, some(rng), some(rng), key, affinity),
            Attract(NAME, some(rng), some(rng), tuple(keys[: rng.integers(1, 3)]), affinity),
        ]
    size = rng.integers(0, 4, CLASSES)
    names = tuple(map(str, range(max(CLASSES, NODES))))
    return Problem(names[:NODES], names[:CLASSES], size, size, random_placement(rng, size), tuple(rules), ())


def random_placement(rng: np.random.Generator, size: np.ndarray) -> Placement:
    placed = [(c, int(rng.integers(NODES)), 1) for c, k in enumerate(size.tolist()) for _ in range(rng.integers(k + 1))]
    return Placement.of(placed)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_exceeded_is_suspected(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    candidate_violations, evaluator = ViolationScreen(problem), Evaluator(problem)
    for rule, before in zip(problem.rules, evaluator.start_violations, strict=True):
        assert np.array_equal(before, violation(rule, problem, problem.start))
        assert len(before) == places(rule, problem) == len(place_names(rule, problem))
    for _ in range(5):
        placement = random_placement(rng, problem.size)
        screened = set(candidate_violations.of(placement).tolist())
        violated = {i for i, rule in enumerate(problem.rules) if violation(rule, problem, placement).any()}
        assert violated <= screened
        assert len(evaluator.evaluate(placement).violations) == sum(
            np.count_nonzero(violation(problem.rules[i], problem, placement)) for i in violated
        )


def test_rules_that_plainly_hold_are_not_suspected() -> None:
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
