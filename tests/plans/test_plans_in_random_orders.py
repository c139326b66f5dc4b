"""Plans of random clusters, carried out in random orders before an independent judge."""

from __future__ import annotations

from benchmarks.plans import campaign, ratio, ways_to_random_placements


def test_best_placements_are_reached_within_every_rule_and_are_at_rest() -> None:
    tally = campaign(range(8), orders=2)
    assert not tally.complaints
    assert not tally.restless
    assert tally.moves > 5
    assert ratio(tally) < 1.3


def test_random_placements_are_reached_within_every_rule() -> None:
    tally = ways_to_random_placements(range(40), orders=2)
    assert not tally.complaints
    assert tally.moves > 50
    assert tally.parked
    assert ratio(tally) < 1.3


def test_the_judge_sees_what_is_wrong() -> None:
    """Everything in one wave, budgets or not: it has to notice."""
    tally = ways_to_random_placements(range(20), orders=2, spoil=True)
    assert len(tally.complaints) > 10
