"""Rounds of regions without a cluster: workers that answer at once, and what becomes of answers that are lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.problem import Capacity, Problem
from stowplan.models.settings import Settings
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import JobCounts, RayBackend
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.lns.lns import OperatorState
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.processes import WorkerDiedError
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.regions.engine import RegionEngine
from stowplan.optimizer.regions.parameters import RegionParameters
from stowplan.optimizer.run import Run
from stowplan.settings.problem import make_problem

QUICK = RegionParameters(least_nodes=5, least_seconds=0.5, rounds=3, share=0.9, poor_gain=0.0)


class Here:
    """A cluster of three workers that does each job as it comes; some are lost, and some fail."""

    alive = True

    def __init__(self, lost: tuple[int, ...] = (), failing: tuple[int, ...] = ()) -> None:
        self.jobs, self._lost, self._failing = list[tuple[Any, ...]](), lost, failing
        self.workers, self.counts, self.notes, self.cluster = 3, JobCounts(), list[str](), self

    def put(self, value: object) -> object:
        return value

    def submit(self, job: Any) -> None:
        number = len(self.jobs)
        self.jobs.append(job.args)
        if number in self._lost:
            job.future.set_exception(WorkerDiedError("lost"))
        elif number in self._failing:
            job.future.set_exception(MemoryError("no room"))
        else:
            *others, seconds = job.args
            job.future.set_result(job.function(Stop(), *others, seconds / 6))

    def tell_to_stop(self, group: str) -> None:
        pass

    end = tell_to_stop


def rounds(problem: Problem, here: Here, seconds: float = 4.0, **options: Any) -> tuple[Run, list[int]]:
    """Let the engine work; return the run, and the tiers that were bounded meanwhile."""
    chosen, evaluator, bounded = Options(seconds, **options), Evaluator(problem), list[int]()
    run = Run.begun(evaluator, chosen, Stop())
    engine = RegionEngine(
        run,
        chosen,
        QUICK,
        RearrangementParameters(),
        cast(RayBackend, here),
        solve,
        lambda: OperatorState(evaluator),
        lambda tier, share: bounded.append(tier),
    )
    engine.work()
    return run, bounded


@pytest.fixture(scope="module")
def balance() -> Problem:
    return make_problem(synthetic_snapshot(30, 300, 3), Settings(objective="balance")).problem


def test_rounds_improve_the_tier_and_bound_it_meanwhile(balance: Problem) -> None:
    here = Here()
    run, bounded = rounds(balance, here)
    before = Evaluator(balance).evaluate(balance.start).values
    assert run.values < before
    assert run.evaluator.evaluate(run.best).legal
    assert set(bounded) == {len(before) - 1}
    assert here.counts.done == len(here.jobs) >= 6
    assert not here.counts.dropped
    assert not run.notes


def test_a_first_round_that_lost_an_answer_is_made_again(balance: Problem) -> None:
    here = Here(lost=(1,), failing=(2,))
    run, _ = rounds(balance, here)
    assert (here.counts.lost, len(here.notes)) == (1, 1)
    assert "no room" in here.notes[0]
    assert run.notes == here.notes
    beginnings = [args[4] for args in here.jobs]
    assert beginnings[3].same_as(balance.start)
    assert not beginnings[6].same_as(balance.start)
    assert run.values < Evaluator(balance).evaluate(balance.start).values


def test_a_region_whose_worker_is_lost_is_handed_out_again(balance: Problem) -> None:
    here = Here(lost=(1,))
    run, _ = rounds(balance, here, 13.0)
    assert here.counts.lost == 1
    again, first = here.jobs[3], here.jobs[1]
    assert again[6] == first[6] == 1  # the number of the region
    assert again[4] is first[4]
    assert 2.0 < again[-1] < first[-1]
    assert not here.jobs[4][4].same_as(balance.start)  # all have answered, so the next round goes on
    assert run.evaluator.evaluate(run.best).legal


def test_the_highest_seed_is_one_like_all_others(balance: Problem) -> None:
    run, _ = rounds(balance, Here(), 1.5, seed=2**31 - 1)
    assert run.values < Evaluator(balance).evaluate(balance.start).values


@pytest.mark.parametrize("limit", [6, 25])
def test_limits_on_moves_hold_for_all_regions_together(limit: int) -> None:
    settings = Settings(objective="balance", max_moves=limit)
    problem = make_problem(synthetic_snapshot(30, 300, 3), settings).problem
    here = Here()
    run, _ = rounds(problem, here)
    assert here.counts.done >= 3
    assert 0 < run.evaluator.evaluate(run.best).moves <= limit
    assert not here.counts.dropped
    assert run.values < Evaluator(problem).evaluate(problem.start).values


def test_what_makes_all_nodes_one_is_left_to_others(balance: Problem) -> None:
    held = tuple(replace(r, held_on_source=True) if isinstance(r, Capacity) else r for r in balance.rules)
    for problem, seconds in ((replace(balance, rules=held), 4.0), (balance, 0.5)):
        here = Here()
        rounds(problem, here, seconds)
        assert not here.jobs
