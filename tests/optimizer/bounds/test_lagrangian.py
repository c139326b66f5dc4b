"""Bounds by node are never above the optimum for any multipliers, exact for one node, as good as the relaxation."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.arrays import Floats, Ints
from stowplan.models.objective import PRESETS
from stowplan.models.problem import FAR, Problem
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.bounds.interior_point import Dual, linear_dual
from stowplan.optimizer.bounds.lagrangian import (
    LagrangianDual,
    dual_without_moves,
    fitted,
    lagrangian_bound,
    largest,
    reads_all,
)
from stowplan.optimizer.bounds.linear import linear_bound
from stowplan.optimizer.bounds.node_programs import Programs, Tables, node_programs
from stowplan.optimizer.bounds.node_search import INFINITE, search_node
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.optimizer.test_brute_force import SHARING
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import Choices, Seeded, drawn
from tests.support.clusters import node, pod, snapshot
from tests.support.problems import problems
from tests.support.random_clusters import Setup, clusters, device_clusters, random_cluster, setups

WORK = Deadline(60, deterministic=True)
ALWAYS = BoundParameters(alike=1)
"""Try multipliers without moves, however few nodes that makes alike."""


@dataclass(frozen=True)
class Multipliers:
    """Multipliers that are not the best ones, to be taken in turn; each is a thousandth of what it is to be."""

    factor: float
    thousandths: Ints

    def some(self, shape: int | tuple[int, ...], scale: float) -> Floats:
        return np.resize(self.thousandths / 1000 * self.factor * scale, shape)


def random_multipliers(choices: Choices) -> Multipliers:
    return Multipliers(choices.one([0.1, 10.0, 1e4]), choices.array(choices.integer(1, 8), -3000, 3000))


ANY = drawn(random_multipliers)


@cases(13, at_least={"above nothing": 9}, cluster=clusters(), setup=setups(), multipliers=ANY)
def test_the_bound_of_a_cluster_is_never_above_the_optimum(
    cluster: Snapshot, setup: Setup, multipliers: Multipliers
) -> None:
    never_above(setup.compile(cluster).problem.steered, multipliers)


@cases(13, at_least={"above nothing": 8}, problem=problems(), multipliers=ANY)
def test_the_bound_of_a_problem_that_no_cluster_compiles_to_is_never_above_the_optimum(
    problem: Problem, multipliers: Multipliers
) -> None:
    never_above(problem, multipliers)


@cases(7, at_least={"above nothing": 1}, cluster=device_clusters(), setup=SHARING, multipliers=ANY)
def test_the_bound_of_pods_that_share_devices_is_never_above_the_optimum(
    cluster: Snapshot, setup: Setup, multipliers: Multipliers
) -> None:
    never_above(setup.compile(cluster).problem.steered, multipliers)


@cases(7, at_least={"above nothing": 6}, problem=problems(), multipliers=ANY)
def test_the_bound_is_sound_where_costs_have_more_digits_than_real_numbers_tell_apart(
    problem: Problem, multipliers: Multipliers
) -> None:
    *earlier, last = problem.tiers
    expensive = replace(last, terms=tuple(replace(term, weight=(10**13 + 37) * term.weight) for term in last.terms))
    never_above(replace(problem, tiers=(*earlier, expensive)), multipliers)


@cases(13, at_least={"every term read": 6}, cluster=clusters(nodes=6, pods=12), setup=setups())
def test_where_it_reads_every_term_the_bound_is_as_good_as_the_linear_relaxation(
    cluster: Snapshot, setup: Setup
) -> None:
    """Given the same values of the earlier tiers: here those of the start."""
    problem = setup.compile(cluster).problem.steered
    evaluator, upper = Evaluator(problem), upper_bounds(problem)
    values = evaluator.evaluate(problem.start).values
    for tier in range(len(values)):
        if reads_all(problem, tier):
            linear = linear_bound(evaluator, upper, tier, values[:tier], 60.0)
            mine = lagrangian_bound(evaluator, upper, tier, values[:tier], WORK)
            assert linear is not None
            assert mine is not None
            assert mine >= linear * (1 - 1e-4) - 1e-4, problem.tiers[tier].name
            count("every term read", linear > 0)


def never_above(problem: Problem, any_multipliers: Multipliers) -> None:
    """Try the multipliers that are best for the relaxation, and some that are not."""
    evaluator, upper, values = Evaluator(problem), upper_bounds(problem), best(problem)
    for tier, value in enumerate(values):
        bound = lagrangian_bound(evaluator, upper, tier, values[:tier], WORK)
        assert bound is not None
        assert bound <= value, problem.tiers[tier].name
        count("above nothing", bound > 0)
        programs = node_programs(evaluator, upper, tier, values[:tier], 10**6, 10**3)
        assert programs is not None
        without_moves = dual_without_moves(programs, WORK, ALWAYS)
        assert without_moves is not None
        assert without_moves.bound <= value, problem.tiers[tier].name
        multipliers = any_multipliers.some(len(programs.size), programs.scale)
        load_duals = any_multipliers.some(programs.tables.base.shape, programs.scale)
        side_duals = np.abs(any_multipliers.some(len(programs.limits.most), programs.scale))
        lagrangian = LagrangianDual(programs, Dual(multipliers, load_duals, side_duals))
        assert lagrangian.bound <= value, problem.tiers[tier].name
        lagrangian.search(1_000, WORK)
        assert lagrangian.bound <= value, problem.tiers[tier].name
        lagrangian.solve_components(WORK, BoundParameters(), 20_000)
        assert lagrangian.bound <= value, problem.tiers[tier].name


class NodeProgram(NamedTuple):
    """The program of one node, a multiplier of each kind and a penalty of each row."""

    tables: Tables
    multipliers: Ints
    load_duals: Ints


def random_node(choices: Choices) -> NodeProgram:
    rows, kinds, corners = choices.integer(1, 3), choices.integer(1, 4), choices.integer(1, 4)
    ints = choices.array
    demand, base = ints((rows, kinds), -1, 5), ints((1, rows), 0, 3)
    upper = ints((1, kinds), 0, 3)
    start = np.minimum(upper, ints((1, kinds), 0, 2))
    floor = base + upper @ np.minimum(0, demand).T
    occupied = base + start @ demand.T
    capacity = np.maximum(np.maximum(floor, occupied), base) + ints((1, rows), 0, 9)
    first = np.cumsum(ints((rows, corners), 1, 4), axis=1) - 2
    slope = np.sort(ints((rows, corners), -6, 6), axis=1)
    value = np.zeros_like(first)
    value[:, 1:] = np.cumsum(slope[:, :-1] * np.diff(first, axis=1), axis=1)
    tables = Tables(
        demand=demand,
        curve=np.arange(rows)[None, :],
        base=base,
        floor=floor,
        capacity=capacity,
        upper=upper,
        start=start,
        linear=ints((1, kinds), 0, 4),
        move=ints((kinds,), 0, 5),
        opening=np.zeros(1, dtype=np.int64),
        first=first,
        slope=slope,
        value=value,
        pieces=(first < FAR).sum(axis=1),
    )
    return NodeProgram(tables, ints(kinds, -5, 25), ints(rows, -4, 6))


@pytest.mark.parametrize("budget", [0, 1, 5, 10**6])
@cases(20, at_least={"pods worth their cost": 4}, node_program=drawn(random_node))
def test_the_search_of_one_node_finds_its_least_cost(node_program: NodeProgram, budget: int) -> None:
    tables, multipliers, load_duals = node_program
    answer = np.zeros(len(multipliers), dtype=np.int64)
    found = search_node(tables, 0, multipliers, load_duals, np.full(len(load_duals), 3), budget, answer)
    least = min(costs(tables, multipliers))
    assert found <= least
    count("pods worth their cost", least < cost(tables, multipliers, [0] * len(multipliers)))
    if budget > 5:
        assert found == least
        assert cost(tables, multipliers, answer.tolist()) == least


def costs(tables: Tables, multipliers: Ints) -> list[int]:
    ways = itertools.product(*(range(int(most_pods) + 1) for most_pods in tables.upper[0]))
    return [cost(tables, multipliers, list(way)) for way in ways]


def cost(tables: Tables, multipliers: Ints, pods: list[int]) -> int:
    y = np.array(pods, dtype=np.int64)
    load = tables.base[0] + tables.demand @ y
    if (load > tables.capacity[0]).any():
        return INFINITE
    total = int((tables.linear[0] - multipliers) @ y + tables.move @ np.maximum(0, tables.start[0] - y))
    for r, x in enumerate(load.tolist()):
        piece = max(0, int((tables.first[r] <= x).sum()) - 1)
        total += int(tables.value[r, piece] + tables.slope[r, piece] * (x - tables.first[r, piece]))
    return total


def balanced(nodes: int, pods: int) -> Problem:
    return compile_problem(synthetic_snapshot(nodes, pods), default_profile(K36), PRESETS["balance"]).problem


def programs_of(problem: Problem) -> Programs:
    last = len(problem.tiers) - 1
    programs = node_programs(Evaluator(problem), upper_bounds(problem), last, [0] * last, 10**6, 10**3)
    assert programs is not None
    return programs


def test_prices_alone_give_the_value_of_the_linear_relaxation_and_whole_pods_more() -> None:
    problem = balanced(20, 150)
    last = len(problem.tiers) - 1
    linear = linear_bound(Evaluator(problem), upper_bounds(problem), last, [0] * last, 60.0)
    programs = programs_of(problem)
    lagrangian = LagrangianDual(programs, linear_dual(programs, WORK))
    assert linear is not None
    by_price = lagrangian.bound
    assert by_price == pytest.approx(linear, rel=1e-4)
    lagrangian.search(1_000, WORK)
    assert lagrangian.bound > by_price


def test_alike_nodes_are_one_program() -> None:
    cluster = snapshot(nodes=[node(f"n{i}") for i in range(6)], pods=[pod(f"p{i}") for i in range(6)])
    problem = compile_problem(cluster, default_profile(K36), PRESETS["balance"]).problem
    programs = programs_of(problem)
    assert programs.times.tolist() == [6]
    assert len(programs.size) == 1
    last = len(problem.tiers) - 1
    # One pod on each of six alike nodes is level, and cannot be leveled further.
    value = Evaluator(problem).evaluate(problem.start.of((0, n, 1) for n in range(6))).values
    assert lagrangian_bound(Evaluator(problem), upper_bounds(problem), last, value[:last], WORK) == value[last]


def test_without_moves_nodes_of_a_kind_are_one_program_and_their_multipliers_nearly_as_good() -> None:
    problem = balanced(60, 500)
    programs = programs_of(problem)
    alike, became = programs.without_moves()
    assert len(alike.times) < len(programs.times) / 5
    assert alike.times.tolist() == np.bincount(became, programs.times).astype(int).tolist()
    assert int(alike.times.sum()) == len(problem.nodes)
    quick = dual_without_moves(programs, WORK, ALWAYS)
    slow = LagrangianDual(programs, linear_dual(programs, WORK))
    assert quick is not None
    assert 0.9 * slow.bound < quick.bound
    start = Evaluator(problem).evaluate(problem.start).values[-1]
    assert quick.bound < start


def test_where_stating_the_programs_takes_all_the_time_there_is_a_bound_all_the_same() -> None:
    problem = balanced(60, 500)
    last = len(problem.tiers) - 1
    values = Evaluator(problem).evaluate(problem.start).values
    bound = lagrangian_bound(
        Evaluator(problem), upper_bounds(problem), last, values[:last], Deadline(0.0), parameters=ALWAYS
    )
    assert bound is not None
    assert 0 < bound <= values[last]
    stopped = Stop()
    stopped.set()
    late = Deadline(0.0, stop=stopped)
    assert (
        lagrangian_bound(Evaluator(problem), upper_bounds(problem), last, values[:last], late, parameters=ALWAYS)
        is None
    )


def test_a_node_is_in_use_though_nothing_on_it_is_full() -> None:
    nodes = [node(f"n{i}", cpu=str(4 + i)) for i in range(3)]
    cluster = snapshot(nodes=nodes, pods=[pod("p", "n1", cpu="100m", memory="")])
    problem = compile_problem(cluster, default_profile(K36), PRESETS["pack"]).problem
    assert lagrangian_bound(Evaluator(problem), upper_bounds(problem), 1, [0], WORK) == 1


def test_multipliers_and_prices_of_any_size_cannot_overflow() -> None:
    programs = programs_of(balanced(10, 60))
    huge = Dual(np.full(len(programs.size), 1e300), np.full(programs.tables.base.shape, -np.inf), np.zeros(0))
    lagrangian = LagrangianDual(programs, huge)
    assert int(np.abs(lagrangian.multipliers).max()) < INFINITE
    assert int(np.abs(lagrangian.load_duals).max(initial=0)) < INFINITE
    lagrangian.search(100, WORK)
    assert lagrangian.bound == 0


@pytest.mark.parametrize("times", [1, 3, 1000])
def test_grains_are_as_large_as_multipliers_prices_and_fines_ask_for(times: int) -> None:
    problem = compile_problem(
        synthetic_snapshot(10, 60), default_profile(K36), PRESETS["balance"], max_moves=20
    ).problem
    programs = programs_of(problem)
    multipliers, load_duals, side_duals = largest(programs)
    dual = Dual(
        np.full(len(programs.size), multipliers * times / 3),
        np.broadcast_to(load_duals * times / 5, programs.tables.base.shape),
        side_duals * times / 2.0,
    )
    kept, scaled = fitted(programs, dual)
    factor = programs.scale // kept.scale
    assert factor * kept.scale == programs.scale
    assert factor == 1 if times == 1 else times / 2 <= factor <= times
    lagrangian = LagrangianDual(programs, dual)
    assert lagrangian.programs.scale == kept.scale
    for mine, wanted in ((lagrangian.multipliers, scaled.multipliers), (lagrangian.load_duals, scaled.load_duals)):
        assert np.allclose(mine, wanted, rtol=1e-9), "none has been cut"
    assert np.allclose(lagrangian.programs.tables.move[0] - kept.tables.move[0], scaled.side_duals[0], rtol=1e-9)


def test_coarser_grains_give_the_same_bound() -> None:
    programs = programs_of(balanced(20, 150))
    dual = linear_dual(programs, WORK)
    coarse = Dual(dual.multipliers / 64, dual.load_duals / 64, dual.side_duals / 64)
    worth = float(LagrangianDual(programs, dual).worth)
    assert float(LagrangianDual(programs.coarser(64), coarse).worth) == pytest.approx(worth, rel=1e-8)


def test_too_many_kinds_of_pods_are_left_alone() -> None:
    """Equations over kinds are dense: 40,000 of them would take all the memory there is."""
    problem = Setup().compile(random_cluster(Seeded(1), broken=True)).problem
    last = len(problem.tiers) - 1
    programs = node_programs(Evaluator(problem), upper_bounds(problem), last, [0] * last, 10**6, 10**3)
    assert programs is not None
    kinds = programs.tables.upper.shape[1]
    assert node_programs(Evaluator(problem), upper_bounds(problem), last, [0] * last, 10**6, kinds) is not None
    assert node_programs(Evaluator(problem), upper_bounds(problem), last, [0] * last, 10**6, kinds - 1) is None
