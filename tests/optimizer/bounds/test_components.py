"""Components cost what the best of all their placements costs, and never less than multipliers say."""

from __future__ import annotations

import itertools

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.objective import PRESETS, Objective, TierSettings
from stowplan.models.problem import Problem
from stowplan.optimizer.bounds.components import Component, components, jointly, separately
from stowplan.optimizer.bounds.interior_point import Dual, linear_dual
from stowplan.optimizer.bounds.lagrangian import LagrangianDual, lagrangian_bound
from stowplan.optimizer.bounds.node_programs import Programs, node_programs
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.optimizer.bounds.test_lagrangian import cost
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, pod, snapshot
from tests.support.problems import problems

WORK = Deadline(60, deterministic=True)
LEVEL = Objective(tiers=(TierSettings(name="balance", variance={"cpu": 1, "memory": 1}),))


def programs_of(problem: Problem, tier: int, reached: tuple[int, ...]) -> Programs:
    programs = node_programs(Evaluator(problem), upper_bounds(problem), tier, reached, 10**6, 10**3)
    assert programs is not None
    return programs


@cases(25, at_least={"pods of several kinds": 20}, problem=problems(), multipliers=drawn(Choices.array, 8, -5, 24))
def test_a_component_costs_what_its_best_placement_costs(problem: Problem, multipliers: Ints) -> None:
    values = best(problem)
    for tier in range(len(values)):
        programs = programs_of(problem, tier, values[:tier])
        penalized = programs.penalized(np.resize(np.abs(multipliers) % 3, len(programs.limits.most)) * programs.scale)
        wanted = np.resize(multipliers, len(programs.size)) * programs.scale
        for each in components(penalized):
            least, found = least_cost(penalized, each), jointly(penalized, each, WORK, 20_000)
            assert found == least
            bounds = np.array([least_of_node(penalized, m, wanted) for m in range(len(penalized.times))])
            assert separately(penalized, each, wanted, bounds) <= least
            count("pods of several kinds", len(each.kinds) > 1)


def least_of_node(programs: Programs, m: int, multipliers: Ints) -> int:
    tables = programs.tables
    return min(node_cost(programs, m, list(y)) - int(multipliers @ y) for y in held(tables.upper[m]))


def held(upper: Ints) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(int(each) + 1) for each in upper)))


def node_cost(programs: Programs, m: int, pods: list[int]) -> int:
    """What a node costs, by the plain reading of the tables that the search of one node is tested with."""
    tables = programs.tables
    one = tables._replace(
        **{part: getattr(tables, part)[m : m + 1] for part in ("base", "capacity", "start", "linear")},
        first=tables.first[tables.curve[m]],
        slope=tables.slope[tables.curve[m]],
        value=tables.value[tables.curve[m]],
    )
    return cost(one, np.zeros(len(pods), dtype=np.int64), pods) + (int(tables.opening[m]) if any(pods) else 0)


def least_cost(programs: Programs, component: Component) -> int:
    """Try every way in which the nodes can hold the pods: by what all nodes so far hold, the least cost."""
    ways = {(0,) * len(programs.size): 0}
    for m in np.repeat(component.members, programs.times[component.members]).tolist():
        grown: dict[tuple[int, ...], int] = {}
        for pods in held(programs.tables.upper[m]):
            here = node_cost(programs, m, list(pods))
            for before, paid in ways.items():
                now = tuple(a + b for a, b in zip(before, pods, strict=True))
                if all(n <= size for n, size in zip(now, programs.size.tolist(), strict=True)):
                    grown[now] = min(grown.get(now, paid + here), paid + here)
        ways = grown
    size, optional = programs.size[component.kinds], programs.optional[component.kinds]
    costs = []
    for placed, paid in ways.items():
        waiting = size - np.array(placed)[component.kinds]
        if (waiting <= optional).all():
            costs.append(paid + int(waiting @ programs.unplaced[component.kinds]))
    return min(costs)


def two_kinds_of_nodes() -> Problem:
    """Three large pods for two nodes of their own, and small ones for the others."""
    special = [node(f"s{i}", labels={"for": "special"}, cpu="8") for i in range(2)]
    plain = [node(f"n{i}", labels={"for": "plain"}) for i in range(2)]
    pods = [pod(f"l{i}", "s0", cpu="2", nodeSelector={"for": "special"}) for i in range(3)]
    pods += [pod(f"p{i}", "n0", cpu="500m", nodeSelector={"for": "plain"}) for i in range(3)]
    cluster = snapshot(nodes=[*special, *plain], pods=pods)
    return compile_problem(cluster, default_profile(K36), LEVEL).problem


def test_few_pods_on_few_nodes_of_their_own_are_proven_level() -> None:
    problem = two_kinds_of_nodes()
    evaluator, upper, values = Evaluator(problem), upper_bounds(problem), best(problem)
    last = len(values) - 1
    assert lagrangian_bound(evaluator, upper, last, values[:last], WORK) == values[last]
    programs = programs_of(problem, last, values[:last])
    assert [len(each.kinds) for each in components(programs)] == [1, 1]
    lagrangian = LagrangianDual(programs, linear_dual(programs, WORK))
    lagrangian.search(10_000, WORK)
    assert lagrangian.bound < values[last], "multipliers alone let a pod stand on two nodes by halves"
    lagrangian.solve_components(WORK, BoundParameters(), 20_000)
    assert lagrangian.bound == values[last]


def test_what_is_gained_is_not_counted_twice_when_nodes_are_searched_later() -> None:
    problem = two_kinds_of_nodes()
    values = best(problem)
    programs = programs_of(problem, len(values) - 1, values[:-1])
    nothing = Dual(np.zeros(len(programs.size)), np.zeros(programs.tables.base.shape), np.zeros(0))
    lagrangian = LagrangianDual(programs, nothing)
    lagrangian.solve_components(WORK, BoundParameters(), 20_000)
    lagrangian.search(10_000, WORK)
    assert lagrangian.bound == values[-1]


def test_where_moves_are_free_it_does_not_matter_who_stands_there() -> None:
    problem = two_kinds_of_nodes()
    assert programs_of(problem, len(problem.tiers) - 1, (0,)).times.tolist() == [2, 2]
    cluster = snapshot(nodes=[node("a"), node("b")], pods=[pod("p", "a")])
    priced = compile_problem(cluster, default_profile(K36), PRESETS["balance"]).problem
    assert programs_of(priced, len(priced.tiers) - 1, (0,)).times.tolist() == [1, 1]


def test_a_large_component_is_left_to_multipliers() -> None:
    problem = two_kinds_of_nodes()
    programs = programs_of(problem, len(problem.tiers) - 1, (0,))
    assert [jointly(programs, each, WORK, 3) for each in components(programs)] == [None, None]
