"""Which bounds are computed: expensive ones only where they can improve something."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from stowplan.models.problem import Curves, MovePeak, NodeCurve, Origin, Placement, Problem, Tier, Weighted
from stowplan.models.result import TRIVIAL
from stowplan.optimizer.bounds import BOUNDS, best_bound
from stowplan.optimizer.bounds.bound import BoundRequest, CostClass
from stowplan.optimizer.bounds.parameters import BoundParameters
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


@dataclass
class Given:
    """A bound that proves what it is told to, and notes when it is asked."""

    name: str
    value: int | None
    asked: list[str]
    cost: CostClass = CostClass.EXPENSIVE
    supported: bool = True
    complete: bool = False

    def supports(self, problem: Problem, tier: int) -> bool:
        return self.supported

    def dominates(self, problem: Problem, tier: int) -> bool:
        return self.complete

    def __call__(self, request: BoundRequest) -> int | None:
        self.asked.append(self.name)
        return self.value


@dataclass
class Asked:
    """Bounds that are asked one after another, and which of them were."""

    names: list[str] = field(default_factory=list)

    def best(self, *bounds: Given, value: int = 100, parameters: BoundParameters | None = None) -> tuple[int, str]:
        evaluator = loaded(with_peak=False)
        upper, deadline = upper_bounds(evaluator.problem), Deadline(1, deterministic=True)
        return best_bound(evaluator, upper, 0, (), value, deadline, parameters, bounds=bounds)

    def bound(self, name: str, value: int | None, **attributes: object) -> Given:
        return Given(name, value, self.names, **attributes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("with_peak", "value", "small", "expensive"),
    [
        (True, 2001, False, False),  # a cheap one is near, and no other but the linear one reads the peak of moves
        (True, 2003, False, True),
        (True, 2001, True, True),
        (False, 2001, False, True),
    ],
)
def test_expensive_bounds_are_left_out_where_a_cheap_one_is_near(
    with_peak: bool, value: int, small: bool, expensive: bool
) -> None:
    evaluator = loaded(with_peak=with_peak)
    asked: list[str] = []
    replaced = [
        bound
        if bound.cost is CostClass.CHEAP
        else Given(bound.name, None, asked, complete=bound.dominates(evaluator.problem, 0))
        for bound in BOUNDS
    ]
    found = best_bound(
        evaluator,
        upper_bounds(evaluator.problem),
        0,
        (),
        value,
        Deadline(1, deterministic=True),
        BoundParameters(small=2 if small else 1),
        bounds=replaced,
    )
    assert found == (2000, "surrogate relaxation")
    assert asked == (["Lagrangian relaxation", "linear relaxation"] if expensive else [])


def test_the_best_one_counts_and_the_first_among_equals() -> None:
    asked = Asked()
    one, two, three = asked.bound("one", 3), asked.bound("two", 5), asked.bound("three", 5)
    assert asked.best(one, two, three) == (5, "two")
    assert asked.names == ["one", "two", "three"]


def test_none_is_asked_after_one_that_meets_the_value_or_dominates_the_rest() -> None:
    for value, complete in ((100, False), (7, True)):
        asked = Asked()
        asked.best(asked.bound("first", value, complete=complete), asked.bound("second", 9))
        assert asked.names == ["first"]
    asked = Asked()
    assert asked.best(asked.bound("first", None, complete=True), asked.bound("second", 9)) == (9, "second")


def test_one_that_does_not_support_the_tier_is_passed_over() -> None:
    asked = Asked()
    assert asked.best(asked.bound("first", 50, supported=False)) == (0, TRIVIAL)
    assert asked.names == []


def test_every_bound_has_a_name_of_its_own_and_cheap_ones_come_first() -> None:
    names = [bound.name for bound in BOUNDS]
    assert len(set(names)) == len(names)
    costs = [bound.cost for bound in BOUNDS]
    assert costs == sorted(costs, key=[CostClass.CHEAP, CostClass.EXPENSIVE].index)
