"""Ways between placements: every move is legal in its turn, and where there is a way, one is found."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from stowplan.models.problem import Allow, AtMost, Capacity, MoveBudget, Placement, Problem, Rule, Topology
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.reconfiguration import Hop, ReconfigurationParameters, find_way, knows
from tests.optimizer.rearrangement.test_walk import problem_to_walk
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import WHERE

CHOSEN = ReconfigurationParameters(most_moves=100.0)
SHORT = Deadline(0.05, deterministic=True)
MOST = 4_000
"""Placements that are listed at most."""
Table = tuple[tuple[int, ...], ...]


def states(evaluator: Evaluator, first: Placement) -> dict[Table, int]:
    """Return the placements that single moves lead to, each legal, and how many moves that takes at least."""
    classes, nodes = len(evaluator.problem.classes), len(evaluator.problem.nodes)

    def key(y: np.ndarray) -> Table:
        return tuple(map(tuple, y.tolist()))

    start = first.table(classes, nodes)
    known, queue = {key(start): 0}, deque([start])
    while queue and len(known) < MOST:
        y = queue.popleft()
        for c, a, b in product(range(classes), range(nodes), range(nodes)):
            if a == b or not y[c, a]:
                continue
            z = y.copy()
            z[c, a] -= 1
            z[c, b] += 1
            if key(z) not in known and evaluator.evaluate(Placement.from_table(z)).legal:
                known[key(z)] = known[key(y)] + 1
                queue.append(z)
    return known


def followed(evaluator: Evaluator, start: Placement, hops: list[Hop]) -> Placement:
    """Return where moves lead, each of which must be legal and move a pod that is there."""
    at = start
    for c, a, b in hops:
        assert at.at(c, a) > 0
        at = at.with_pod_moved(c, a, b)
        assert evaluator.evaluate(at).legal
    return at


def small(choices: Choices) -> Problem:
    """Return a random problem with few pods, all of which have a node, and no limit on moves."""
    problem = problem_to_walk(choices)
    rules = tuple(rule for rule in problem.rules if not isinstance(rule, MoveBudget))
    return replace(problem, rules=rules)


def tight(choices: Choices) -> Problem:
    """Return full nodes, and one with some room; pods of one class may be several, and some kinds keep apart."""
    nodes, classes = choices.integer(3, 4), choices.integer(3, 5)
    size, demand = choices.array(classes, 1, 2), choices.array(classes, 1, 3)
    pairs = [(c, choices.integer(0, nodes - 1)) for c in range(classes) for _ in range(size[c])]
    start = Placement.of((c, n, pairs.count((c, n))) for c, n in set(pairs))
    room = start.per_node(nodes, demand) + choices.array(nodes, 0, 2)
    rules: list[Rule] = [Capacity(WHERE, demand, room, np.ones(nodes, dtype=np.int64))]
    if choices.chance(0.3):
        domain = np.arange(nodes)
        where = Topology("host", domain, tuple(f"n{n}" for n in range(nodes)))
        group = np.array([0, 1])
        rules.append(AtMost(WHERE, group, where, max(1, int(start.only(group).per_node(nodes).max())), 0 * domain))
    names = tuple(f"c{c}" for c in range(classes)), tuple(f"n{n}" for n in range(nodes))
    return Problem(names[1], names[0], size, 0 * size, start, tuple(rules), ())


@cases(
    300,
    at_least={"reached": 100, "not directly": 10, "as few as can be": 100, "nothing leads there": 5},
    problem=drawn(lambda choices: (small if choices.chance(0.4) else tight)(choices)),
    pick=drawn(lambda choices: choices.integer(0, 1 << 20)),
)
def test_where_there_is_a_way_one_is_found(problem: Problem, pick: int) -> None:
    evaluator = Evaluator(problem)
    if not knows(problem, CHOSEN) or evaluator.evaluate(problem.start).violations or problem.start.count.sum() > 8:
        return
    classes, nodes = len(problem.classes), len(problem.nodes)
    near = states(evaluator, problem.start)
    if len(near) >= MOST:
        return
    rng = np.random.default_rng(pick)
    wanted = next((one for _ in range(50) if (one := shuffled(problem, rng, evaluator)) is not None), problem.start)
    hops = list(find_way(evaluator, wanted, SHORT, pick, parameters=CHOSEN))
    end = followed(evaluator, problem.start, hops)
    least = near.get(tuple(map(tuple, wanted.table(classes, nodes).tolist())))
    moved = problem.start.moved(wanted, nodes)
    if least is None:
        count("nothing leads there", 1)
        return
    assert end.same_as(wanted)
    assert len(hops) >= least
    count("reached", moved > 0)
    count("not directly", least > moved)
    count("as few as can be", 0 < len(hops) == least)


def shuffled(problem: Problem, rng: np.random.Generator, evaluator: Evaluator) -> Placement | None:
    """Return a random legal placement of the pods that are placed at the start; none if the draw is not legal."""
    nodes = len(problem.nodes)
    cls = np.repeat(problem.start.cls, problem.start.count)
    node = np.repeat(problem.start.node, problem.start.count)
    again = rng.random(len(cls)) < 0.7
    node = np.where(again, rng.integers(0, nodes, len(cls)), node)
    found = Placement.summed(cls * nodes + node, np.ones(len(cls), dtype=np.int64), nodes)
    return found if evaluator.evaluate(found).legal else None


def full(swapped: int, free: int) -> tuple[Problem, Placement]:
    """Return full nodes whose pods change places in pairs, and one with room for some."""
    nodes, pods = 2 * swapped + 1, 2 * swapped
    size = np.ones(pods, dtype=np.int64)
    room = np.full(nodes, 2)
    room[-1] = free
    capacity = Capacity(WHERE, 2 * size, room, np.ones(nodes, dtype=np.int64))
    start = Placement.of((p, p, 1) for p in range(pods))
    names = tuple(f"c{p}" for p in range(pods)), tuple(f"n{n}" for n in range(nodes))
    problem = Problem(names[1], names[0], size, np.zeros(pods, dtype=np.int64), start, (capacity,), ())
    return problem, Placement.of((p, p ^ 1, 1) for p in range(pods))


@pytest.mark.parametrize("pairs", [1, 2, 10])
def test_pods_that_change_places_go_over_the_node_with_room_one_pair_at_a_time(pairs: int) -> None:
    problem, wanted = full(pairs, 2)
    hops = list(find_way(Evaluator(problem), wanted, Deadline(2.0, deterministic=True)))
    assert followed(Evaluator(problem), problem.start, hops).same_as(wanted)
    assert len(hops) == 3 * pairs


def test_without_room_nothing_moves() -> None:
    problem, wanted = full(2, 1)
    assert not find_way(Evaluator(problem), wanted, SHORT)


def test_a_pod_does_not_come_back_to_a_node_that_takes_none() -> None:
    problem, wanted = full(1, 2)
    closed = np.array([[True, True, True], [True, False, True]])
    rules = (*problem.rules, Allow(WHERE, np.array([0, 1]), closed))
    hops = list(find_way(Evaluator(replace(problem, rules=rules)), wanted, SHORT))
    assert all((hop.cls, hop.target) != (1, 1) for hop in hops)


def test_the_same_work_finds_the_same_way_and_a_stop_ends_it() -> None:
    problem, wanted = full(10, 2)
    ways = [list(find_way(Evaluator(problem), wanted, Deadline(0.4, deterministic=True), 7)) for _ in range(2)]
    assert ways[0] == ways[1] != []
    stop = Stop()
    stop.set()
    assert not find_way(Evaluator(problem), wanted, Deadline(100.0, stop=stop))


def test_what_stays_charged_on_the_source_is_not_known() -> None:
    problem, _ = full(1, 2)
    held = replace(problem.rules[0], held_on_source=True)
    assert knows(problem, CHOSEN)
    assert not knows(replace(problem, rules=(held,)), CHOSEN)
