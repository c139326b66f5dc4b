"""The compiled search on the exact score: what it finds is legal, is worth what it says, and keeps limits."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.problem import GroupMoveBudget, Open, Origin, Placement, Problem
from stowplan.models.settings import Settings
from stowplan.models.stop import Stop
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.search import FinalStateSearch
from stowplan.optimizer.final_state.walking import FinalStateWalk, moved
from stowplan.settings.problem import make_problem
from tests.support.clusters import node, pod, snapshot

CHOSEN = FinalStateParameters(work=4_000_000, pause=0.0)
UNITS = Deadline(3.0, deterministic=True)


def asked(seed: int, objective: str, moves: int | None, fill: float = 0.7) -> tuple[Problem, int]:
    settings = Settings(objective=objective, max_moves=moves)
    problem = make_problem(synthetic_snapshot(16, 150, seed, fill=fill), settings).problem
    return problem, next(t for t, tier in enumerate(problem.tiers) if tier.final is not None)


def walked(problem: Problem, tier: int, deadline: Deadline = UNITS, seed: int = 0) -> tuple[FinalStateWalk, Placement]:
    final = problem.tiers[tier].final
    assert final is not None
    tables = final.tables()
    assert tables is not None
    found = [problem.start]
    walk = FinalStateWalk(problem, tier, tables, problem.start, found.append, CHOSEN, seed)
    walk.run(deadline)
    return walk, found[-1]


@pytest.mark.parametrize("objective", ["kube", "global"])
@pytest.mark.parametrize("moves", [3, 30, None])
@pytest.mark.parametrize("seed", range(2))
def test_answers_are_legal_and_better_and_within_the_limit(seed: int, moves: int | None, objective: str) -> None:
    problem, tier = asked(seed, objective, moves, fill=0.6 + 0.3 * seed)
    evaluator, final = Evaluator(problem), problem.tiers[tier].final
    today = evaluator.evaluate(problem.start)
    walk, placement = walked(problem, tier)
    reached = evaluator.evaluate(placement)
    assert reached.legal
    assert reached.values[:tier] <= today.values[:tier]
    assert reached.values < today.values
    assert moves is None or reached.moves <= moves
    assert final is not None
    tables = final.tables()
    assert tables is not None
    assert reached.values == (*walk.best_value[:-1], walk.best_value[-1] + tables.every)


@pytest.mark.parametrize("moves", [4, None])
def test_it_is_ahead_of_the_search_that_asks_plugins(moves: int | None) -> None:
    problem, tier = asked(5, "kube", moves)
    evaluator = Evaluator(problem)
    _, placement = walked(problem, tier, Deadline(10.0, deterministic=True))
    found = [problem.start]
    search = FinalStateSearch(
        Evaluator(problem.steered), problem, tier, problem.start, found.append, replace(CHOSEN, trials=30)
    )
    search.run(Deadline(10.0, deterministic=True))
    assert evaluator.evaluate(placement).values[tier] < evaluator.evaluate(found[-1]).values[tier]


def test_equal_seeds_give_equal_answers() -> None:
    problem, tier = asked(2, "kube", None)
    first, second, other = (walked(problem, tier, seed=seed)[1] for seed in (1, 1, 2))
    assert first.same_as(second)
    assert not first.same_as(other)


def test_pods_of_groups_with_a_budget_stay() -> None:
    problem, tier = asked(1, "kube", None)
    group = np.arange(0, len(problem.classes), 2)
    limited = replace(problem, rules=(*problem.rules, GroupMoveBudget(Origin("test"), group, 1)))
    _, placement = walked(limited, tier)
    assert placement.only(group).same_as(limited.start.only(group))
    assert not placement.same_as(limited.start)
    assert Evaluator(limited).evaluate(placement).legal


def test_those_that_may_go_home_have_moved() -> None:
    problem, tier = asked(3, "kube", 8)
    walk, placement = walked(problem, tier)
    state = walk.state
    pods = moved(state)
    assert len(pods)
    now = Placement.of((int(state.pod[p, at.P_CLASS]), int(state.pod[p, at.P_NODE]), 1) for p in pods)
    arrived = placement.beyond(problem.start, len(problem.nodes))
    assert len(arrived.cls)
    assert set(zip(now.cls.tolist(), now.node.tolist(), strict=True)).isdisjoint(
        {(c, n) for c, n, _ in problem.start.entries() if not _more(problem, state.pod, c, n)}
    )


def _more(problem: Problem, pods: np.ndarray, c: int, n: int) -> bool:
    """Whether more pods of a class are on a node than at the start."""
    there = int(((pods[:, at.P_CLASS] == c) & (pods[:, at.P_NODE] == n)).sum())
    return there > sum(k for cls, node, k in problem.start.entries() if (cls, node) == (c, n))


def test_steps_that_improve_an_earlier_tier_are_made_however_bad_they_are_for_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Although a margin of nothing gives up at once what seems bad for the last tier."""
    pods = [pod(name, f"n{i}", cpu="1", memory="1Gi", owner=f"ReplicaSet/{name}") for i, name in enumerate("abc")]
    cluster = snapshot(nodes=[node(f"n{i}", cpu="4", memory="64Gi") for i in range(3)], pods=pods)
    kube, pack = (make_problem(cluster, Settings(objective=name)).problem for name in ("kube", "pack"))
    counts_nodes = next(tier for tier in pack.tiers if any(isinstance(weighted.term, Open) for weighted in tier.terms))
    problem = replace(kube, tiers=(kube.tiers[0], counts_nodes, kube.tiers[-1]))
    monkeypatch.setattr(FinalStateWalk, "_margin", lambda walk: 0)
    _, placement = walked(problem, 2)
    values = Evaluator(problem).evaluate(placement).values
    assert values[1] < Evaluator(problem).evaluate(problem.start).values[1]
    assert len(np.unique(placement.node)) == 1


def test_no_time_is_no_search() -> None:
    problem, tier = asked(4, "kube", None)
    _, placement = walked(problem, tier, Deadline(1e-6, deterministic=True))
    assert Evaluator(problem).evaluate(placement).legal


def test_a_stop_ends_it_with_its_answer() -> None:
    problem, tier = asked(4, "kube", None)
    stop, begun = Stop(), time.monotonic()
    stop.set()
    _, placement = walked(problem, tier, Deadline(60.0, stop=stop))
    assert time.monotonic() - begun < 30
    assert Evaluator(problem).evaluate(placement).legal
