"""Ruin and recreate never breaks a rule, and never makes anything worse."""

from __future__ import annotations

from stowplan.optimizer.annealing.ruin import ruin_and_recreate

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.problem import Problem
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.cases import cases
from tests.support.random_clusters import Setup, clusters, setups


def uneven() -> Problem:
    return compile_problem(synthetic_snapshot(20, 150), default_profile(K36), PRESETS["balance"]).problem


@cases(8, cluster=clusters(nodes=4, pods=9), setup=setups())
def test_what_it_offers_is_legal_and_no_worse(cluster: Snapshot, setup: Setup) -> None:
    problem = setup.compile(cluster).problem
    evaluator = Evaluator(problem)
    found = evaluator.evaluate(ruin_and_recreate(evaluator, problem.start, Deadline(0.2, deterministic=True)))
    assert found.legal
    assert found.values <= evaluator.evaluate(problem.start).values


def test_it_improves_a_cluster_with_an_uneven_history() -> None:
    problem = uneven()
    evaluator = Evaluator(problem)
    found = evaluator.evaluate(ruin_and_recreate(evaluator, problem.start, Deadline(0.2, deterministic=True)))
    assert found.legal
    assert found.values < evaluator.evaluate(problem.start).values


def test_a_stop_signal_ends_it_at_once() -> None:
    problem = uneven()
    stop = Stop()
    stop.set()
    same = ruin_and_recreate(Evaluator(problem), problem.start, Deadline(60, stop=stop))
    assert same.same_as(problem.start)


def test_the_portfolio_lets_it_work() -> None:
    outcome = solve(uneven(), Options(0.1, deterministic=True))
    assert "ruin and recreate" in dict(outcome.stages)
