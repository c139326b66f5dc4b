"""Large neighborhood search never breaks a rule, never makes anything worse, and does not depend on who computes."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.problem import Capacity, Curves, Move, NodeCurve, Origin, Placement, Problem, Tier, Weighted
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import ProcessBackend, SerialBackend
from stowplan.optimizer.cpsat.solve import build
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.lns.extraction import Busy, extract
from stowplan.optimizer.lns.features import Features, Shared
from stowplan.optimizer.lns.lns import OperatorState, _Proposal, _Search, improve
from stowplan.optimizer.lns.operators import ABOUT_MOVES, OPERATORS, Neighborhood, cheaper_moves, exchange
from stowplan.optimizer.lns.parameters import LnsParameters
from stowplan.optimizer.lns.selection import OperatorSelection
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.optimizer.annealing.test_kernel import compiled_problem
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import drawn
from tests.support.processes import workers_of


@cache
def synthetic(objective: str = "balance") -> tuple[Evaluator, Placement]:
    """Return a cluster of 20 nodes, and where its pods stand."""
    problem = compile_problem(synthetic_snapshot(20, 150), default_profile(K36), PRESETS[objective]).problem
    return Evaluator(problem), problem.start


def quick(evaluator: Evaluator) -> OperatorState:
    """Return a state with which sub-problems are small, so that a few of them take no second."""
    return OperatorState(evaluator, LnsParameters(first_size=40, largest=60))


# -- the search -----------------------------------------------------------------------------------------------


@cases(12, at_least={"better": 6}, problem=drawn(compiled_problem), seed=st.integers(0, 99))
def test_tier_after_tier_it_finds_what_enumeration_finds(problem: Problem, seed: int) -> None:
    """On three nodes a neighborhood may hold everything, so nothing may be missed."""
    evaluator, incumbent = Evaluator(problem), problem.start
    with SerialBackend(Stop()) as backend:
        for tier in range(len(problem.tiers)):
            before = evaluator.evaluate(incumbent).values
            done = improve(evaluator, incumbent, tier, Deadline(10, deterministic=True), backend, seed=seed)
            evaluation = evaluator.evaluate(done.placement)
            assert evaluation.legal
            assert evaluation.values == done.values
            assert done.values[: tier + 1] <= before[: tier + 1]
            assert not done.notes
            incumbent = done.placement
    reached = evaluator.evaluate(incumbent).values
    assert reached == best(problem)
    count("better", reached < evaluator.evaluate(problem.start).values)


@pytest.mark.parametrize("objective", ["balance", "pack", "spread"])
def test_it_improves_an_uneven_history(objective: str) -> None:
    evaluator, incumbent = synthetic(objective)
    offered: list[Placement] = []
    with SerialBackend(Stop()) as backend:
        tier = next(t for t, value in enumerate(evaluator.evaluate(incumbent).values) if value)
        deadline = Deadline(0.5, deterministic=True)
        done = improve(evaluator, incumbent, tier, deadline, backend, seed=1, offer=offered.append)
    assert done.values < evaluator.evaluate(incumbent).values
    evaluations = [evaluator.evaluate(placement) for placement in [incumbent, *offered]]
    assert all(evaluation.legal for evaluation in evaluations)
    assert all(a.values > b.values for a, b in pairwise(evaluations))
    assert evaluator.evaluate(done.placement).values == done.values
    assert not done.notes


def test_it_stops_at_what_is_enough() -> None:
    evaluator, incumbent = synthetic()
    before = evaluator.evaluate(incumbent).values
    with SerialBackend(Stop()) as backend:
        search = partial(improve, evaluator, incumbent, 1, Deadline(0.6, deterministic=True), backend, seed=3)
        whole = search(operator_state=quick(evaluator))
        some = (9 * before[1] + whole.values[1]) // 10
        done = search(operator_state=quick(evaluator), enough=some)
        none = search(operator_state=quick(evaluator), enough=before[1])
    assert whole.values[1] < done.values[1] <= some
    assert none.solved == 0
    assert none.placement.same_as(incumbent)


def test_a_pool_finds_what_one_process_finds() -> None:
    evaluator, incumbent = synthetic()
    found = []
    for backend in (SerialBackend(Stop()), ProcessBackend(2, Stop())):
        with backend:
            state, deadline = quick(evaluator), Deadline(0.2, deterministic=True)
            found.append(improve(evaluator, incumbent, 1, deadline, backend, seed=3, operator_state=state))
    assert found[0].placement.same_as(found[1].placement)
    assert found[0].operators == found[1].operators
    assert found[0].values < evaluator.evaluate(incumbent).values


def test_the_seed_decides() -> None:
    evaluator, incumbent = synthetic()
    deadline = Deadline(0.1, deterministic=True)
    with SerialBackend(Stop()) as backend:
        found = [
            improve(evaluator, incumbent, 1, deadline, backend, seed=seed, operator_state=quick(evaluator))
            for seed in (1, 1, 2)
        ]
    assert found[0].placement.same_as(found[1].placement)
    assert not found[0].placement.same_as(found[2].placement)


def test_a_killed_process_costs_nothing_but_time() -> None:
    evaluator, incumbent = synthetic()
    with ProcessBackend(2, Stop()) as pool:
        killed: list[int] = []
        begun, over = threading.Event(), threading.Event()

        def kill() -> None:
            """Kill a worker, and others if it had nothing to do, which costs nobody anything."""
            begun.wait()
            while not pool.counts.lost and not over.is_set():
                for worker in workers_of()[:1]:
                    worker.kill()
                    killed.append(worker.pid)
                over.wait(0.3)

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        search = partial(improve, evaluator, incumbent, 1, Deadline(0.2, deterministic=True), seed=3)
        done = search(pool, offer=lambda _: begun.set(), operator_state=quick(evaluator))
        begun.set()
        over.set()
        thread.join()
    assert killed
    with SerialBackend(Stop()) as backend:
        undisturbed = search(backend, operator_state=quick(evaluator))
    assert done.placement.same_as(undisturbed.placement)
    assert set(done.notes) == {"a process for sub-problems died and was replaced"}


def test_time_and_the_stop_signal_are_kept_to() -> None:
    evaluator, incumbent = synthetic()
    for seconds, told in ((1.0, 60.0), (60.0, 1.0)):
        stop = Stop()
        timer = threading.Timer(told, stop.set)
        timer.start()
        with SerialBackend(stop) as backend:
            began = time.monotonic()
            done = improve(evaluator, incumbent, 1, Deadline(seconds, stop=stop), backend)
            assert time.monotonic() - began < 2.0
        timer.cancel()
        assert evaluator.evaluate(done.placement).legal


# -- its parts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OPERATORS)
def test_each_kind_names_nodes_once_and_parts_stay_apart(kind: str) -> None:
    objective = {"emptiest": "pack", "room": "balance"}.get(kind, "balance")
    problem = compile_problem(synthetic_snapshot(20, 150), default_profile(K36), PRESETS[objective]).problem
    incumbent = problem.start
    if kind == "room":
        some = incumbent.cls % 5 > 0
        incumbent = Placement(incumbent.cls[some], incumbent.node[some], incumbent.count[some])
    if kind in ("moved", "cheaper moves"):
        with SerialBackend(Stop()) as backend:
            incumbent = improve(Evaluator(problem), incumbent, 1, Deadline(0.2, deterministic=True), backend).placement
    tier = {"emptiest": 1}.get(kind, len(problem.tiers) - 1)
    features = Features(Shared(Index(Evaluator(problem)), tier), incumbent)
    rng = np.random.default_rng(1)
    busy = Busy(*problem.shape)
    taken: list[int] = []
    for _ in range(3):
        neighborhood = OPERATORS[kind](features, rng)
        assert neighborhood is not None
        assert len(np.unique(neighborhood.nodes)) == len(neighborhood.nodes)
        free = extract(features, neighborhood, 120, busy, rng)
        if free is None:
            continue  # all nodes of the idea are taken
        assert len(free.classes) * len(free.nodes) <= 120
        assert np.array_equal(free.nodes, np.unique(free.nodes))
        assert np.array_equal(free.classes, np.unique(free.classes))
        assert set(free.waiting) <= set(free.classes)
        busy.take(free)
        taken += free.nodes.tolist()
    assert len(taken) == len(set(taken)) > 0


def scattered(evaluator: Evaluator, rng: np.random.Generator, share: float = 0.3) -> Placement:
    """Return the start with some of its pods elsewhere; rules are nobody's concern here."""
    start, nodes = evaluator.problem.start, len(evaluator.problem.nodes)
    entries: dict[tuple[int, int], int] = {}
    for c, n, pods in start.entries():
        for _ in range(pods):
            place = (c, int(rng.integers(nodes)) if rng.random() < share else n)
            entries[place] = entries.get(place, 0) + 1
    return Placement.of((c, n, pods) for (c, n), pods in entries.items())


