"""Pods that must be near others are in no more domains than these: no legal placement is below what that costs."""

from __future__ import annotations

import numpy as np

from stowplan.models.problem import (
    Attract,
    DomainCurve,
    Held,
    Move,
    MoveBudget,
    Origin,
    Placement,
    Problem,
    Rule,
    Tier,
    Topology,
    Weighted,
)
from stowplan.optimizer.bounds.attraction import Attraction
from stowplan.optimizer.bounds.water_filling import water_filling_bound
from stowplan.optimizer.bounds.workload_spread import workload_spread_bound
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from tests.support.brute_force import legal_values
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import CHOOSE

HERE = Origin("test")


def random_attraction(choices: Choices) -> Problem:
    """Build seekers of one or two classes, few targets, and pods outside the problem, in zones of one or two nodes."""
    classes = choices.integer(2, 3)
    nodes = choices.integer(3, 4) if classes == 2 else 3  # else all placements are too many to list
    size = choices.array(classes, 2, 3)
    size[0] = 1 if choices.chance(0.7) else 2
    home = [0 if choices.chance(0.8) else choices.integer(0, nodes - 1) for _ in range(classes)]
    start = Placement.of((c, home[c], int(size[c])) for c in range(classes))
    domain = np.arange(nodes) % 3
    if choices.chance(0.2):
        domain[-1] = -1
    zones = Topology("zone", domain, ("a", "b", "c"))
    none = np.zeros(nodes, dtype=np.int64)
    targets_held = choices.array(nodes, 0, 1) if choices.chance(0.2) else none
    seekers = np.arange(1, classes)
    targets = np.array([0] if choices.chance(0.8) else [0, 1])
    rules: list[Rule] = [Attract(HERE, seekers, targets, (zones,), Held(none, none, targets_held))]
    if choices.chance(0.5):
        rules.append(MoveBudget(HERE, choices.integer(0, 4)))
    group = seekers if choices.chance(0.7) else np.array([classes - 1])
    curve = DomainCurve(HERE, group, zones, choices.array(3, 0, 1 if choices.chance(0.4) else 0), CHOOSE)
    terms = [Weighted(choices.integer(2, 4), curve)]
    if choices.chance(0.5):
        terms.append(Weighted(1, Move(HERE, np.ones(classes, dtype=np.int64))))
    return Problem(
        tuple(f"n{n}" for n in range(nodes)),
        tuple(f"c{c}" for c in range(classes)),
        size,
        choices.array(classes, 0, 1) if choices.chance(0.2) else np.zeros(classes, dtype=np.int64),
        start,
        tuple(rules),
        (Tier("spread", tuple(terms)),),
    )


@cases(40, at_least={"sharper": 5, "met": 5}, problem=drawn(random_attraction))
def test_no_placement_is_below(problem: Problem) -> None:
    upper, attraction = upper_bounds(problem), Attraction(Evaluator(problem))
    least = min(value[0] for value in legal_values(problem))
    filled = water_filling_bound(problem, upper, 0, None, attraction)
    moved = workload_spread_bound(problem, upper, 0, None, attraction)
    assert filled <= least
    assert moved <= least
    sharper = moved > workload_spread_bound(problem, upper, 0)
    count("sharper", sharper)
    count("met", sharper and moved == least)


def test_a_rule_that_is_broken_says_nothing() -> None:
    zones = Topology("zone", np.arange(3), ("a", "b", "c"))
    none = np.zeros(3, dtype=np.int64)
    rule = Attract(HERE, np.array([1]), np.array([0]), (zones,), Held(none, none, none))
    curve = DomainCurve(HERE, np.array([1]), zones, none, CHOOSE)
    pods = {"together": [(0, 0, 1), (1, 0, 3)], "apart": [(0, 0, 1), (1, 1, 3)]}
    most = {}
    for name, placed in pods.items():
        start = Placement.of(placed)
        tiers = (Tier("spread", (Weighted(1, curve),)),)
        problem = Problem(("x", "y", "z"), ("target", "seeker"), np.array([1, 3]), none[:2], start, (rule,), tiers)
        most[name] = Attraction(Evaluator(problem)).most_domains(curve)
    assert most == {"together": 1, "apart": None}
