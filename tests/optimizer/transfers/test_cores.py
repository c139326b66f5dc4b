"""Cores of the program of transfers: part of the variables, chosen by what the relaxation says of them."""

from __future__ import annotations

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
from stowplan.optimizer.bounds.node_programs import Programs, node_programs
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.task import SolverLimits
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.node_changes.generation import patterns_of
from stowplan.optimizer.node_changes.sub_problem import freed, rearranged
from stowplan.optimizer.run import Run
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.transfers.cores import CoreSearch, search_cores
from stowplan.optimizer.transfers.parameters import TransferParameters
from stowplan.optimizer.transfers.program import TransferProgram
from stowplan.optimizer.transfers.selection import cheapest, on_all, promising, ranks
from stowplan.settings.problem import make_problem
from tests.optimizer.transfers.test_transfers import random_counting, told, turns_of
from tests.support.brute_force import legal_values
from tests.support.cases import cases, count
from tests.support.choices import drawn

PENDING = 2
"""A tier that counts unscheduled pods, after another one."""


def programs_of(problem: Problem, tier: int, reached: tuple[int, ...]) -> Programs | None:
    """Return the programs of a tier, if they are linear."""
    programs = node_programs(Evaluator(problem), upper_bounds(problem), tier, reached, 1 << 20, 1 << 20)
    return programs if programs is not None and TransferProgram.suits(programs) else None


def searched(program: TransferProgram, begin: Floats, come: Floats, leave: Floats) -> list[int]:
    """Return what the solutions of a search of cores are worth."""
    order, always = program.order(come, leave)
    assert sorted(order.tolist()) == list(range(program.variables))
    worths: list[int] = []
    search = CoreSearch(program.whole, order, always, begin, 1, 2.0, time.monotonic() + 60.0)
    search_cores(search, lambda: False, lambda solution: worths.append(program.worth(solution)))
    return worths


@cases(60, at_least={"better": 10, "with fewer nodes": 10, "as good as all": 20}, problem=drawn(random_counting))
def test_cores_have_solutions_of_the_whole(problem: Problem) -> None:
    start = Evaluator(problem).evaluate(problem.start).values
    legal = legal_values(problem)
    for tier in range(len(start)):
        programs = programs_of(problem, tier, start[:tier])
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
            program = TransferProgram(programs, cheapest(come, leave, 10_000))
            worths = searched(program, program.columns(before), come, leave)
            assert worths == sorted(worths, reverse=True)
            assert all(optimum <= worth <= start[tier] for worth in worths)
            count("better", bool(worths))
            count("with fewer nodes", not some.all())
            if some.all():
                assert program.variables == whole.variables
                count("as good as all", min([*worths, start[tier]]) == optimum)


def test_the_cheapest_variables_are_about_as_many_as_asked() -> None:
    random = np.random.default_rng(1)
    come, leave = random.random((20, 30)), np.where(random.random((20, 30)) < 0.2, random.random((20, 30)), np.inf)
    finite = int(np.isfinite(come).sum() + np.isfinite(leave).sum())
    for number in (1, 50, finite, 10_000):
        a, b = cheapest(come, leave, number)
        assert not (b & np.isinf(leave)).any()
        assert min(number, finite) <= a.sum() + b.sum() <= number + 1
        outside = np.concatenate([come[~a], leave[~b]])
        assert max(come[a].max(initial=-1.0), leave[b].max(initial=-1.0)) <= outside.min(initial=np.inf)


def test_pods_are_let_in_where_the_whole_is_too_large() -> None:
    snapshot = synthetic_snapshot(60, 600, 4, fill=1.0)
    problem = make_problem(snapshot, Settings(objective="balance", max_moves=5)).problem
    few = TransferParameters(cored=100, relaxed_per_second=1e4, largest=2_000)
    values = []
    for transfers in (TransferParameters(cored=100), few):
        run = Run.begun(Evaluator(problem), Options(time_limit=60.0), Stop())
        before = run.values
        turns_of(run, Options(), transfers).take(PENDING)
        assert run.values < before
        assert run.evaluator.evaluate(run.best).legal
        assert run.bounds[PENDING] <= run.values[PENDING]
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
        Index(evaluator), 2, problem.start, free, limits, CpSatParameters(), lambda: False, asked, lexicographic=False
    )
    assert placement is None
