"""Plans of random clusters, carried out in random orders before an independent judge."""

from __future__ import annotations

from benchmarks.plans import DomainCounts, best_placement, way_to_a_random_placement


def test_best_placements_are_reached_within_every_rule_and_are_at_rest() -> None:
    domain_counts = DomainCounts()
    for seed in range(6):
        best_placement(seed, domain_counts, orders=2)
    assert not domain_counts.complaints
    assert not domain_counts.restless
    assert domain_counts.moves > 3
    assert domain_counts.ratio < 1.3


def test_random_placements_are_reached_within_every_rule() -> None:
    domain_counts = DomainCounts()
    for seed in range(40):
        way_to_a_random_placement(seed, domain_counts, orders=2)
    assert not domain_counts.complaints
    assert domain_counts.moves > 60
    assert domain_counts.parked
    assert domain_counts.ratio < 1.3


def test_the_judge_sees_what_is_wrong() -> None:
    """Everything in one wave, budgets or not: it has to notice."""
    domain_counts = DomainCounts()
    for seed in range(20):
        way_to_a_random_placement(seed, domain_counts, orders=2, spoil=True)
    assert len(domain_counts.complaints) > 10
