"""Cores of the program of transfers: part of the variables, chosen by what the relaxation says of them."""

from __future__ import annotations

import threading
import time

import numpy as np

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.arrays import Floats
from stowplan.models.options import Options
from stowplan.models.problem import Problem
from stowplan.models.settings import Settings
from stowplan.models.stop import Stop
from stowplan.optimizer.bounds.interior_point import RelaxedPrograms
from stowplan.optimizer.bounds.lagrangian import LagrangianDual
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.task import SolverLimits
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.node_changes.generation import patterns_of
from stowplan.optimizer.node_changes.sub_problem import freed, rearranged
from stowplan.optimizer.processes import GRACE
from stowplan.optimizer.run import Run
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.transfers.cores import CoreSearch, search_cores
from stowplan.optimizer.transfers.parameters import TransferParameters
from stowplan.optimizer.transfers.program import TransferProgram
from stowplan.optimizer.transfers.selection import cheapest, on_all, promising, ranks
from stowplan.settings.problem import make_problem
from tests.optimizer.transfers.test_transfers import linear_programs_of, random_counting, told, turns_of
from tests.support.brute_force import legal_values
from tests.support.cases import cases, count
from tests.support.choices import drawn

PENDING = 2
"""A tier that counts unscheduled pods, after another one."""


def searched(program: TransferProgram, begin: Floats, come: Floats, leave: Floats) -> list[int]:
    """Return what the solutions of a search of cores are worth."""
    order, always = program.order(come, leave)
    assert sorted(order.tolist()) == list(range(program.variables))
    worths: list[int] = []
    search = CoreSearch(program.whole, order, always, begin, 1, 2.0, 0.8, time.monotonic() + 60.0)
    search_cores(search, lambda: False, lambda solution: worths.append(program.worth(solution)))
    return worths


@cases(60, at_least={"better": 10, "with fewer nodes": 10, "as good as all": 20}, problem=drawn(random_counting))
def test_cores_have_solutions_of_the_whole(problem: Problem) -> None:
    start = Evaluator(problem).evaluate(problem.start).values
    legal = legal_values(problem)
    for tier in range(len(start)):
        programs = linear_programs_of(problem, tier, start[:tier])
        if programs is None:
            continue
        whole = TransferProgram(programs)
        before = patterns_of(programs, len(problem.nodes), problem.start)
        assert np.array_equal(whole.pods(whole.columns(before)), before)
        least = min(v[tier] for v in legal if all(a <= b for a, b in zip(v[:tier], start[:tier], strict=True)))
        optimum = max(told(whole, None)[0])
        for number in (1, len(programs.times)):
            some = promising(programs, number)
            assert some.sum() == min(number, len(programs.times))
            part = programs.of_some(some)
            dual = RelaxedPrograms(part, BoundParameters()).solve(1e-3, Deadline(10.0))
            lagrangian = LagrangianDual(part, dual)
            lagrangian.search(1000, Deadline(10.0))
            assert not some.all() or lagrangian.bound <= least
            come, leave = (on_all(some, rank) for rank in ranks(part, dual, lagrangian.solutions))
            program = TransferProgram(programs, cheapest(programs, come, leave, 10_000))
            worths = searched(program, program.columns(before), come, leave)
            assert worths == sorted(worths, reverse=True)
            assert all(optimum <= worth <= start[tier] for worth in worths)
            count("better", bool(worths))
            count("with fewer nodes", not some.all())
            if some.all():
                assert program.complete
                assert program.variables == whole.variables
                count("as good as all", min([*worths, start[tier]]) == optimum)


def test_the_cheapest_variables_are_as_many_as_asked() -> None:
    problem = make_problem(synthetic_snapshot(8, 60, 1), Settings(objective="pack", max_moves=2)).problem
    programs = linear_programs_of(problem, 1, (0,))
    assert programs is not None
    random = np.random.default_rng(1)
    come, leave = (random.integers(0, 3, programs.tables.upper.shape) * 1.0 for _ in range(2))
    come[programs.tables.upper <= programs.tables.start] = np.inf
    leave[programs.tables.start == 0] = np.inf
    for number in (0, 1, 50, 10_000):
        a, b = cheapest(programs, come, leave, number)
        program = TransferProgram(programs, (a, b))
        counted = int(programs.times @ (a.sum(axis=1) + b.sum(axis=1)))
        assert counted <= number
        assert program.complete == (number == 10_000)
        outside = np.concatenate([come[~a], leave[~b]])
        assert max(come[a].max(initial=-1.0), leave[b].max(initial=-1.0)) <= outside.min(initial=np.inf)
        if not program.complete:
            assert counted > number - int(programs.times.max())


