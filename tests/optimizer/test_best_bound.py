"""Which bounds are worked out: dear ones only where they can bring something."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.models.problem import Curves, MovePeak, NodeCurve, Origin, Placement, Problem, Tier, Weighted
from stowplan.optimizer import bounds
from stowplan.optimizer.bounds import best_bound, lagrangian, linear, surrogate
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator

HERE = Origin("test")


def loaded(*, with_peak: bool) -> Evaluator:
    """Return a pod of 2,000 units on one of two nodes that cost as much as their load."""
    one, two = np.ones(1, dtype=np.int64), np.zeros(2, dtype=np.int64)
    curves = Curves(np.array([[0]]), np.array([[1]]), np.array([[0]]))
    terms = [Weighted(1, NodeCurve(HERE, 2000 * one, two, two, curves))]
    if with_peak:
        terms.append(Weighted(1, MovePeak(HERE, 1, 0 * one)))
    tiers = (Tier("balance", tuple(terms)),)
    return Evaluator(Problem(("a", "b"), ("c",), one, 0 * one, Placement.of([(0, 0, 1)]), (), tiers))


@pytest.mark.parametrize(
    ("with_peak", "value", "small", "expensive"),
    [
        (True, 2001, False, False),  # a cheap one is near, and nobody else reads the peak of moves
        (True, 2003, False, True),
        (True, 2001, True, True),
        (False, 2001, False, True),
    ],
)
def test_dear_bounds_are_left_out_where_a_cheap_one_is_near(
    with_peak: bool, value: int, small: bool, expensive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = loaded(with_peak=with_peak)
    asked: list[str] = []
    monkeypatch.setattr(bounds, "SMALL", 2 if small else 1)
    monkeypatch.setattr(lagrangian, "lagrangian_bound", lambda *_: asked.append(lagrangian.NAME))
    monkeypatch.setattr(linear, "linear_bound", lambda *_: asked.append(linear.NAME))
    found = best_bound(evaluator, upper_bounds(evaluator.problem), 0, (), value, Deadline(1, deterministic=True))
    assert found == (2000, surrogate.NAME)
    assert asked == ([lagrangian.NAME, linear.NAME] if expensive else [])
