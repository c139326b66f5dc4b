"""The program of transfers: no placement is below its bounds, and few moves are found and proven with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.arrays import Floats
from stowplan.models.options import Options
from stowplan.models.problem import Capacity, Problem
from stowplan.models.result import Status
from stowplan.models.settings import Settings
from stowplan.models.stop import Stop
from stowplan.optimizer.bounds.node_programs import node_programs
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.run import Run
from stowplan.optimizer.transfers.parameters import TransferParameters
from stowplan.optimizer.transfers.program import FINEST, TransferProgram
from stowplan.optimizer.transfers.turns import NAME, TransferTurns
from stowplan.settings.problem import make_problem
from tests.optimizer.node_changes.test_node_changes import limited
from tests.support.brute_force import best, legal_values
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import random_problem
from tests.support.random_clusters import Setup, random_cluster


def random_counting(choices: Choices) -> Problem:
    """Return a tiny problem with tiers that count, with a limit on moves or without one."""
    limit = choices.one((None, 0, 1, 2, 3))
    if choices.chance(0.4):
        return limited(random_problem(choices, broken=None), limit)
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


def programs_of(problem: Problem, tier: int, reached: tuple[int, ...]) -> TransferProgram | None:
    """Return the program of a tier, if it has one."""
    programs = node_programs(Evaluator(problem), upper_bounds(problem), tier, reached, 1 << 20, 1 << 20)
    return TransferProgram(programs) if programs is not None and TransferProgram.suits(programs) else None


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
            bounds: list[int] = [0]
            solutions: list[Floats] = []
            program.solver(20.0, below).run(lambda: False, bounds.append, solutions.append)
            assert max(bounds) <= least
            assert below is None or all(program.worth(found) < below for found in solutions)
            count("with a row", below is not None and max(bounds) == least)
        count("above nothing", max(bounds) > 0)
        count("met", max(bounds) == least)


@cases(40, at_least={"better": 5, "proven": 5}, problem=drawn(random_counting))
def test_what_is_taken_is_legal_and_what_is_proven_holds(problem: Problem) -> None:
    run = Run.begun(Evaluator(problem), Options(time_limit=20.0), Stop())
    turns = TransferTurns(run, Options(), TransferParameters(), CpSatParameters(), processors=2)
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


def test_a_stop_ends_it_and_what_is_deterministic_is_left_alone() -> None:
    problem = make_problem(synthetic_snapshot(100, 1000, 7), Settings(objective="pack", max_moves=200)).problem
    stop = Stop()
    stop.set()
    for options in (Options(time_limit=20.0, deterministic=True), Options(time_limit=20.0)):
        run = Run.begun(Evaluator(problem), options, stop)
        TransferTurns(run, options, TransferParameters(), CpSatParameters(), processors=2).take_first(len(run.values))
        assert run.best is problem.start
    assert np.all(np.array(run.bounds) == 0)