@cases(
    12,
    at_least={"better": 3, "bounded": 3, "a part": 3},
    problem=drawn(random_counting),
    rate=drawn(lambda choices: choices.one((3e7, 1.0))),
)
def test_what_cores_find_is_legal_and_what_they_bound_holds(problem: Problem, rate: float) -> None:
    few = TransferParameters(cored=-1, least_nodes=1, relaxed_per_second=rate)
    run = Run.begun(Evaluator(problem), Options(time_limit=20.0), Stop())
    turns, before, possible = turns_of(run, Options(), few), run.values, legal_values(problem)
    for tier in range(len(before)):
        turns.take(tier)
    assert not run.notes
    assert run.values >= min(possible)
    for tier, bound in enumerate(run.bounds):
        others = [v[tier] for v in possible if all(a <= b for a, b in zip(v[:tier], run.values[:tier], strict=True))]
        assert bound <= min(others)
        count("bounded", bound > 0)
    count("better", run.values < before)
    count("a part", rate < 2)


def test_a_stop_ends_a_search_of_cores() -> None:
    snapshot = synthetic_snapshot(150, 1500, 4, fill=1.0)
    problem = make_problem(snapshot, Settings(objective="balance", max_moves=20)).problem
    for seconds in (0.0, 0.3, 2.5):
        stop = Stop()
        run = Run.begun(Evaluator(problem), Options(time_limit=60.0), stop)
        told_at: list[float] = []
        threading.Timer(seconds, lambda told=told_at, one=stop: (told.append(time.monotonic()), one.set())).start()
        turns_of(run, Options(time_limit=60.0), TransferParameters(cored=100)).take(PENDING)
        assert time.monotonic() < told_at[0] + GRACE + 2.0


def test_pods_are_let_in_where_the_whole_is_too_large() -> None:
    snapshot = synthetic_snapshot(60, 600, 4, fill=1.0)
    problem = make_problem(snapshot, Settings(objective="balance", max_moves=5)).problem
    few = TransferParameters(cored=100, least_nodes=1, relaxed_per_second=1e4, largest=2_000)
    values = []
    for transfers in (TransferParameters(cored=100), few):
        run = Run.begun(Evaluator(problem), Options(time_limit=60.0), Stop())
        before = run.values
        turns_of(run, Options(), transfers).take(PENDING)
        assert run.values < before
        assert run.evaluator.evaluate(run.best).legal
        assert not run.notes
        values.append(run.values[PENDING])
    assert values[0] <= values[1]


def test_sub_problems_may_have_no_solution_as_good_as_what_is_asked() -> None:
    problem = make_problem(synthetic_snapshot(6, 60, 2, fill=1.3), Settings(objective="balance", max_moves=0)).problem
    evaluator = Evaluator(problem)
    assert evaluator.evaluate(problem.start).values[PENDING] > 0
    kind = np.arange(len(problem.classes))
    free = freed(problem, problem.start, [0], [], kind, np.zeros(len(kind), dtype=np.bool_))
    assert not len(free.waiting)
    limits, asked = SolverLimits(10.0), (0, 0)
    placement, _ = rearranged(
        Index(evaluator), 2, problem.start, free, limits, CpSatParameters(), lambda: False, asked, below=2**40
    )
    assert placement is None


def test_sub_problems_may_have_fewer_moves_than_the_problem() -> None:
    problem = make_problem(synthetic_snapshot(10, 100, 1, fill=1.0), Settings(objective="balance", max_moves=9)).problem
    tier = 1  # counts pods that wait
    evaluator, nodes = Evaluator(problem), len(problem.nodes)
    kinds = np.arange(len(problem.classes))
    free = freed(problem, problem.start, range(nodes), kinds.tolist(), kinds)
    given = evaluator.evaluate(problem.start).values
    waiting = []
    for most in (0, 1, 3, 9):
        found, _ = rearranged(
            Index(evaluator),
            tier,
            problem.start,
            free,
            SolverLimits(10.0, linear=True),
            CpSatParameters(),
            lambda: False,
            given[:tier],
            below=given[tier] + 1,
            most_moves=most,
        )
        assert found is not None
        assert problem.start.moved(found, nodes) <= most
        waiting.append(evaluator.evaluate(found).values[tier])
    assert waiting == sorted(waiting, reverse=True)
    assert waiting[0] > waiting[-1]
