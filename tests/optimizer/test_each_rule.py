"""Every rule and every term alone, on a handful of pods, in every engine; the optimum is derived in a comment.

The same small problems go through the reference, the search and CP-SAT. A kind that is missing here fails the
contract test at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import pytest

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    PENALTY_WEIGHT,
    Allow,
    AtMost,
    Attract,
    Capacity,
    Curves,
    Devices,
    Distinct,
    DomainCurve,
    GroupMoveBudget,
    Held,
    Load,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    NodeScore,
    Occupy,
    Open,
    Origin,
    Pair,
    Placement,
    Prefer,
    Problem,
    Repel,
    Rule,
    Spread,
    Term,
    Tier,
    Topology,
    Unplaced,
    Violation,
    Weighted,
)
from stowplan.optimizer.cpsat.solve import solve_tier
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from tests.support.brute_force import best

NODES = 3
WHERE = Origin("test")


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


NONE = ints(0, 0, 0)
BY_NODE = Topology("node", ints(0, 1, 2), ("n0", "n1", "n2"))
ZONES = Topology("zone", ints(0, 0, 1), ("z0", "z1"))
NOWHERE = Topology("absent", ints(-1, -1, -1), ())
NOBODY = Held(NONE, NONE, NONE)
SQUARE = Curves(ints(0, 1, 2, 3)[None], ints(1, 3, 5, 7)[None], ints(0, 1, 4, 9)[None])


@dataclass
class Case:
    """A problem in words: pods of each class, rules, tiers, start, and the tier values that are best."""

    name: str
    size: list[int]
    expected: tuple[int, ...]
    rules: list[Rule] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    start: list[tuple[int, int, int]] = field(default_factory=list)

    def problem(self) -> Problem:
        classes = len(self.size)
        start = Placement.of(self.start)
        tiers = [Tier("repair", (Weighted(1, Violation(WHERE)),))]
        tiers += [Tier("pending", (Weighted(1, Unplaced(WHERE, ints(*[1] * classes))),))]
        tiers += [Tier(str(i), (Weighted(1, term),)) for i, term in enumerate(self.terms)]
        return Problem(
            nodes=("n0", "n1", "n2"),
            classes=tuple(f"c{c}" for c in range(classes)),
            size=ints(*self.size),
            optional=ints(*self.size) - start.placed(classes),
            start=start,
            rules=tuple(self.rules),
            tiers=tuple(tiers),
        )


def capacity(demand: list[int], free: list[int], **more: bool) -> Capacity:
    return Capacity(WHERE, ints(*demand), ints(*free), ints(10, 10, 10), **more)


def devices(whole: list[int], part: list[int], count: list[int], held: list[tuple[int, int]] = []) -> Devices:  # noqa: B006
    """Devices of size 10, of which shares are held as (node, part)."""
    node, shares = (ints(*(pair[i] for pair in held)) for i in (0, 1))
    return Devices(WHERE, ints(*whole), ints(*part), 10, ints(*count), NONE, node, shares)


CASES = [
    # Only n2 is allowed, so both pods go there.
    Case(
        "allow",
        [2],
        (0, 0, 0),
        [Allow(WHERE, ints(0), np.array([[False, False, True]]))],
        [Prefer(WHERE, ints(0), ints(1, 1, 0)[None])],
    ),
    # One pod stands where it may not; it can go to n2.
    Case("allow, broken", [1], (0, 0), [Allow(WHERE, ints(0), np.array([[False, True, True]]))], start=[(0, 0, 1)]),
    # Room for 1 + 2 + 0 pods of size 2; the fourth and fifth wait.
    Case("capacity", [5], (0, 2), [capacity([2], [3, 4, 1])]),
    # A node that fixed pods alone overcommit (free < 0) takes nobody, but pods that ask nothing pass.
    Case("capacity, no demand", [1, 1], (0, 1), [capacity([1, 0], [-1, -1, -1])]),
    # n0 is 3 over; one pod of size 2 fits n1, nothing fits n2: 1 over remains, at severity 10.
    Case("capacity, broken", [3], (10, 0), [capacity([2], [3, 2, 0])], start=[(0, 0, 3)]),
    # Two pods want to swap n0 and n1, each of room 1; held on the source, neither can come.
    Case(
        "capacity, held on source",
        [1, 1],
        (0, 0, 2),
        [capacity([1, 1], [1, 1, 0], held_on_source=True)],
        [Prefer(WHERE, ints(0, 1), np.array([[1, 0, 1], [0, 1, 1]]))],
        [(0, 0, 1), (1, 1, 1)],
    ),
    # At most one of the group in each zone: two of three pods are placed.
    Case("at most", [3], (0, 1), [AtMost(WHERE, ints(0), ZONES, 1, ints(0, 0))]),
    # Zone z0 holds a fixed one already: only one place is left, in z1.
    Case("at most, held", [3], (0, 2), [AtMost(WHERE, ints(0), ZONES, 1, ints(1, 0))]),
    # Two stand on n0 where one may; the other moves.
    Case("at most, broken", [2], (0, 0), [AtMost(WHERE, ints(0), BY_NODE, 1, NONE)], start=[(0, 0, 2)]),
    # Seekers shun targets by zone: they split into z0 and z1, all are placed.
    Case("repel", [2, 2], (0, 0), [Repel(WHERE, ints(0), ints(1), ZONES, NOBODY)]),
    # Pods that shun their own kind by node: three of four are placed.
    Case("repel, own kind", [4], (0, 1), [Repel(WHERE, ints(0), ints(0), BY_NODE, NOBODY)]),
    # A fixed target in each zone leaves a seeker nowhere.
    Case("repel, held", [1], (0, 1), [Repel(WHERE, ints(0), ints(), ZONES, Held(NONE, NONE, ints(1, 0, 1)))]),
    # Two of a kind share n0 and shun each other; moving one mends both.
    Case(
        "repel, broken",
        [2],
        (0, 0, 1),
        [Repel(WHERE, ints(0), ints(0), BY_NODE, NOBODY)],
        [Move(WHERE, ints(1))],
        [(0, 0, 2)],
    ),
    # The target fits n2 only, so seekers must follow it to z1, where two fit beside it.
    Case(
        "attract",
        [3, 1],
        (0, 1),
        [
            Attract(WHERE, ints(0), ints(1), (ZONES,), NOBODY),
            Allow(WHERE, ints(0, 1), np.array([[True, True, True], [False, False, True]])),
            capacity([1, 1], [3, 3, 3]),
        ],
    ),
    # Seekers of their own kind: the first may stand alone, the second must join it, n0 takes two.
    Case(
        "attract, own kind",
        [2],
        (0, 0),
        [Attract(WHERE, ints(0), ints(0), (BY_NODE,), NOBODY), capacity([1], [2, 1, 1])],
    ),
    # No node takes two of them, so only the first of its kind is placed.
    Case(
        "attract, alone", [2], (0, 1), [Attract(WHERE, ints(0), ints(0), (BY_NODE,), NOBODY), capacity([1], [1, 1, 1])]
    ),
    # A seeker stands on n2 without company; the fixed target is in z0.
    Case(
        "attract, broken",
        [1],
        (0, 0),
        [Attract(WHERE, ints(0), ints(), (ZONES,), Held(NONE, NONE, ints(1, 0, 0)))],
        start=[(0, 2, 1)],
    ),
    # z1 takes one pod, so with a skew of at most 1 z0 takes two: one of four waits.
    Case(
        "spread",
        [4],
        (0, 1),
        [Spread(WHERE, ints(0), ints(0), ZONES, 1, 1, ints(0, 0), ints(0, 0)), capacity([1], [2, 2, 1])],
    ),
    # Three domains are wanted and there are two: the floor is 0, one pod a domain.
    Case("spread, min domains", [4], (0, 2), [Spread(WHERE, ints(0), ints(0), ZONES, 1, 3, ints(0, 0), ints(0, 0))]),
    # Class 1 counts but is not bound: it stands in z0 with room for nothing else, so bound pods avoid z0.
    Case(
        "spread, others count",
        [1, 3],
        (0, 0, 0),
        [
            Spread(WHERE, ints(0), ints(0, 1), ZONES, 1, 1, ints(0, 0), ints(0, 0)),
            Allow(WHERE, ints(0, 1), np.array([[True, True, True], [True, False, False]])),
        ],
        [Prefer(WHERE, ints(0, 1), np.array([[5, 5, 0], [0, 0, 0]]))],
    ),
    # Three in z0, none in z1: one move makes 2 and 1.
    Case(
        "spread, broken",
        [3],
        (0, 0, 1),
        [Spread(WHERE, ints(0), ints(0), ZONES, 1, 1, ints(0, 0), ints(0, 0))],
        [Move(WHERE, ints(1))],
        [(0, 0, 3)],
    ),
    # Two pods must use two zones.
    Case(
        "occupy",
        [2],
        (0, 0, 1),
        [Occupy(WHERE, ints(0), ZONES, 2, ints(0, 0))],
        [Prefer(WHERE, ints(0), ints(0, 0, 1)[None])],
        [(0, 0, 1), (0, 2, 1)],
    ),
    # Both stand in z0 where two zones are wanted: a move mends it.
    Case("occupy, broken", [2], (0, 0), [Occupy(WHERE, ints(0), ZONES, 2, ints(0, 0))], start=[(0, 0, 2)]),
    # Each node takes one thing. Classes 0 and 1 share thing 0 and fit together; class 2 brings one of its own.
    Case(
        "distinct",
        [1, 1, 3],
        (0, 1),
        [Distinct(WHERE, ints(0, 0, 1), ints(0, 0, -1), (ints(0),), ints(1, 1, 1), np.zeros((1, 3), dtype=bool))],
    ),
    # Two own things stand on n0 where one may.
    Case(
        "distinct, broken",
        [2],
        (0, 0),
        [Distinct(WHERE, ints(1), ints(-1), (), ints(1, 1, 1), np.zeros((0, 3), dtype=bool))],
        start=[(0, 0, 2)],
    ),
    # Two things of others are on n0 where one may be. What the pod needs is among them, yet nothing may come.
    Case(
        "distinct, broken by others",
        [1],
        (PENALTY_WEIGHT, 1),
        [Distinct(WHERE, ints(0), ints(0), (ints(0),), ints(1, 0, 0), np.array([[True, False, False]] * 2))],
    ),
    # Shares of 6 need a device each, though three of them have the volume of less than two: one of four waits.
    Case("devices, halves", [4], (0, 1), [devices([0], [6], [2, 1, 0])]),
    # 6 + 4 fill a device, and three devices take all if each holds one of both.
    Case("devices, packed", [3, 3], (0, 0), [devices([0, 0], [6, 4], [2, 1, 0])]),
    # Sizes that divide each other: 2.5 devices' worth of shares on three devices, and one whole device.
    Case("devices, divisible", [5, 1], (0, 1), [devices([0, 1], [5, 0], [2, 1, 0])]),
    # A fixed share of 5 leaves room for one of 5 on n0, and no whole device there.
    Case("devices, held", [2, 1], (0, 1), [devices([0, 1], [5, 0], [1, 1, 0], [(0, 5)])]),
    # Three of 6 on two devices are one too many; it goes to n1.
    Case("devices, broken", [3], (0, 0, 1), [devices([0], [6], [2, 1, 0])], [Move(WHERE, ints(1))], [(0, 0, 3)]),
    # Two of 6 on one device, and no device elsewhere: n0 stays exceeded, so that nobody may come, even for a share of 4.
    Case(
        "devices, beyond repair", [2, 1], (PENALTY_WEIGHT, 1), [devices([0, 0], [6, 4], [1, 0, 0])], start=[(0, 0, 2)]
    ),
    # Each takes a whole device and a share besides: one pod for n0's two devices.
    Case("devices, whole and share", [2], (0, 1), [devices([1], [5], [2, 1, 0])]),
    # Three pods would rather be on n2; two may go.
    Case(
        "move budget",
        [3],
        (0, 0, 1),
        [MoveBudget(WHERE, 2)],
        [Prefer(WHERE, ints(0), ints(1, 1, 0)[None])],
        [(0, 0, 3)],
    ),
    # All would like to leave n0, but only one of the first class may; of the others, all do.
    Case(
        "group move budget",
        [3, 2],
        (0, 0, 2),
        [GroupMoveBudget(WHERE, ints(0), 1)],
        [Prefer(WHERE, ints(0, 0), ints(1, 0, 0)[None])],
        [(0, 0, 3), (1, 0, 2)],
    ),
    # Squares of the load: 2 + 1 + 1 is best of all ways to place four.
    Case("node curve", [4], (0, 0, 6), [], [NodeCurve(WHERE, ints(1), NONE, ints(0, 0, 0), SQUARE)]),
    # Loads below 0 cost nothing: one of 2 and one of -1 on each node make 1 + 1; apart by kind it were 4.
    Case(
        "node curve, negative demand",
        [2, 2],
        (0, 0, 2),
        [capacity([1, 1], [2, 2, 0])],
        [
            NodeCurve(
                WHERE, ints(2, -1), NONE, ints(0, 0, 0), Curves(ints(-1, 0)[None], ints(0, 1)[None], ints(0, 0)[None])
            )
        ],
    ),
    # At most 2 is charged, so those of 3 share a node: 2 + 0, while mixed it were 2 + 2. The first piece goes on to the
    # left, where held amounts begin.
    Case(
        "node curve, negative demand, not convex",
        [2, 2],
        (0, 0, 2),
        [capacity([1, 1], [2, 2, 0])],
        [
            NodeCurve(
                WHERE,
                ints(3, -1),
                ints(0, 0, -9),
                ints(0, 0, 0),
                Curves(ints(-1, 0, 2)[None], ints(0, 1, 0)[None], ints(0, 0, 2)[None]),
            )
        ],
    ),
    # No node carries the label: nothing to exceed, nobody to be near.
    Case("at most, nowhere", [2], (0, 0), [AtMost(WHERE, ints(0), NOWHERE, 1, ints())]),
    Case("repel, nowhere", [2], (0, 0), [Repel(WHERE, ints(0), ints(0), NOWHERE, NOBODY)]),
    Case("attract, nowhere", [1, 1], (0, 1), [Attract(WHERE, ints(0), ints(1), (NOWHERE,), NOBODY)]),
    Case("attract, own kind, nowhere", [1], (0, 0), [Attract(WHERE, ints(0), ints(0), (NOWHERE,), NOBODY)]),
    Case("spread, nowhere", [2], (0, 0), [Spread(WHERE, ints(0), ints(0), NOWHERE, 1, 1, ints(), ints())]),
    Case("domain curve, nowhere", [2], (0, 0, 0), [], [DomainCurve(WHERE, ints(0), NOWHERE, ints(), SQUARE)]),
    Case(
        "pair, nowhere", [2], (0, 0, 0), [], [Pair(WHERE, ints(0), ints(0), NOWHERE, NOBODY, 3, together=True, pairs=2)]
    ),
    # The same squares by zone: 2 + 2.
    Case("domain curve", [4], (0, 0, 8), [], [DomainCurve(WHERE, ints(0), ZONES, ints(0, 0), SQUARE)]),
    # Two pods of 5 on nodes of 10: apart, each misses 50 of 100 points; together, each would miss 100.
    Case(
        "node score, least",
        [2],
        (0, 0, 100),
        [],
        [NodeScore(WHERE, "least", (Load(ints(5), NONE, ints(10, 10, 10)),), 1, ints(1))],
    ),
    # Most allocated is the other way round: together they miss nothing.
    Case(
        "node score, most",
        [2],
        (0, 0, 0),
        [],
        [NodeScore(WHERE, "most", (Load(ints(5), NONE, ints(10, 10, 10)),), 1, ints(1))],
    ),
    # One asks for CPU, one for memory: together they are balanced.
    Case(
        "node score, balanced",
        [1, 1],
        (0, 0, 0),
        [],
        [
            NodeScore(
                WHERE,
                "balanced",
                (Load(ints(5, 0), NONE, ints(10, 10, 10)), Load(ints(0, 5), NONE, ints(10, 10, 10))),
                1,
                ints(1, 1),
            )
        ],
    ),
    # Two friends in one zone cost nothing apart, and there is room.
    Case(
        "pair, apart", [1, 2], (0, 0, 0), [], [Pair(WHERE, ints(0), ints(1), ZONES, NOBODY, 3, together=False, pairs=2)]
    ),
    # Three that avoid each other over two zones: one zone has two of them, which is two ordered pairs.
    Case(
        "pair, together", [3], (0, 0, 6), [], [Pair(WHERE, ints(0), ints(0), ZONES, NOBODY, 3, together=True, pairs=6)]
    ),
    # Three pods of size 1 fit n1 alone; n0 is held open by a fixed pod, which costs 4 anyway.
    Case("open", [3], (0, 0, 5), [capacity([1], [0, 3, 2])], [Open(WHERE, ints(4, 1, 1), ints(1, 0, 0))]),
    # Room for one: the pod that costs more to leave waiting is placed.
    Case("unplaced", [1, 1], (0, 1, 2), [capacity([1, 1], [1, 0, 0])], [Unplaced(WHERE, ints(5, 2))]),
    # Nothing is better elsewhere, so nobody moves.
    Case("move", [2], (0, 0, 0), [], [Move(WHERE, ints(7))], [(0, 1, 2)]),
    # Two of the four have to leave n0. One of no group leaves for nothing; a second one makes a peak of one. Two of
    # the first group would make a peak of two.
    Case(
        "move peak",
        [2, 1, 1],
        (0, 0, 2, 5),
        [capacity([1, 1, 1], [4, 1, 1])],
        [Prefer(WHERE, ints(0, 0, 0), ints(1, 0, 0)[None]), MovePeak(WHERE, 5, ints(0, 1, -1))],
        [(0, 0, 2), (1, 0, 1), (2, 0, 1)],
    ),
    # The largest group counts, not the sum: one of each leaves, at the price of one.
    Case(
        "move peak, several groups",
        [2, 2],
        (0, 0, 2, 5),
        [capacity([1, 1], [4, 1, 1])],
        [Prefer(WHERE, ints(0, 0), ints(1, 0, 0)[None]), MovePeak(WHERE, 5, ints(0, 1))],
        [(0, 0, 2), (1, 0, 2)],
    ),
    # What is broken and cannot be mended stays, and is counted.
    Case(
        "excess",
        [2],
        (2 * PENALTY_WEIGHT, 0),
        [Repel(WHERE, ints(0), ints(0), BY_NODE, NOBODY), capacity([1], [2, 0, 0])],
        start=[(0, 0, 2)],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_brute_force_agrees_with_the_derivation(case: Case) -> None:
    assert best(case.problem()) == case.expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cp_sat_proves_it(case: Case) -> None:
    problem = case.problem()
    evaluator, incumbent, reached = Evaluator(problem), problem.start, []
    for tier in range(len(problem.tiers)):
        attempt = solve_tier(evaluator, tier, reached, incumbent, Deadline(10, deterministic=True))
        assert attempt.placement is not None
        assert attempt.optimal
        incumbent = attempt.placement
        reached.append(evaluator.evaluate(incumbent).values[tier])
        assert reached[-1] == attempt.bound
    assert tuple(reached) == case.expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_portfolio_proves_it(case: Case) -> None:
    outcome = solve(case.problem(), Options(time_limit=10, deterministic=True))
    assert outcome.values == case.expected
    assert all(tier.bound == tier.value for tier in outcome.tiers)


def test_every_kind_has_a_case() -> None:
    rules = {type(rule) for case in CASES for rule in case.rules}
    terms = {type(term) for case in CASES for term in case.terms} | {Violation, Unplaced}
    assert rules == set(get_args(Rule))
    assert terms == set(get_args(Term))


@pytest.mark.parametrize(
    "entries",
    [[(5, 0, 1)], [(0, 7, 1)], [(0, 0, 9)]],
    ids=["no such class", "no such node", "too many pods"],
)
def test_the_judge_refuses_what_is_no_placement(entries: list[tuple[int, int, int]]) -> None:
    with pytest.raises(ValueError, match="placement"):
        Evaluator(CASES[0].problem()).evaluate(Placement.of(entries))
