"""One problem under several limits on moves: answers keep their limit, bounds hold, and what one finds serves all."""

from __future__ import annotations

from itertools import pairwise

from stowplan.models.options import Options
from stowplan.models.problem import Problem
from stowplan.models.result import bound_holds
from stowplan.models.stop import Stop
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.move_limits import MoveLimits, limited
from stowplan.settings.problem import make_problem
from tests.plans.test_replay import owned
from tests.support.brute_force import legal_values
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, snapshot
from tests.support.random_clusters import Setup, random_cluster

LIMITS = (0, 1, 2, None)


def random_unlimited(choices: Choices) -> Problem:
    """Return a tiny problem, often with pending pods."""
    return Setup(choices.one(("balance", "pack", "spread"))).compile(random_cluster(choices, broken=None)).problem


@cases(4, at_least={"better": 1, "proven": 4}, problem=drawn(random_unlimited))
def test_every_limit_has_a_legal_answer_and_bounds_that_hold(problem: Problem) -> None:
    search = MoveLimits(problem, LIMITS, Options(time_limit=0.2, deterministic=True, workers=1))
    told: list[int | None] = []
    search.work(told.append)
    assert list(dict.fromkeys(told)) == list(LIMITS)
    outcomes = []
    for limit in LIMITS:
        outcome = search.outcome(limit)
        assert outcome is not None
        evaluation = Evaluator(limited(problem, limit)).evaluate(outcome.placement)
        assert evaluation.legal
        assert evaluation.values == outcome.values
        possible = legal_values(limited(problem, limit))
        for t, tier in enumerate(outcome.tiers):
            assert all(v[t] >= tier.bound for v in possible if bound_holds(v[:t], outcome.values[:t]))
        count("proven", outcome.values == min(possible) and all(t.value == t.bound for t in outcome.tiers))
        outcomes.append(outcome)
    assert all(a.values >= b.values for a, b in pairwise(outcomes))
    count("better", outcomes[0].values > outcomes[-1].values)


def tight() -> Problem:
    """Return a problem in which a pending pod finds room if one of two small pods moves."""
    pods = [
        owned("small-a", "n1", cpu="600m"),
        owned("small-b", "n1", cpu="600m"),
        owned("large-a", "n2", cpu="2400m"),
        owned("waiting-a", "", cpu="3000m"),
    ]
    nodes = [node("n1", cpu="3700m"), node("n2", cpu="3"), node("n3", cpu="1")]
    return make_problem(snapshot(nodes=nodes, pods=pods)).problem


def test_a_waiting_pod_takes_the_fewest_moves() -> None:
    problem = tight()
    search = MoveLimits(problem, LIMITS, Options(time_limit=0.4, deterministic=True))
    search.work()
    waiting = next(t for t, tier in enumerate(problem.tiers) if tier.name.startswith("pending"))
    values = [search.outcome(limit) for limit in LIMITS]
    assert [outcome.values[waiting] if outcome else None for outcome in values] == [1, 0, 0, 0]


def test_a_stop_leaves_the_limits_that_were_tried() -> None:
    stop = Stop()
    search = MoveLimits(tight(), LIMITS, Options(time_limit=5), stop=stop)
    search.work(lambda limit: stop.set() if limit == 1 else None)
    assert [search.outcome(limit) is not None for limit in LIMITS] == [True, True, False, False]
