"""Solving in exact parts: the optimum of the whole, with a proof, and what time, stops and checkpoints come to."""

from __future__ import annotations

from stowplan.models.result import Status
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.parts.engine import NAME
from stowplan.optimizer.portfolio import Options, solve
from tests.optimizer.parts.test_partition import EVERY
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.random_clusters import Setup, clusters, setups

PARTS = Parameters(parts=EVERY)


@cases(
    80,
    at_least={"several parts": 6, "better than the start": 3},
    cluster=clusters(nodes=4, pods=6, pools=2),
    setup=setups(),
)
def test_the_optimum_of_the_whole_is_found_and_proven(cluster: Snapshot, setup: Setup) -> None:
    problem = setup.compile(cluster).problem.steered
    outcome = solve(problem, Options(time_limit=20, deterministic=True, parameters=PARTS))
    if NAME not in dict(outcome.stages):
        return
    count("several parts")
    assert outcome.status is Status.OPTIMAL
    assert outcome.values == best(problem)
    assert not outcome.notes
    count("better than the start", outcome.values < Evaluator(problem).evaluate(problem.start).values)
