"""What is said of values and bounds."""

from __future__ import annotations

import pytest

from stowplan.models.problem import Tier
from stowplan.models.result import TierOutcome, improvement_reached


def outcomes(*values_and_bounds: tuple[int, int]) -> list[TierOutcome]:
    return [TierOutcome(Tier(f"t{t}", ()), v, b, "test", 0.0) for t, (v, b) in enumerate(values_and_bounds)]


@pytest.mark.parametrize(
    ("before", "tier", "share"),
    [((0, 100), 1, 0.8), ((1, 100), 1, None), ((0, 20), 1, 0.0), ((0, 10), 1, None), ((5, 100), 0, 1.0)],
)
def test_the_share_of_the_possible_improvement_is_counted_from_today(
    before: tuple[int, int], tier: int, share: float | None
) -> None:
    found = improvement_reached(before, outcomes((0, 0), (20, 0)), tier)
    assert found == share


def test_nothing_is_said_where_nothing_can_improve() -> None:
    assert improvement_reached((0,), outcomes((0, 0)), 0) is None
