"""What the variance is made of: the square itself where loads are few, chords within the stated error elsewhere."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.problem import NodeCurve, Placement
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.compiler.variance import ERROR, LEAST_ERROR, SCALE
from stowplan.plugins_compat.curves import convex, exact
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.clusters import node, pod, snapshot


def random_nodes(rng: random.Random, number: int) -> Snapshot:
    nodes = [
        node(f"n{i}", cpu=f"{rng.choice((1930, 2000, 3920, 4000))}m", memory=f"{rng.choice((4000, 8111, 16384))}Mi")
        for i in range(3)
    ]
    pods = [
        pod(
            f"p{i}",
            f"n{rng.randrange(3)}",
            cpu=f"{rng.choice((25, 110, 500, 1000))}m",
            memory=f"{rng.choice((100, 777, 2048))}Mi",
        )
        for i in range(number)
    ]
    return snapshot(nodes=nodes, pods=pods)


def by_hand(cluster: Snapshot, nodes: list[int]) -> float:
    """Return the variance of CPU and memory with pod ``i`` on node ``nodes[i]``."""
    total = 0.0
    for resource in ("cpu", "memory"):
        offered = np.array([n.allocatable[resource] for n in cluster.nodes], dtype=np.float64)
        used = np.zeros(len(offered))
        for at, one in zip(nodes, cluster.pods, strict=True):
            used[at] += one.spec.containers[0].requests[resource]
        mean = used.sum() / offered.sum()
        total += float((offered / offered.mean() * (100 * used / offered - 100 * mean) ** 2).sum())
    return total


@pytest.mark.parametrize("seed", range(12))
def test_every_placement_of_few_pods_is_worth_its_square(seed: int) -> None:
    rng = random.Random(seed)
    cluster = random_nodes(rng, 4)
    compiled = compile_problem(cluster, default_profile(K36), PRESETS["balance"])
    evaluator, tier = Evaluator(compiled.problem), compiled.problem.tiers[-1]
    for nodes in product(range(3), repeat=4):
        counts: dict[tuple[int, int], int] = {}
        for c, n in zip(compiled.class_of.tolist(), nodes, strict=True):
            counts[c, n] = counts.get((c, n), 0) + 1
        value = evaluator.evaluate(Placement.of((c, n, k) for (c, n), k in counts.items()))
        expected = by_hand(cluster, list(nodes)) + 10 * value.moves
        assert tier.shown(value.values[-1]) == pytest.approx(expected, abs=len(cluster.nodes) * 4 / SCALE)


@pytest.mark.parametrize("seed", range(6))
def test_many_pods_are_worth_their_square_within_the_stated_error(seed: int) -> None:
    rng = random.Random(seed)
    cluster = random_nodes(rng, 60)
    compiled = compile_problem(cluster, default_profile(K36), PRESETS["balance"])
    problem = compiled.problem
    curves = [w.term for w in problem.tiers[-1].terms if isinstance(w.term, NodeCurve)]
    assert all(term.curves.convex for term in curves)
    assert max(term.curves.start.shape[1] for term in curves) < 700
    value = problem.tiers[-1].shown(Evaluator(problem).evaluate(problem.start).values[-1])
    expected = by_hand(cluster, [cluster.node_index[one.node_name] for one in cluster.pods])
    assert expected - 0.001 <= value <= expected * (1 + 1.1 * ERROR) + 6 * LEAST_ERROR


@pytest.mark.parametrize("number", [4, 60])
def test_a_placement_is_worth_the_same_whoever_may_move(number: int) -> None:
    cluster = random_nodes(random.Random(5), number)
    values = set()
    for movable in (number, number // 2, 1):
        pods = tuple(
            replace(one, spec=replace(one.spec, scheduler_name="another")) if i >= movable else one
            for i, one in enumerate(cluster.pods)
        )
        problem = compile_problem(replace(cluster, pods=pods), default_profile(K36), PRESETS["balance"]).problem
        values.add(round(problem.tiers[-1].shown(Evaluator(problem).evaluate(problem.start).values[-1]), 3))
    assert max(values) - min(values) <= ERROR * max(values)
    assert number > 4 or len(values) == 1


@pytest.mark.parametrize("seed", range(50))
def test_an_exact_curve_is_convex_and_has_the_values_of_its_function(seed: int) -> None:
    rng = random.Random(seed)
    points = sorted(rng.sample(range(-5000, 5000), rng.randint(1, 40)))
    factor, center = rng.choice((0.01, 1.0, 37.7)), rng.uniform(-3000, 3000)

    def square(x: float) -> float:
        return factor * (x - center) ** 2

    curves = exact(square, points)
    assert curves.convex
    at = np.array(points, dtype=np.int64)
    values = curves.at(np.zeros(len(at), dtype=np.int64), at)
    apart = max(b - a for a, b in pairwise([*points, points[-1] + 1]))
    off = np.abs(values - np.array([round(square(x)) for x in points]))
    assert off.max() <= (0 if factor >= 1 else apart / 2)


@pytest.mark.parametrize("seed", range(20))
def test_slopes_make_up_for_the_rounding_of_those_before(seed: int) -> None:
    rng = random.Random(seed)
    points = sorted(rng.sample(range(5000), 60))
    anchor = rng.choice(points)
    curves = convex(lambda x: 3.3 * (x - anchor) ** 2, points, anchor)
    assert curves.convex
    for x, before in zip(points[1:], points, strict=False):
        found = int(curves.at(np.zeros(1, dtype=np.int64), np.array([x]))[0])
        assert abs(found - 3.3 * (x - anchor) ** 2) <= max(x - before, 1) + 400
