"""Branch and bound: no legal placement is below what plugins miss in detail, and boxes end at the best one."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.problem import Detail, Placement, Problem
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.bounding import branches, lower_bounds
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.plugins_compat.release import K5, K20, K24, K36, Release
from stowplan.settings.problem import make_problem
from tests.support.brute_force import legal_values, placements
from tests.support.cases import cases, count
from tests.support.final_states import asked_today
from tests.support.random_clusters import Setup, clusters, setups

TRIED = 12
RELEASES = st.sampled_from([K5, K20, K24, K36])


@cases(
    60,
    at_least={"load": 60, "workload": 20, "met": 100, "exact": 20},
    cluster=clusters(broken=True),
    setup=setups("kube"),
    release=RELEASES,
)
def test_every_plugin_misses_what_its_details_say(cluster: Snapshot, setup: Setup, release: Release) -> None:
    problem = replace(setup, release=release).compile(cluster).problem
    final, evaluator = problem.tiers[-1].final, Evaluator(problem.steered)
    if final is None:
        return
    states = list(placements(problem))
    random.Random(0).shuffle(states)
    legal = [placement for placement in [problem.start, *states[: 4 * TRIED]] if evaluator.evaluate(placement).legal]
    details = final.details(problem.start, upper_bounds(problem).astype(np.int64), problem.optional)
    for placement in legal[:TRIED]:
        missed = final.parts(placement)
        for detail in details:
            said = lowest(detail, problem, placement)
            assert missed[detail.name] >= said - 1e-6 * max(1.0, abs(said)), detail.name
            met = said > 0 and missed[detail.name] <= said + 1e-6 * said
            count("load", detail.points is not None and said > 0)
            count("workload", bool(detail.workloads) and said > 0)
            count("met", met)
            count("exact", met and bool(detail.workloads))


def lowest(detail: Detail, problem: Problem, placement: Placement) -> float:
    """Add up what the details of a plugin say of a placement."""
    y = placement.table(*problem.shape)
    total = float((detail.table * y).sum() + (detail.missing * (problem.size - y.sum(axis=1))).sum())
    if detail.points is not None:
        total += detail.points.cost * float((y.sum(axis=0) * missed_points(detail, y)).sum())
    for workload in detail.workloads:
        (way,) = (j for j, pods in enumerate(workload.pods) if (pods == y[workload.classes]).all())
        total += float(workload.cost[way])
    return total


def missed_points(detail: Detail, y: np.ndarray) -> np.ndarray:
    """``[n]`` points that each pod on a node misses."""
    points = detail.points
    assert points is not None
    up = np.vectorize(lambda amount: max(0, math.ceil(amount - 1e-7)) if points.whole else amount, otypes=[float])
    pieces = [
        up(np.max([line.constant + (line.per_pod * y).sum(axis=0) for line in piece], axis=0))
        for piece in points.pieces
    ]
    found: np.ndarray = up(points.rest + (points.share * np.array(pieces)).sum(axis=0))
    return found


@cases(
    60,
    at_least={"above nothing": 30, "proven": 20, "better": 8, "limited": 15},
    cluster=clusters(),
    setup=setups("kube", "global"),
    limit=st.sampled_from([1, 2, 3, None, None, None]),
    release=RELEASES,
)
def test_boxes_end_at_the_best_placement(cluster: Snapshot, setup: Setup, limit: int | None, release: Release) -> None:
    problem = replace(setup, max_moves=limit, release=release).compile(cluster).problem
    tier = len(problem.tiers) - 1
    if problem.tiers[tier].final is None:
        return
    evaluator = Evaluator(problem)
    today = evaluator.evaluate(problem.start).values
    reached = [values[tier] for values in legal_values(problem) if values[:tier] <= today[:tier]]
    least = min(reached)
    asked = asked_today(problem)
    chosen = FinalStateParameters(branching_share=1.0, boxes=1_000)
    assert branches(asked, chosen)
    found = next(lower_bounds(asked, Deadline(2, deterministic=True), chosen))
    assert found.bound <= least
    if found.placement is not None:
        seen = evaluator.evaluate(found.placement)
        assert seen.legal
        assert found.bound <= seen.values[tier] < today[tier]
    ends = today[tier] if found.placement is None else evaluator.evaluate(found.placement).values[tier]
    count("above nothing", found.bound > 0)
    count("proven", found.bound == ends == least > 0)
    count("better", found.placement is not None)
    count("limited", limit is not None)


def test_boxes_that_are_not_searched_still_bound() -> None:
    """Each box more raises the bound or leaves it, and none is above the best."""
    chosen = FinalStateParameters(branching_share=1.0)
    problem = make_problem(synthetic_snapshot(4, 30, 1), Settings(objective="kube")).problem
    asked = asked_today(problem)
    bounds = []
    for boxes in (1, 10, 100, 1_000):
        some = replace(chosen, boxes=boxes)
        bounds.append(next(lower_bounds(asked, Deadline(1, deterministic=True), some)).bound)
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1] <= asked.value
