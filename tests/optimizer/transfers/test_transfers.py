"""The program of transfers: no placement is below its bounds, and few moves are found and proven with it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import psutil
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.arrays import Floats
from stowplan.models.options import Options
from stowplan.models.problem import (
    Capacity,
    GroupMoveBudget,
    Held,
    Move,
    MoveBudget,
    Open,
    Placement,
    Prefer,
    Problem,
    Repel,
    Tier,
    Topology,
    Unplaced,
    Weighted,
)
from stowplan.models.result import Status
from stowplan.models.settings import Settings
from stowplan.models.stop import Stop
from stowplan.optimizer.bounds.node_programs import Programs, node_programs
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.processes import GRACE
from stowplan.optimizer.run import Run
from stowplan.optimizer.transfers.parameters import TransferParameters
from stowplan.optimizer.transfers.program import FINEST, LARGEST_COST, TransferProgram
from stowplan.optimizer.transfers.search import NAME
from stowplan.optimizer.transfers.solver import solve as solve_program
from stowplan.optimizer.transfers.turns import TransferTurns
from stowplan.settings.problem import make_problem
from tests.optimizer.node_changes.test_node_changes import limited
from tests.support.brute_force import best, legal_values
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import labels, node, pod, snapshot
from tests.support.problems import WHERE, random_problem
from tests.support.random_clusters import Setup, random_cluster


def with_other_tiers(choices: Choices, problem: Problem) -> Problem:
    """Return a problem with random tiers of all that is linear, a budget for some classes, and a negative demand."""
    classes, nodes = problem.shape

    def weighted() -> Weighted:
        held = np.array([choices.one((0, 0, 1)) for _ in range(nodes)])
        term = choices.one(
            (
                Open(WHERE, choices.array(nodes, 0, 3), held),
                Move(WHERE, choices.array(classes, 0, 3)),
                Unplaced(WHERE, choices.array(classes, 0, 3)),
                Prefer(WHERE, np.arange(classes), choices.array((classes, nodes), 0, 4)),
            )
        )
        return Weighted(choices.one((1, 1, 2, 7)), term)

    count = choices.integer(2, 4)
    tiers = tuple(Tier(f"t{i}", tuple(weighted() for _ in range(choices.integer(1, 3)))) for i in range(count))
    rules = [*problem.rules]
    if choices.chance(0.3):
        rules.append(GroupMoveBudget(WHERE, np.array([choices.integer(0, classes - 1)]), choices.integer(0, 2)))
    if choices.chance(0.2):
        room = choices.array(nodes, 0, 4)
        rules.append(Capacity(WHERE, choices.array(classes, -2, 3), room, np.full(nodes, 10)))
    return replace(problem, tiers=tiers, rules=tuple(rules))


def random_counting(choices: Choices) -> Problem:
    """Return a tiny problem with tiers that count, with a limit on moves or without one."""
    limit = choices.one((None, 0, 1, 2, 3))
    if choices.chance(0.4):
        return with_other_tiers(choices, limited(random_problem(choices, broken=None), limit))
    problem = limited(Setup("pack").compile(random_cluster(choices, broken=None)).problem, limit)
    if not choices.chance(0.3):
        return problem
    # Demands so large that the program has to round them.
    fine = [
        replace(rule, demand=rule.demand * FINEST + choices.integer(0, 5), free=rule.free * FINEST + 100)
        if isinstance(rule, Capacity)
        else rule
        for rule in problem.rules
    ]
    return replace(problem, rules=tuple(fine))


def linear_programs_of(problem: Problem, tier: int, reached: tuple[int, ...]) -> Programs | None:
    """Return the programs of the nodes for a tier, if they are linear."""
    programs = node_programs(Evaluator(problem), upper_bounds(problem), tier, reached, 1 << 20, 1 << 20)
    return programs if programs is not None and TransferProgram.suits(programs) else None


def programs_of(problem: Problem, tier: int, reached: tuple[int, ...]) -> TransferProgram | None:
    """Return the program of a tier, if it has one."""
    programs = linear_programs_of(problem, tier, reached)
    return None if programs is None else TransferProgram(programs)


def turns_of(
    run: Run, options: Options, parameters: TransferParameters | None = None, processors: int = 2
) -> TransferTurns:
    """Return the turns of transfers in a run."""
    chosen = parameters or TransferParameters()
    return TransferTurns(run, options, chosen, BoundParameters(), CpSatParameters(), processors)


def told(program: TransferProgram, below: int | None) -> tuple[list[int], list[int]]:
    """Return the bounds of a solver that has the time it needs, and what its solutions are worth."""
    bounds, worths = [0], []
    part = program.whole if below is None else program.below(below)
    assert part is not None

    def hear(word: float | Floats) -> None:
        if isinstance(word, float):
            bounds.append(program.bound(word, below) or 0)
        else:
            worths.append(program.worth(word))

    assert solve_program(part, time.monotonic() + 60.0, lambda: False, hear)
    return bounds, worths


@cases(60, at_least={"above nothing": 10, "met": 20, "with a row": 20}, problem=drawn(random_counting))
def test_no_placement_is_below_the_bound(problem: Problem) -> None:
    start = Evaluator(problem).evaluate(problem.start).values
    legal = legal_values(problem)
    for tier in range(len(start)):
        program = programs_of(problem, tier, start[:tier])
        if program is None:
            continue
        least = min(v[tier] for v in legal if all(a <= b for a, b in zip(v[:tier], start[:tier], strict=True)))
        for below in (None, start[tier], least, least + 1):
            bounds, worths = told(program, below)
            assert max(bounds) <= least
            assert below is None or all(worth < below for worth in worths)
            assert not worths or worths[-1] == max(bounds) or below == least
            count("with a row", below is not None and max(bounds) == least)
        count("above nothing", max(bounds) > 0)
        count("met", max(bounds) == least)


@cases(
    40,
    at_least={"better": 5, "proven": 5},
    problem=drawn(random_counting),
    here=drawn(lambda choices: choices.one((0, 1000, 1000, 1000))),
)
def test_what_is_taken_is_legal_and_what_is_proven_holds(problem: Problem, here: int) -> None:
    run = Run.begun(Evaluator(problem), Options(time_limit=20.0), Stop())
    turns = turns_of(run, Options(), TransferParameters(largest_here=here))
    before = run.values
    for tier in range(len(before)):
        turns.take(tier)
    optimum = best(problem)
    assert not run.notes
    assert run.evaluator.evaluate(run.best).legal or run.best is problem.start
    assert run.values >= optimum
    if run.values < before:
        count("better")
    for tier, bound in enumerate(run.bounds):
        if run.values[:tier] == optimum[:tier]:
            assert bound <= optimum[tier]
            count("proven", run.bound_by(tier) == NAME)


def test_nodes_in_use_and_moves_are_proven_on_a_hundred_nodes() -> None:
    problem = make_problem(synthetic_snapshot(100, 1000, 15), Settings(objective="pack", max_moves=50)).problem
    # All can be proven, so that the solve ends with the last proof and not with the time, on any machine.
    outcome = solve(problem, Options(time_limit=60.0))
    assert outcome.values[-2:] == (83, 50)
    assert outcome.status is Status.OPTIMAL
    assert outcome.tiers[-2].bound_by == NAME


def test_bounds_for_other_values_of_the_tiers_above_are_left_aside() -> None:
    """A placement that is found makes the first tier better and the second one worse, which frees the third."""
    together = Topology("b", np.array([-1, 0, -1]), ("b",))
    none = np.zeros(3, dtype=np.int64)
    rules = (
        Capacity(WHERE, np.array([1, 1]), np.array([2, 2, 1]), np.full(3, 10)),
        Repel(WHERE, np.array([0]), np.array([1]), together, Held(none, none, none)),
        MoveBudget(WHERE, 2),
    )
    tiers = (
        Tier("score", (Weighted(1, Prefer(WHERE, np.array([0, 1]), np.array([[5, 0, 0], [0, 0, 0]]))),)),
        Tier("nodes", (Weighted(1, Open(WHERE, np.ones(3, dtype=np.int64), none)),)),
        Tier("other", (Weighted(1, Prefer(WHERE, np.array([0, 1]), np.array([[10, 8, 0], [10, 8, 30]]))),)),
    )
    start = Placement.of([(0, 0, 1), (1, 0, 1)])
    problem = Problem(("a", "b", "c"), ("p", "q"), np.array([1, 1]), np.array([0, 0]), start, rules, tiers)
    for here, processors in ((1000, 1), (0, 1), (0, 2)):
        run = Run.begun(Evaluator(problem), Options(time_limit=60.0), Stop())
        turns_of(run, Options(), TransferParameters(largest_here=here), processors).take(2)
        possible = [v[2] for v in legal_values(problem) if v[0] <= run.values[0] and v[1] <= run.values[1]]
        assert run.bounds[2] <= min(possible)
        assert run.values[:2] < run.evaluator.evaluate(start).values[:2]


def test_what_a_row_of_costs_cannot_tell_is_not_asked() -> None:
    problem = make_problem(synthetic_snapshot(6, 40, 1), Settings(objective="pack", max_moves=2)).problem
    tier = len(problem.tiers) - 1
    move = Tier("moves", (Weighted(1, Move(WHERE, np.arange(len(problem.classes)) + LARGEST_COST)),))
    costly = replace(problem, tiers=(*problem.tiers[:-1], move))
    for one, tells in ((problem, True), (costly, False)):
        program = programs_of(one, tier, Evaluator(one).evaluate(one.start).values[:tier])
        assert program is not None
        assert (program.below(5) is not None) == tells


def test_a_solver_that_does_not_listen_is_ended() -> None:
    problem = make_problem(synthetic_snapshot(180, 1800, 7), Settings(objective="pack", max_moves=200)).problem
    stop, options = Stop(), Options(time_limit=120.0)
    run = Run.begun(Evaluator(problem), options, stop)
    before = set(psutil.Process().children(recursive=True))
    turns = turns_of(run, options)
    told_at: list[float] = []
    threading.Timer(8.0, lambda: (told_at.append(time.monotonic()), stop.set())).start()
    turns.take_first(len(run.values))
    assert time.monotonic() < told_at[0] + GRACE + 1.5  # asked by callbacks alone, it takes 4 to 10 seconds
    new = set(psutil.Process().children(recursive=True)) - before
    assert not [process for process in new if "spawn_main" in " ".join(process.cmdline())]


def test_a_stop_ends_it_and_what_is_deterministic_is_left_alone() -> None:
    problem = make_problem(synthetic_snapshot(100, 1000, 7), Settings(objective="pack", max_moves=200)).problem
    stop = Stop()
    stop.set()
    for options in (Options(time_limit=20.0, deterministic=True), Options(time_limit=20.0)):
        run = Run.begun(Evaluator(problem), options, stop)
        turns_of(run, options).take_first(len(run.values))
        assert run.best is problem.start
    assert np.all(np.array(run.bounds) == 0)


def test_where_rules_between_nodes_keep_a_solution_from_being_placed_others_are_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zone = "topology.kubernetes.io/zone"

    def apart(name: str) -> dict[str, Any]:
        term = {"labelSelector": labels(group=name), "topologyKey": zone}
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    full = [node(f"n{i}", cpu="1", labels={zone: "here"}) for i in range(6)]
    large = node("n6", cpu="16", labels={zone: "there"})
    # Each of six pods could leave its node, for all that the program knows; five of them have a replica there already.
    pods = [pod("free", "n3", owner="ReplicaSet/free")]
    for i in (0, 1, 2, 4, 5):
        same = {"owner": f"ReplicaSet/r{i}", "labels": {"group": f"r{i}"}, "affinity": apart(f"r{i}")}
        pods += [pod(f"here-{i}", f"n{i}", **same), pod(f"there-{i}", "n6", **same)]
    problem = make_problem(snapshot(nodes=[*full, large], pods=pods), Settings(objective="pack", max_moves=1)).problem
    tier = next(t for t, each in enumerate(problem.tiers) if each.counts(Open))
    before, asked = TransferProgram.in_use, []
    monkeypatch.setattr(
        TransferProgram, "in_use", lambda self, nodes: asked.append(nodes.tolist()) or before(self, nodes)
    )
    for here in (0, TransferParameters().largest_here):
        asked.clear()
        options = Options(time_limit=30.0)
        run = Run.begun(Evaluator(problem), options, Stop())
        turns_of(run, options, TransferParameters(largest_here=here), 1).take(tier)  # one solver, one solution
        assert (run.values[tier], run.bounds[tier]) == (6, 6)
        assert asked, "the first solution could be placed"
        assert len({tuple(nodes) for nodes in asked}) == len(asked) <= 5
        assert all(nodes in ([0], [1], [2], [4], [5]) for nodes in asked)
        assert not run.notes