def test_cheaper_moves_are_looked_for_where_pods_have_moved() -> None:
    evaluator, start = synthetic()
    rng = np.random.default_rng(3)
    shared = Shared(Index(evaluator), len(evaluator.problem.tiers) - 1)
    assert cheaper_moves(Features(shared, start), rng) is None
    some = start.cls % 5 > 0
    fewer = Placement(start.cls[some], start.node[some], start.count[some])
    newcomers = replace(
        evaluator.problem, start=fewer, optional=evaluator.problem.size - fewer.placed(len(evaluator.problem.classes))
    )
    assert (
        cheaper_moves(Features(Shared(Index(Evaluator(newcomers)), 1), start), rng) is None
    )  # they waited, and moved nowhere
    packing, _ = synthetic("pack")
    assert (
        cheaper_moves(Features(Shared(Index(packing), 1), scattered(packing, rng)), rng) is None
    )  # there are no curves

    features = Features(shared, scattered(evaluator, rng))
    here = [set(features.came.cls[features.came.node == n].tolist()) for n in range(len(evaluator.problem.nodes))]
    gone = [set(features.left.cls[features.left.node == n].tolist()) for n in range(len(evaluator.problem.nodes))]
    for _ in range(20):
        neighborhood = cheaper_moves(features, rng)
        assert neighborhood is not None
        assert neighborhood.curves_held
        nodes = neighborhood.nodes.tolist()
        assert here[nodes[0]] & set(features.left.cls.tolist())
        tied = [any(here[n] & gone[m] or gone[n] & here[m] for m in nodes[:i]) for i, n in enumerate(nodes)][1:]
        assert tied == sorted(tied, reverse=True)  # those that moves tie come first
        assert tied[0]
        assert set(neighborhood.movers.tolist()) == set().union(*(here[n] | gone[n] for n in nodes))


