"""The walk against the evaluator: legality and cost of every shift, and answers that are as good as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume

from stowplan.models.options import Options
from stowplan.models.problem import (
    AtMost,
    Capacity,
    Curves,
    Move,
    MoveBudget,
    NodeCurve,
    Occupy,
    Origin,
    Placement,
    Problem,
    Tier,
    Topology,
    Unplaced,
    Weighted,
)
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.rearrangement.division import Division
from stowplan.optimizer.rearrangement.engine import WalkEngine
from stowplan.optimizer.rearrangement.kernel import arrays as at
from stowplan.optimizer.rearrangement.kernel.arrays import WalkModel, WalkState
from stowplan.optimizer.rearrangement.kernel.change import (
    exceeds_limit,
    fits,
    is_native,
    node_change,
    own_change,
    returns,
    shift,
)
from stowplan.optimizer.rearrangement.kernel.relations import keeps_relations
from stowplan.optimizer.rearrangement.kernel.walk import run_walk
from stowplan.optimizer.rearrangement.model_builder import build_model, pods_of, suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.queue import Queue
from stowplan.optimizer.rearrangement.walking import cumulative, state_of, walk
from stowplan.optimizer.run import Run
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn, steps
from tests.support.problems import WHERE, ints, random_affinity, random_problem
from tests.support.random_clusters import random_cluster, random_setup

LARGE = 1_000_000


def problem_to_walk(choices: Choices) -> Problem:
    """Return a random problem; what the walk does not know is left out."""
    broken = choices.chance(0.3)
    kind = choices.one(["cluster", "cluster", "affinity", "curves"])
    if kind == "cluster":
        problem = random_setup(choices).compile(random_cluster(choices, broken=broken)).problem.steered
    else:
        problem = (random_affinity if kind == "affinity" else random_problem)(choices, broken=broken)
    spread = [AtMost(WHERE, _some(choices, problem), _zones(choices, problem), 2, ints([0, 0]))]
    spread = spread if choices.chance(0.3) else []
    occupy = [Occupy(WHERE, _some(choices, problem), _zones(choices, problem), 1, ints([0, 0]))]
    occupy = occupy if choices.chance(0.3) else []
    budget = [MoveBudget(WHERE, choices.integer(0, 2))] if choices.chance(0.5) else []
    move = Tier("moves", (Weighted(1, Move(WHERE, np.ones(len(problem.classes), dtype=np.int64))),))
    known = [rule for rule in problem.rules if suits(replace(problem, rules=(rule,), tiers=(move,)), 0, LARGE)]
    above = [tier for tier in problem.tiers if suits(replace(problem, rules=(), tiers=(tier, move)), 1, LARGE)]
    last = [tier for tier in problem.tiers if suits(replace(problem, rules=(), tiers=(tier,)), 0, LARGE)]
    last = [tier for tier in last if tier not in above]
    return replace(
        problem, rules=(*known, *spread, *occupy, *budget), tiers=(*above, choices.one(last) if last else move)
    )


def _some(choices: Choices, problem: Problem) -> np.ndarray:
    classes = len(problem.classes)
    return ints(sorted(choices.some(range(classes), choices.integer(1, classes)))) if classes else ints([])


def _zones(choices: Choices, problem: Problem) -> Topology:
    return Topology("zone", ints([choices.one([0, 1, -1]) for _ in problem.nodes]), ("a", "b"))


def placed(evaluator: Evaluator, tier: int) -> tuple[WalkModel, WalkState, np.ndarray]:
    problem = evaluator.problem
    cls, node, home = pods_of(problem, problem.start)
    model = build_model(evaluator, tier, cls, home)
    return model, state_of(evaluator, model, tier, node, 1), cls


def placement_of(problem: Problem, cls: np.ndarray, node: np.ndarray) -> Placement:
    return Placement.of((int(c), int(n), 1) for c, n in zip(cls, node, strict=True))


@cases(
    60,
    at_least={"legal shifts": 100, "illegal shifts": 100, "shifts refused": 100, "costs": 40, "beyond the limit": 5},
    problem=drawn(problem_to_walk),
    path=steps(40, 3),
)
def test_shifts_are_legal_and_cost_what_is_foretold(problem: Problem, path: list[tuple[int, ...]]) -> None:
    tier = len(problem.tiers) - 1
    evaluator = Evaluator(problem)
    assume(suits(problem, tier, LARGE) and len(problem.start.cls))
    model, state, cls = placed(evaluator, tier)
    nobody = len(problem.classes)
    start = evaluator.evaluate(problem.start).values
    for which, where, _ in path:
        p, b = which % len(cls), where % len(problem.nodes)
        a, c = int(state.node[p]), int(cls[p])
        if a == b or state.width[b] == state.on.shape[1]:
            continue
        returning = returns(model, state, c, b)
        allowed = model.open[c, b] and fits(model, state, b, c, returning, nobody, 0)
        allowed = allowed and keeps_relations(model, state, c, a, b)
        within = not exceeds_limit(model, state, is_native(model, state, c, a) - returning)
        count("beyond the limit", allowed and not within)
        allowed = allowed and within
        change = node_change(model, state, b, c, nobody) + node_change(model, state, a, nobody, c)
        change += own_change(model, state, c, a, b)
        before = int(state.value[at.COST])
        shift(model, state, p, b)
        evaluation = evaluator.evaluate(placement_of(problem, cls, state.node))
        if allowed:
            count("legal shifts")
            assert evaluation.legal
            assert evaluation.values[:tier] <= start[:tier]
            count("costs", evaluation.values[tier] != start[tier])
            assert start[tier] + state.value[at.COST] == evaluation.values[tier]
            assert state.value[at.COST] - before == change
        else:
            count("shifts refused")
            count("illegal shifts", not evaluation.legal)
            shift(model, state, p, a)
            assert state.value[at.COST] == before


@cases(60, at_least={"saves": 10, "reached": 10}, problem=drawn(problem_to_walk), path=steps(40, 3))
def test_no_target_costs_less_than_the_least_price(problem: Problem, path: list[tuple[int, ...]]) -> None:
    tier = len(problem.tiers) - 1
    assume(suits(problem, tier, LARGE) and len(problem.start.cls))
    model, state, cls = placed(Evaluator(problem), tier)
    nobody = len(problem.classes)
    for which, where, _ in path:
        p, b = which % len(cls), where % len(problem.nodes)
        a, c = int(state.node[p]), int(cls[p])
        if a == b or state.width[b] == state.on.shape[1]:
            continue
        price = node_change(model, state, b, c, nobody) + own_change(model, state, c, a, b)
        assert price >= model.least_price[c]
        count("saves", price < 0)
        count("reached", price == model.least_price[c])
        shift(model, state, p, b)


@cases(30, at_least={"better": 8}, problem=drawn(problem_to_walk))
def test_walks_end_legal_and_say_what_is_true(problem: Problem) -> None:
    tier = len(problem.tiers) - 1
    evaluator = Evaluator(problem)
    assume(suits(problem, tier, LARGE) and len(problem.start.cls))
    seen: list[Placement] = []
    chosen = RearrangementParameters(share=0.5, crowded_share=0.5)
    limit = Deadline(0.02, deterministic=True)
    best = walk(evaluator, problem.start, tier, limit, 3, found=seen.append, parameters=chosen)
    values = [evaluator.evaluate(placement).values for placement in [problem.start, *seen]]
    assert all(evaluator.evaluate(placement).legal for placement in seen)
    assert values == sorted(values, reverse=True)
    assert evaluator.evaluate(best).values == values[-1]
    count("better", values[-1] < values[0])
    again = walk(evaluator, problem.start, tier, Deadline(0.02, deterministic=True), 3, parameters=chosen)
    assert best.same_as(again)


@cases(40, at_least={"began elsewhere": 8}, problem=drawn(problem_to_walk))
def test_a_chain_that_begins_with_todays_placement_counts_from_the_other_one(problem: Problem) -> None:
    tier = len(problem.tiers) - 1
    evaluator = Evaluator(problem)
    assume(suits(problem, tier, LARGE) and len(problem.start.cls))
    first = walk(evaluator, problem.start, tier, Deadline(0.02, deterministic=True), 3)
    seen: list[Placement] = []
    walk(evaluator, first, tier, Deadline(0.02, deterministic=True), 5, found=seen.append, from_today=True)
    values = [evaluator.evaluate(placement).values for placement in [first, *seen]]
    assert all(evaluator.evaluate(placement).legal for placement in seen)
    assert values == sorted(values, reverse=True)
    count("began elsewhere", not first.same_as(problem.start))


@cases(
    60,
    at_least={"moved": 20, "owned by one": 10, "better": 15},
    problem=drawn(problem_to_walk),
    threads=drawn(lambda choices: choices.integer(1, 3)),
)
def test_threads_that_divide_a_placement_keep_it_legal_and_count_right(problem: Problem, threads: int) -> None:
    problem = replace(problem, rules=tuple(rule for rule in problem.rules if not isinstance(rule, MoveBudget)))
    tier, evaluator = len(problem.tiers) - 1, Evaluator(problem)
    assume(suits(problem, tier, LARGE) and len(problem.start.cls))
    model, state, cls = placed(evaluator, tier)
    division = Division(model, state, threads, 1)
    before = evaluator.evaluate(problem.start).values
    kinds = cumulative(RearrangementParameters().kinds)
    for temperature in (float(max(before[-1] - 1, 10)), 1.0, 0.0):
        parts = division.parts()
        assert np.array_equal(np.sort(np.concatenate([part.pods for part in parts])), np.arange(len(cls)))
        count("owned by one", any(not part.owned.all() for part in parts))
        for part in parts:
            if len(part.pods):
                run_walk(model, part, 2_000, temperature, 0.3, kinds)
        division.join(parts)
        reached = evaluator.evaluate(placement_of(problem, cls, state.node))
        assert reached.legal
        assert reached.values[:tier] <= before[:tier]
        assert reached.values[tier] == before[tier] + state.value[at.COST]
        fresh = state_of(evaluator, model, tier, state.node.astype(np.int64), 1)
        for name in ("room", "level", "charge", "delta", "counter", "leavers", "groups_with", "width"):
            assert np.array_equal(getattr(state, name), getattr(fresh, name)), name
        known = np.isin(model.relation[:, at.KIND], (at.OCCUPY, at.SPREAD))
        columns = {at.OCCUPY: [at.USED], at.SPREAD: [at.LEAST, at.MOST]}
        for g in np.flatnonzero(known).tolist():
            here = columns[int(model.relation[g, at.KIND])]
            assert state.extent[g, here].tolist() == fresh.extent[g, here].tolist()
        assert state.value[[at.PEAK, at.MOVES]].tolist() == fresh.value[[at.PEAK, at.MOVES]].tolist()
        count("moved", not np.array_equal(state.node, model.home))
    assert state.value[at.BEST] <= min(0, int(state.value[at.COST]))
    best = evaluator.evaluate(placement_of(problem, cls, state.best))
    assert best.values[tier] == before[tier] + state.value[at.BEST]
    count("better", state.value[at.BEST] < 0)


@cases(30, at_least={"better": 8, "met its floor": 4}, problem=drawn(problem_to_walk))
def test_walks_on_one_placement_end_legal_and_say_what_they_came_to(problem: Problem) -> None:
    problem = replace(problem, rules=tuple(rule for rule in problem.rules if not isinstance(rule, MoveBudget)))
    tier, evaluator = len(problem.tiers) - 1, Evaluator(problem)
    assume(suits(problem, tier, LARGE) and len(problem.start.cls))
    chosen = RearrangementParameters(share=0.5, crowded_share=0.5, divided=1)

    def reached(floor: int) -> tuple[int, ...]:
        limit, seen = Deadline(0.02, deterministic=True), [problem.start]
        best = walk(evaluator, problem.start, tier, limit, 3, floor=floor, found=seen.append, parameters=chosen)
        values = [evaluator.evaluate(placement).values for placement in seen]
        assert all(evaluator.evaluate(placement).legal for placement in seen)
        assert values == sorted(values, reverse=True)
        assert evaluator.evaluate(best).values == values[-1]
        return values[-1]

    before, least = evaluator.evaluate(problem.start).values, reached(0)
    assert least == reached(0)
    count("better", least < before)
    if least[-1] < before[-1]:
        assert before[-1] > reached(before[-1] - 1)[-1]
        count("met its floor", True)


@cases(100, at_least={"came in": 5, "still waits": 5}, problem=drawn(problem_to_walk), which=steps(4, 1))
def test_pods_that_wait_come_in_legally(problem: Problem, which: list[tuple[int, ...]]) -> None:
    tier = len(problem.tiers) - 1
    assume(suits(problem, tier, LARGE) and len(problem.start.cls))
    out = {index % len(problem.start.cls) for (index,) in which}
    stays = [i for i in range(len(problem.start.cls)) if i not in out]
    taken = problem.start
    start = Placement(taken.cls[stays], taken.node[stays], taken.count[stays])
    optional = problem.size - np.bincount(start.cls, start.count, len(problem.classes)).astype(np.int64)
    unplaced = Tier("pending", (Weighted(1, Unplaced(WHERE, np.ones(len(problem.classes), dtype=np.int64))),))
    above = problem.tiers[:tier]
    problem = replace(problem, optional=optional, start=start, tiers=(*above, unplaced, problem.tiers[tier]))
    evaluator = Evaluator(problem)
    before = evaluator.evaluate(start)
    assume(before.legal)
    queue = Queue.of(problem, start, tier)
    counted = sum(int(optional[c]) for c in np.flatnonzero(optional) if not _counts(above, c))
    assert queue.counted == counted
    seen: list[Placement] = []
    limit = Deadline(0.02, deterministic=True)
    best = walk(evaluator, start, tier + 1, limit, 3, queue=queue, found=seen.append)
    for placement in [*seen, best]:
        after = evaluator.evaluate(placement)
        assert after.legal
        assert after.values[: tier + 1] <= before.values[: tier + 1]
    count("came in", after.values[tier] < before.values[tier])
    count("still waits", after.values[tier] > 0)


def _counts(tiers: tuple[Tier, ...], c: int) -> bool:
    terms = [weighted.term for tier in tiers for weighted in tier.terms]
    return any(isinstance(term, Unplaced) and term.cost[c] > 0 for term in terms)


def test_a_large_pod_waits_where_two_small_ones_come_in_for_it() -> None:
    room = Capacity(WHERE, ints([4, 2]), ints([4]), np.full(1, 1))
    nobody = Placement.of([])
    pending = Tier("pending", (Weighted(1, Unplaced(WHERE, ints([1, 1]))),))
    moves = Tier("moves", (Weighted(1, Move(WHERE, ints([1, 1]))),))
    problem = Problem(("a",), ("c", "d"), ints([1, 2]), ints([1, 2]), nobody, (room,), (pending, moves))
    evaluator = Evaluator(problem)
    first = Placement.of([(0, 0, 1)])
    best = walk(evaluator, first, 1, Deadline(0.2, deterministic=True), queue=Queue.of(problem, first, 0))
    assert evaluator.evaluate(first).values == (2, 0)
    assert evaluator.evaluate(best).values == (1, 0)


def test_classes_of_a_queue_have_all_that_others_have() -> None:
    room = Capacity(WHERE, ints([2, 2]), ints([8]), np.full(1, 1))
    start = Placement.of([(0, 0, 1)])
    pending = Tier("pending", (Weighted(1, Unplaced(WHERE, ints([0, 1]))),))
    moves = Tier("moves", (Weighted(1, Move(WHERE, ints([1, 1]))),))
    problem = Problem(("a",), ("c", "d"), ints([1, 2]), ints([0, 2]), start, (room,), (pending, moves))
    cls, _, home = pods_of(problem, start)
    model = build_model(Evaluator(problem), 1, cls, home)
    joined = Queue.of(problem, start, 0).joins(model)
    for name in ("row", "start", "weight", "least_price", "price_row", "move", "group", "open"):
        assert (len(getattr(model, name)), len(getattr(joined, name))) == (2, 3), name


def test_pods_make_room_for_one_that_waits() -> None:
    """Each of two nodes has room for half of the pod that waits; two small pods can change places with nobody."""
    room = Capacity(WHERE, ints([2, 2, 6]), ints([8, 8]), np.full(2, 1))
    start = Placement.of([(0, 0, 2), (1, 1, 2)])
    pending = Tier("pending", (Weighted(1, Unplaced(WHERE, ints([0, 0, 1]))),))
    moves = Tier("moves", (Weighted(1, Move(WHERE, ints([1, 1, 1]))),))
    problem = Problem(("a", "b"), tuple("cde"), ints([2, 2, 1]), ints([0, 0, 1]), start, (room,), (pending, moves))
    evaluator = Evaluator(problem)
    best = walk(evaluator, start, 1, Deadline(0.2, deterministic=True), queue=Queue.of(problem, start, 0))
    assert evaluator.evaluate(best).values == (0, 1)


def test_a_large_pod_goes_where_others_have_to_make_room() -> None:
    """The large pod costs 1,000 on its node, and on the other four small ones have to leave for nodes of their own."""
    nodes = 6
    demand = ints([8, 2, 2, 2, 2])
    free = ints([8, 9, 2, 2, 2, 2])
    start = Placement.of([(0, 0, 1), *((c, 1, 1) for c in range(1, 5))])
    room = Capacity(WHERE, demand, free, np.full(nodes, 1))
    dear = NodeCurve(
        Origin("test"),
        ints([1, 0, 0, 0, 0]),
        np.zeros(nodes, dtype=np.int64),
        ints([0, -1, -1, -1, -1, -1]),
        Curves(ints([[-1, 0]]), ints([[0, 1000]]), ints([[0, 0]])),
    )
    moves = Move(WHERE, ints([1] * 5))
    tier = Tier("cost", (Weighted(1, dear), Weighted(1, moves)))
    names = tuple(f"n{n}" for n in range(nodes))
    problem = Problem(names, tuple("abcde"), ints([1] * 5), ints([0] * 5), start, (room,), (tier,))
    evaluator = Evaluator(problem)
    for share, value in ((0.9, 5), (0.0, 5)):
        best = walk(
            evaluator,
            start,
            0,
            Deadline(0.2, deterministic=True),
            parameters=RearrangementParameters(share=share),
        )
        assert evaluator.evaluate(best).values == (value,)


def test_a_stop_ends_a_walk() -> None:
    stop = Stop()
    stop.set()
    start = Placement.of([(0, 0, 1)])
    move = Tier("moves", (Weighted(1, Move(WHERE, ints([1]))),))
    problem = Problem(("a", "b"), ("c",), ints([1]), ints([0]), start, (), (move,))
    assert walk(Evaluator(problem), start, 0, Deadline(60.0, stop=stop)) is start


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_walk_ends_at_its_floor(share: float) -> None:
    start = Placement.of([(0, 0, 1)])
    move = Tier("moves", (Weighted(1, Move(WHERE, ints([1]))),))
    problem = Problem(("a", "b"), ("c",), ints([1]), ints([0]), start, (), (move,))
    parameters = RearrangementParameters(share=share)
    assert walk(Evaluator(problem), start, 0, Deadline(60.0), floor=0, parameters=parameters) is start


def test_a_pod_goes_home_for_one_that_is_worth_more() -> None:
    """One move may be made, and was: of two pods on a crowded node, the small one left, and the large one should."""
    cost = NodeCurve(WHERE, ints([5, 2]), ints([0, 0]), ints([0, -1]), Curves(ints([[0]]), ints([[1]]), ints([[0]])))
    start = Placement.of([(0, 0, 1), (1, 0, 1)])
    tier, none = Tier("cost", (Weighted(1, cost),)), ints([0, 0])
    problem = Problem(("a", "b"), ("c", "d"), ints([1, 1]), none, start, (MoveBudget(WHERE, 1),), (tier,))
    evaluator = Evaluator(problem)
    small_one_left = Placement.of([(0, 0, 1), (1, 1, 1)])
    best = walk(evaluator, small_one_left, 0, Deadline(0.2, deterministic=True))
    assert evaluator.evaluate(best).legal
    assert evaluator.evaluate(best).values == (2,)


def test_moves_that_gain_nothing_are_taken_back_where_nothing_else_counts() -> None:
    """Three full nodes gave their pods to each other in a circle: two of them at a time cannot go home."""
    room = Capacity(WHERE, ints([1, 1, 1]), ints([1, 1, 1, 1]), np.full(4, 1))
    start = Placement.of([(0, 0, 1), (1, 1, 1), (2, 2, 1)])
    moves = Tier("moves", (Weighted(1, Move(WHERE, ints([1, 1, 1]))),))
    problem = Problem(tuple("abcd"), tuple("efg"), ints([1, 1, 1]), ints([0, 0, 0]), start, (room,), (moves,))
    circle = Placement.of([(0, 1, 1), (1, 2, 1), (2, 0, 1)])
    evaluator = Evaluator(problem)
    assert evaluator.evaluate(circle).values == (3,)
    assert evaluator.evaluate(walk(evaluator, circle, 0, Deadline(0.2, deterministic=True))).values == (0,)


def test_moves_are_spared_once_room_was_made() -> None:
    """A later tier with a bound of its own does not end the walk for the tier that counts moves."""
    room = Capacity(WHERE, ints([1, 1, 1, 1]), ints([1, 1, 1, 1, 1]), np.full(5, 1))
    start = Placement.of([(0, 0, 1), (1, 1, 1), (2, 2, 1)])
    pending = Tier("pending", (Weighted(1, Unplaced(WHERE, ints([0, 0, 0, 1]))),))
    moves = Tier("moves", (Weighted(1, Move(WHERE, ints([1, 1, 1, 1]))),))
    cost = NodeCurve(WHERE, ints([9] * 4), ints([0] * 5), ints([0] * 5), Curves(ints([[0]]), ints([[1]]), ints([[0]])))
    tiers = (pending, moves, Tier("cost", (Weighted(1, cost),)))
    size, optional = ints([1] * 4), ints([0, 0, 0, 1])
    problem = Problem(tuple("abcde"), tuple("fghi"), size, optional, start, (room,), tiers)
    options = Options(time_limit=5.0, deterministic=True)
    run = Run.begun(Evaluator(problem), options, Stop())
    assert run.offer(Placement.of([(0, 1, 1), (1, 2, 1), (2, 0, 1), (3, 3, 1)]), "circle")
    run.raise_bound(2, 36, "known")
    engine = WalkEngine(run, options, RearrangementParameters(), 2)
    engine.spare_moves()
    assert run.values == (0, 3, 36)
    engine.turns_for_room = 1
    engine.spare_moves()
    assert run.values == (0, 0, 36)


@pytest.mark.parametrize(("pods", "turns", "value"), [(2, 1, 1), (3, 2, 11)])
def test_where_moves_are_all_that_is_left_there_is_no_long_walk(pods: int, turns: int, value: int) -> None:
    """A node is dear from its second pod on: two pods cost nothing but a move, three of them cost more than that."""
    hinge = Curves(ints([[0, 1]]), ints([[0, 10]]), ints([[0, 0]]))
    loads = NodeCurve(WHERE, ints([1]), ints([0, 0]), ints([0, 0]), hinge)
    tier = Tier("loads and moves", (Weighted(1, loads), Weighted(1, Move(WHERE, ints([1])))))
    start = Placement.of([(0, 0, pods)])
    problem = Problem(("a", "b"), ("c",), ints([pods]), ints([0]), start, (), (tier,))
    options = Options(time_limit=5.0, deterministic=True)
    run = Run.begun(Evaluator(problem), options, Stop())
    engine = WalkEngine(run, options, RearrangementParameters(provable=0, far_gap=0.0), 2)
    assert engine.begin()
    assert run.values == (value,)
    assert engine.turns == turns
    assert engine.go_on(0)
    assert engine.turns == turns
