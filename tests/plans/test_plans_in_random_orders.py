"""Plans of random clusters, carried out in random orders before an independent judge."""

from __future__ import annotations

from benchmarks.plans import Tally, best_placement, way_to_a_random_placement


def test_best_placements_are_reached_within_every_rule_and_are_at_rest() -> None:
    tally = Tally()
    for seed in range(6):
        best_placement(seed, tally, orders=2)
    assert not tally.complaints
    assert not tally.restless
    assert tally.moves > 3
    assert tally.ratio < 1.3


def test_random_placements_are_reached_within_every_rule() -> None:
    tally = Tally()
    for seed in range(40):
        way_to_a_random_placement(seed, tally, orders=2)
    assert not tally.complaints
    assert tally.moves > 60
    assert tally.parked
    assert tally.ratio < 1.3


def test_the_judge_sees_what_is_wrong() -> None:
    """Everything in one wave, budgets or not: it has to notice."""
    tally = Tally()
    for seed in range(20):
        way_to_a_random_placement(seed, tally, orders=2, spoil=True)
    assert len(tally.complaints) > 10
