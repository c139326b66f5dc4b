"""Bounds of the exact score: no legal placement of tiny clusters is below them, in all and plugin by plugin."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.problem import Part, Placement, Problem
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.bound import FinalStateBound, whole
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.split_bound import split_bound, splits
from stowplan.plugins_compat.release import K5, K20, K24, Release
from stowplan.settings.problem import make_problem
from tests.plugins_compat.final_state.test_affinity_floor import random_workload
from tests.plugins_compat.final_state.test_scorer import random_attraction
from tests.support.brute_force import legal_values, placements
from tests.support.cases import cases, count
from tests.support.choices import drawn
from tests.support.random_clusters import Setup, clusters, setups

WORK = Deadline(2, deterministic=True)
TRIED = 12


@cases(25, at_least={"above nothing": 8, "met": 1}, cluster=clusters(), setup=setups("kube", "global"))
def test_no_legal_placement_is_below_the_bound(cluster: Snapshot, setup: Setup) -> None:
    problem = setup.compile(cluster).problem
    tier = problem.tiers[-1]
    assert tier.final is not None
    start = Evaluator(problem).evaluate(problem.start).values[-1]
    upper = upper_bounds(problem)
    parts = tier.final.relaxation(problem.start)
    dual = FinalStateBound(problem, tier, parts, upper, problem.start, start, FinalStateParameters()).solve(WORK)
    bound = whole(dual, start, 1)
    least = min(values[-1] for values in legal_values(problem))
    assert bound <= least
    count("above nothing", bound > 0)
    count("met", bound > 0.98 * least > 0)


@cases(
    25,
    at_least={"above nothing": 8, "near": 3},
    cluster=clusters(),
    setup=setups("global"),
    limit=st.sampled_from([1, 2, 3, None]),
)
def test_no_legal_placement_is_below_the_bound_of_loads_and_score_each_by_itself(
    cluster: Snapshot, setup: Setup, limit: int | None
) -> None:
    problem = replace(setup, max_moves=limit).compile(cluster).problem
    tier = len(problem.tiers) - 1
    assert splits(problem, tier)
    final = problem.tiers[tier].final
    assert final is not None
    legal = list(legal_values(problem))
    least = min(legal)
    reached = [values for values in legal if values[:tier] == least[:tier]]
    today = Evaluator(problem).evaluate(problem.start)
    if today.values[:tier] != least[:tier]:
        return
    bound = split_bound(
        problem,
        upper_bounds(problem),
        tier,
        final.relaxation(problem.start),
        least[:tier],
        problem.start,
        Deadline(4, deterministic=True),
        FinalStateParameters(),
        kernels=True,
    )
    assert bound <= min(values[tier] for values in reached)
    count("above nothing", bound > 0)
    count("near", bound > 0.7 * least[tier] > 0)


@cases(
    40,
    at_least={"at rest": 3},
    cluster=st.one_of(drawn(random_attraction), drawn(random_workload), drawn(random_workload), clusters()),
    setup=setups("kube"),
    limit=st.sampled_from([1, 1, 2]),
)
def test_few_moves_leave_most_classes_at_rest(cluster: Snapshot, setup: Setup, limit: int) -> None:
    problem = replace(setup, max_moves=limit).compile(cluster).problem
    tier, evaluator = problem.tiers[-1], Evaluator(problem)
    assert tier.final is not None
    parts = tier.final.relaxation(problem.start, limit)
    seen = [(placement, evaluator.evaluate(placement)) for placement in placements(problem)]
    legal = [(placement, found.values[-1]) for placement, found in seen if found.legal]
    random.Random(0).shuffle(legal)
    for placement, _ in [(problem.start, 0), *legal[:TRIED]]:
        missed = tier.final.parts(placement)
        for part in parts:
            said = lowest(part, problem, placement)
            assert missed[part.name] >= said - 1e-6 * max(1.0, said), part.name
    count("at rest", any(part.resting is not None and bool(part.resting.any()) for part in parts))
    if legal:
        value, upper = evaluator.evaluate(problem.start).values[-1], upper_bounds(problem)
        bounds = [
            FinalStateBound(problem, tier, known, upper, problem.start, value, FinalStateParameters()).solve(WORK)
            for known in (parts, tier.final.relaxation(problem.start))
        ]
        assert whole(bounds[0], value, 1) <= min(found for _, found in legal)
        assert bounds[0] >= 0.98 * bounds[1]


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("seed", range(2))
def test_few_moves_in_a_cluster_of_workloads(seed: int, limit: int) -> None:
    problem = make_problem(
        synthetic_snapshot(20, 130, seed, fill=0.5), Settings(objective="kube", max_moves=limit)
    ).problem
    tier, evaluator, rng = problem.tiers[-1], Evaluator(problem), random.Random(seed)
    assert tier.final is not None
    parts = tier.final.relaxation(problem.start, limit)
    upper, tried = upper_bounds(problem), 0
    for _ in range(80):
        table = problem.start.table(*problem.shape)
        for _ in range(limit):
            c, n = rng.choice(np.argwhere(table).tolist())
            table[c, n] -= 1
            table[c, rng.choice(np.flatnonzero(upper[c]).tolist())] += 1
        placement = Placement.from_table(table)
        if evaluator.evaluate(placement).legal:
            tried += 1
            missed = tier.final.parts(placement)
            for part in parts:
                assert missed[part.name] >= lowest(part, problem, placement) - 1e-3, part.name
    assert tried > 20
    value = evaluator.evaluate(problem.start).values[-1]
    with_rest, without = (
        FinalStateBound(problem, tier, known, upper, problem.start, value, FinalStateParameters()).solve(WORK)
        for known in (parts, tier.final.relaxation(problem.start))
    )
    assert without * (1.02 if limit == 1 else 1.0) < with_rest <= value


@cases(15, at_least={"met": 7}, cluster=clusters(), setup=setups("kube"))
def test_every_plugin_misses_what_its_relaxation_says(cluster: Snapshot, setup: Setup) -> None:
    problem = setup.compile(cluster).problem
    final, evaluator = problem.tiers[-1].final, Evaluator(problem.steered)
    assert final is not None
    states = list(placements(problem))
    random.Random(0).shuffle(states)
    legal = [placement for placement in [problem.start, *states[: 4 * TRIED]] if evaluator.evaluate(placement).legal]
    parts = final.relaxation(problem.start)
    for placement in legal[:TRIED]:
        missed = final.parts(placement)
        for part in parts:
            said = lowest(part, problem, placement)
            assert missed[part.name] >= said - 1e-6 * max(1.0, said), part.name
            count("met", said > 0 and missed[part.name] <= said + 1e-6 * said)


@cases(
    25,
    at_least={"load": 10, "met": 3, "above nothing": 5},
    cluster=clusters(),
    setup=setups("kube"),
    release=st.sampled_from([K5, K20]),
)
def test_plugins_of_early_releases_miss_what_their_relaxations_say(
    cluster: Snapshot, setup: Setup, release: Release
) -> None:
    problem = replace(setup, release=release).compile(cluster).problem
    tier, evaluator = problem.tiers[-1], Evaluator(problem.steered)
    if tier.final is None:
        return
    states = list(placements(problem))
    random.Random(0).shuffle(states)
    legal = [placement for placement in [problem.start, *states[: 4 * TRIED]] if evaluator.evaluate(placement).legal]
    parts = tier.final.relaxation(problem.start)
    for placement in legal[:TRIED]:
        missed = tier.final.parts(placement)
        for part in parts:
            said = lowest(part, problem, placement)
            assert missed[part.name] >= said - 1e-6 * max(1.0, said), part.name
            count("load", said > 0 and part.name == "NodeResourcesLeastAllocated")
            count("met", said > 0 and missed[part.name] <= said + 1e-6 * said)
    start = Evaluator(problem).evaluate(problem.start).values[-1]
    upper = upper_bounds(problem)
    dual = FinalStateBound(problem, tier, parts, upper, problem.start, start, FinalStateParameters()).solve(WORK)
    bound = whole(dual, start, 1)
    assert bound <= min(values[-1] for values in legal_values(problem))
    count("above nothing", bound > 0)


@cases(
    20,
    at_least={"turned": 8, "sharper": 3},
    cluster=st.one_of(drawn(random_attraction), drawn(random_workload), clusters()),
    setup=setups("kube"),
    release=st.sampled_from([K20, K24]),
)
def test_nodes_are_balanced_either_way(cluster: Snapshot, setup: Setup, release: Release) -> None:
    """Shares that are apart cost something whichever is higher, and the bound says so where it was the other one."""
    problem = replace(setup, release=release).compile(cluster).problem
    tier, evaluator = problem.tiers[-1], Evaluator(problem)
    assert tier.final is not None
    parts = tier.final.relaxation(problem.start)
    legal = [
        (placement, found.values[-1])
        for placement in placements(problem)
        if (found := evaluator.evaluate(placement)).legal
    ]
    turned = any(part.turned is not None and bool(part.turned[0].any()) for part in parts)
    if not legal or not turned:
        return
    random.Random(0).shuffle(legal)
    for placement, _ in legal[:TRIED]:
        missed = tier.final.parts(placement)
        for part in parts:
            said = lowest(part, problem, placement)
            assert missed[part.name] >= said - 1e-6 * max(1.0, said), part.name
    value, upper = evaluator.evaluate(problem.start).values[-1], upper_bounds(problem)
    bounds = [
        FinalStateBound(problem, tier, known, upper, problem.start, value, FinalStateParameters()).solve(
            Deadline(5, deterministic=True)
        )
        for known in (parts, [replace(part, turned=None) for part in parts])
    ]
    assert whole(bounds[0], value, 1) <= min(found for _, found in legal)
    assert bounds[0] >= 0.98 * bounds[1]
    count("turned")
    count("sharper", bounds[0] > 1.001 * bounds[1])


def lowest(part: Part, problem: Problem, placement: Placement) -> float:
    """Evaluate the relaxation of a plugin."""
    y = placement.table(*problem.shape)
    total = float((part.table * y).sum() + (part.missing * (problem.size - y.sum(axis=1))).sum())
    if part.crowding is not None and part.held is not None:
        ways = [(part.crowding, part.held), *([] if part.turned is None else [part.turned])]
        total += float(
            np.max([y.sum(axis=0) * (held + (beside * y).sum(axis=0)) for beside, held in ways], axis=0).sum()
        )
    if part.resting is not None:
        total += float(part.resting[(y >= problem.start.table(*problem.shape)).all(axis=1)].sum())
    return total