HERE = Origin("test")


def two_loads(demands: list[tuple[int, int]], on: list[int], wanted: tuple[int, int]) -> tuple[Evaluator, Placement]:
    """Return pods with two demands on nodes that cost as much as their loads differ from what is wanted.

    A node holds one unit more than that, or what it holds at the start.
    """
    pods, nodes = len(on), max(on) + 1
    one, some = np.ones(pods, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    start = Placement.of((c, n, 1) for c, n in enumerate(on))
    terms, rules = [], []
    for demand, target in zip(np.array(demands).T, wanted, strict=True):
        curves = Curves(np.array([[0, target]]), np.array([[-1, 1]]), np.array([[target, 0]]))
        terms.append(Weighted(1, NodeCurve(HERE, demand, some, some, curves)))
        rules.append(Capacity(HERE, demand, np.maximum(target + 1, start.per_node(nodes, demand)), some))
    tiers = (Tier("balance", (*terms, Weighted(1, Move(HERE, one)))),)
    names = tuple(f"n{n}" for n in range(nodes)), tuple(f"c{c}" for c in range(pods))
    return Evaluator(Problem(*names, one, 0 * one, start, tuple(rules), tiers)), start


def test_an_exchange_begins_where_loads_cost_too_much_with_who_has_what_is_missing() -> None:
    """The first node has too little of the second load; only pods of the last one help, which has too much, and has to.

    There is one unit of each load more than is wanted in all.
    """
    others = [(4, 1), (0, 3)] * 6
    evaluator, start = two_loads(
        [(3, 2), (2, 1), *others, (1, 3), (3, 3)], [0, 0, *np.repeat(range(1, 7), 2), 7, 7], (4, 4)
    )
    features = Features(Shared(Index(evaluator), 0), start)
    assert features.reduced_cost.tolist() == [2, 0, 0, 0, 0, 0, 0, 0]
    assert not features.only_moves_are_left
    rng = np.random.default_rng(1)
    seconds = []
    for _ in range(200):
        neighborhood = exchange(features, rng)
        assert neighborhood is not None
        assert sorted(neighborhood.nodes.tolist()) == list(range(8))
        assert neighborhood.nodes[0] == 0
        seconds.append(int(neighborhood.nodes[1]))
    assert seconds.count(7) > 2 * max(seconds.count(n) for n in range(1, 7))


def test_where_no_load_costs_too_much_there_is_no_exchange_but_moves_are_followed() -> None:
    evaluator, start = two_loads([(2, 2)] * 24, list(np.repeat(range(12), 2)), (4, 4))
    turned = Placement.of((c, (n + 1) % 12, 1) for c, n, _ in start.entries())
    shared = Shared(Index(evaluator), 0)
    assert Features(shared, turned).only_moves_are_left
    assert exchange(Features(shared, turned), np.random.default_rng(1)) is None
    with SerialBackend(Stop()) as backend:
        search = _Search(
            OperatorState(evaluator), turned, 0, Deadline(1e6), backend, 1, lambda placement: None, True, None
        )
        kinds = [proposal.operator for _ in range(60) if (proposal := alone(search)) is not None]
    assert sum(kind in ABOUT_MOVES for kind in kinds) > 0.6 * len(kinds)
    assert set(kinds) - ABOUT_MOVES


def test_where_nothing_moved_others_have_their_turn() -> None:
    evaluator, start = two_loads([(2, 2)] * 24, list(np.repeat(range(12), 2)), (4, 4))
    assert Features(Shared(Index(evaluator), 0), start).only_moves_are_left
    with SerialBackend(Stop()) as backend:
        search = _Search(
            OperatorState(evaluator), start, 0, Deadline(1e6), backend, 1, lambda placement: None, True, None
        )
        assert all(alone(search) is not None for _ in range(30))


def test_an_idea_that_is_nothing_without_its_first_node_waits_for_it() -> None:
    evaluator, start = two_loads([(2, 2)] * 24, list(np.repeat(range(12), 2)), (4, 4))
    features, busy, rng = (
        Features(Shared(Index(evaluator), 0), start),
        Busy(*evaluator.problem.shape),
        np.random.default_rng(1),
    )
    busy.nodes[3] = True
    nodes = np.array([3, 1, 2, 0])
    assert extract(features, Neighborhood(nodes, anchored=True), 100, busy, rng) is None
    free = extract(features, Neighborhood(nodes), 100, busy, rng)
    assert free is not None
    assert free.nodes.tolist() == [0, 1, 2]


def alone(search: _Search) -> _Proposal | None:
    """Return a proposal that nobody works on."""
    proposal = search._propose()
    if proposal is not None:
        search.busy.release(proposal.free)
    return proposal


def test_who_moved_is_left_out_last() -> None:
    evaluator, start = synthetic()
    rng = np.random.default_rng(3)
    features, busy = Features(Shared(Index(evaluator), 1), start), Busy(*evaluator.problem.shape)
    nodes = np.arange(3)
    there = np.unique(np.concatenate([features.classes_on(n) for n in range(3)]))
    for few in (3, len(there) - 3):
        movers = rng.permutation(there)[:few]
        free = extract(features, Neighborhood(nodes, movers=movers), 3 * (len(there) // 2), busy, rng)
        assert free is not None
        assert len(free.classes) == len(there) // 2
        staying = np.isin(movers, free.classes).sum()
        assert staying == min(few, len(free.classes))


@pytest.mark.parametrize("held", [False, True])
def test_nothing_is_proven_where_curves_were_held(held: bool) -> None:
    evaluator, start = synthetic()
    everything = Free.everything(evaluator.problem)
    with SerialBackend(Stop()) as backend:
        search = _Search(OperatorState(evaluator), start, 1, Deadline(1), backend, 0, lambda _: None, True, None)
    values = evaluator.evaluate(start).values
    restricted = build(Index(evaluator), 1, values[:1], start, values, everything, curves_held=held)
    assert search._whole(_Proposal("any", held, everything, restricted, 1.0, 0, 0)) is not held


def test_kinds_that_help_are_chosen_more_often_and_sizes_follow_the_work() -> None:
    selection, rng = OperatorSelection(["good", "bad"]), np.random.default_rng(1)
    first = selection.size("good")
    for _ in range(60):
        selection.learn("good", gain=7, optimal=True, work=0.001, granted=selection.work)
        selection.learn("bad", gain=0, optimal=False, work=selection.work, granted=selection.work)
    chosen = [selection.next(rng) for _ in range(200)]
    assert chosen.count("good") > 150
    assert "bad" in chosen
    assert selection.size("good") > first > selection.size("bad")
    assert selection.next(rng, without=["good"]) == "bad"
    assert selection.next(rng, without=["good", "bad"]) is None


def test_small_gains_do_not_stand_in_the_way_of_large_ones() -> None:
    selection, rng = OperatorSelection(["large", "small"]), np.random.default_rng(1)
    selection.work = before = 4 * LnsParameters().least_work
    for _ in range(30):
        for kind, gain in (("large", 5000), ("small", 1)):
            selection.learn(kind, gain=gain, optimal=True, work=selection.work / 4, granted=selection.work)
    chosen = [selection.next(rng) for _ in range(200)]
    assert chosen.count("large") > 180
    assert selection.work == before  # half of them were worth nothing, so success is not frequent
    for _ in range(90):
        selection.learn("large", gain=0, optimal=True, work=selection.work / 4, granted=selection.work)
        selection.learn("small", gain=1, optimal=True, work=selection.work / 4, granted=selection.work)
    chosen = [selection.next(rng) for _ in range(200)]
    assert chosen.count("small") > 180  # nothing else is left to gain
