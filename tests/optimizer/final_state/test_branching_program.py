"""The program of a box: each legal placement is within its own, at no more than its cost, whatever profiles score."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.problem import Curves, NodeCurve, Origin, Placement, Problem, Weighted
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.bounds.water_filling import may_wait
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.bound import FinalStateBound, whole
from stowplan.optimizer.final_state.branch_and_bound import BranchAndBound
from stowplan.optimizer.final_state.branching_program import BranchingProgram
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocationArgs
from stowplan.plugins_compat.plugins.node_resources_fit import NodeResourcesFitArgs
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from tests.support.brute_force import placements
from tests.support.cases import cases, count
from tests.support.choices import Choices, Seeded, drawn
from tests.support.clusters import node, pod, snapshot

GPU = "example.com/gpu"
FITS = [
    {"type": "LeastAllocated"},
    {
        "type": "LeastAllocated",
        "resources": [{"name": "cpu"}, {"name": "memory"}, {"name": GPU, "weight": 5}],
    },
    {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 7}]},
    {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "cpu"}, {"name": "memory"}],
        "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]},
    },
]
BALANCED = [("cpu", "memory"), ("cpu", GPU)]


def random_problem(choices: Choices, max_moves: int | None = None) -> Problem:
    """Build two or three nodes with odd sizes and pods that request this or that, scored in one of many ways."""
    release: Release = choices.one([K24, K36])
    profile = default_profile(release)
    fit = NodeResourcesFitArgs.model_validate({"scoringStrategy": choices.one(FITS)})
    if choices.chance(0.25):
        fit = fit.model_copy(update={"ignored_resources": (GPU,)})
    resources = [{"name": name} for name in choices.one(BALANCED)]
    balanced = NodeResourcesBalancedAllocationArgs.model_validate({"resources": resources})
    arguments = {**profile.arguments, "NodeResourcesFit": fit, "NodeResourcesBalancedAllocation": balanced}
    order = dict(profile.order)
    if choices.chance(0.2):
        for point in ("filter", "pre_filter"):
            order[point] = tuple(name for name in profile.at(point) if name != "NodeResourcesFit")
    cluster = random_cluster(choices)
    objective = PRESETS[choices.one(["kube", "global"])]
    return compile_problem(
        cluster, replace(profile, arguments=arguments, order=order), objective, max_moves=max_moves
    ).problem


def random_cluster(choices: Choices) -> Snapshot:
    names = [f"n{i}" for i in range(choices.integer(2, 3))]
    nodes = [
        node(
            name,
            cpu=str(choices.one([3, 7, 11])),
            memory=f"{choices.integer(4, 9) * 1_000_003}k",
            extended={GPU: "4"},
        )
        for name in names
    ]
    pods = [
        pod(
            f"d{name}",
            name,
            cpu="100m",
            memory="100Mi",
            owner="DaemonSet/d",
            extended={GPU: str(choices.integer(0, 3))},
        )
        for name in names
    ]
    for i in range(choices.integer(3, 4)):
        asked = {} if choices.chance(0.7) else {"extended": {GPU: "1"}}
        cpu, memory = f"{choices.integer(701, 1999)}m", f"{choices.integer(500_001, 1_999_999)}k"
        app = f"a{choices.integer(0, 2)}"
        soft = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": app}},
            }
        ]
        spread = {"topologySpreadConstraints": soft} if choices.chance(0.5) else {}
        name, at = f"p{i}", choices.one(names)
        pods.append(
            pod(name, at, cpu=cpu, memory=memory, owner=f"ReplicaSet/{app}", labels={"app": app}, **asked, **spread)
        )
    return snapshot(nodes=nodes, pods=pods)


@cases(150, at_least={"asked": 900, "met": 15, "proven": 80}, problem=drawn(random_problem))
def test_no_legal_placement_is_outside_or_below(problem: Problem) -> None:
    tier = len(problem.tiers) - 1
    final, evaluator = problem.tiers[tier].final, Evaluator(problem)
    if final is None:
        return
    today = evaluator.evaluate(problem.start)
    seen = [(evaluator.evaluate(placement), placement) for placement in placements(problem)]
    legal = [(one.values[tier], p) for one, p in seen if one.legal and one.values[:tier] <= today.values[:tier]]
    least = min(value for value, _ in legal)
    upper, waiting = upper_bounds(problem).astype(np.int64), may_wait(problem, tier, today.values[:tier])
    details = final.details(problem.start, upper, waiting)
    program = BranchingProgram(problem, problem.tiers[tier], details, upper, waiting, today.values[tier])
    for value, placement in random.Random(0).sample(legal, min(10, len(legal))):
        bound = bound_alone(program, placement, problem)
        assert bound <= value
        count("asked")
        count("met", bound > value * (1 - 1e-9))

    def cost(placement: Placement) -> int | None:
        one = evaluator.evaluate(placement)
        return one.values[tier] if one.legal and one.values[:tier] <= today.values[:tier] else None

    parts = final.relaxation(problem.start)
    again = BranchingProgram(problem, problem.tiers[tier], details, upper, waiting, least + 1)
    found = BranchAndBound(again, cost, least + 1, 1).run(Deadline(20, deterministic=True), 400)
    assert found <= least
    count("proven", found == least)
    chosen = FinalStateParameters()
    dual = FinalStateBound(
        problem, problem.tiers[tier], parts, upper.astype(np.int32), problem.start, least + 1, chosen
    )
    assert whole(dual.solve(Deadline(1, deterministic=True)), least + 1, 1) <= least


def bound_alone(program: BranchingProgram, placement: Placement, problem: Problem) -> float:
    """Return the bound of the box with one placement alone, which has to be there."""
    pods = placement.table(*problem.shape)
    there = program.pods >= 0
    assert not pods[~there].any()
    fixed = list(zip(program.pods[there].tolist(), pods[there].tolist(), pods[there].tolist(), strict=True))
    totals = pods.sum(axis=0).tolist()
    fixed += list(zip(program.number, totals, totals, strict=True))
    ranges = program.ranges(fixed)
    assert ranges is not None, "a legal placement is in no box"
    found = program.solve(ranges)
    assert found is not None, "the box of a legal placement is called empty"
    return found.bound


@pytest.mark.parametrize("demand", [(2, -3), (-2, -3), (2, 3)])
def test_curves_of_loads_that_pods_lower_are_read_too(demand: tuple[int, int]) -> None:
    problem = random_problem(Seeded(3))
    classes, nodes = problem.shape
    curves = Curves(np.array([[-20, 0, 4]]), np.array([[-5_000, 1_000, 90_000]]), np.array([[100_000, 0, 4_000]]))
    each = np.resize(np.array(demand, dtype=np.int64), classes)
    zero = np.zeros(nodes, dtype=np.int64)
    curve = NodeCurve(Origin("test"), each, zero, zero, curves)
    tier = problem.tiers[-1]
    both = replace(problem, tiers=(*problem.tiers[:-1], replace(tier, terms=(*tier.terms, Weighted(1, curve)))))
    evaluator, upper = Evaluator(both), upper_bounds(both).astype(np.int64)
    assert tier.final is not None
    details = tier.final.details(both.start, upper, both.optional)
    value = evaluator.evaluate(both.start).values[-1]
    program = BranchingProgram(both, both.tiers[-1], details, upper, both.optional, value)
    for placement in placements(both):
        seen = evaluator.evaluate(placement)
        if seen.legal:
            assert bound_alone(program, placement, both) <= seen.values[-1]
