"""The variance term is what its formula says, near the mean and far from it, whoever else is waiting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stowplan.instances.load import load
from stowplan.models.errors import InputError
from stowplan.models.objective import PRESETS
from stowplan.models.result import Status
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.cases import cases
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, pod, snapshot


def compiled(cluster: Snapshot) -> Compiled:
    return compile_problem(cluster, default_profile(K36), PRESETS["balance"])


def value_today(cluster: Snapshot) -> float:
    problem = compiled(cluster).problem
    return problem.tiers[-1].shown(Evaluator(problem).evaluate(problem.start).values[-1])


def by_hand(loads: list[tuple[float, float]], sizes: list[tuple[float, float]]) -> float:
    """``Σ_r Σ_n (a_n/ā)·(100·u_n/a_n − 100·μ)²`` over CPU and memory."""
    total = 0.0
    for r in range(2):
        used, offered = [load[r] for load in loads], [size[r] for size in sizes]
        mean, average = sum(used) / sum(offered), sum(offered) / len(offered)
        total += sum(a / average * (100 * u / a - 100 * mean) ** 2 for u, a in zip(used, offered, strict=True))
    return total


@dataclass(frozen=True)
class Hall:
    """Nodes by what they offer, and pods by their node and what they ask for: cores and GiB."""

    nodes: list[tuple[int, int]]
    pods: list[tuple[int, int, int]]


def random_hall(choices: Choices) -> Hall:
    nodes = [(choices.one((4, 8, 16)), choices.one((8, 16, 64))) for _ in range(choices.integer(2, 5))]
    pods = [
        (choices.integer(0, len(nodes) - 1), choices.integer(1, 2), choices.one((1, 3)))
        for _ in range(choices.integer(1, 16))
    ]
    return Hall(nodes, pods)


@pytest.mark.parametrize("crowding", [1, 8], ids=["with room", "overcommitted"])
@cases(10, hall=drawn(random_hall))
def test_the_value_is_that_of_the_formula(hall: Hall, crowding: int) -> None:
    nodes = [node(f"n{i}", cpu=str(cpu), memory=f"{gib}Gi") for i, (cpu, gib) in enumerate(hall.nodes)]
    loads = [[0.0, 0.0] for _ in nodes]
    pods = []
    for i, (at, cpu, gib) in enumerate(hall.pods):
        pods.append(pod(f"p{i}", f"n{at}", cpu=str(cpu * crowding), memory=f"{gib * crowding}Gi"))
        loads[at][0] += cpu * crowding
        loads[at][1] += gib * crowding
    expected = by_hand([(load[0], load[1]) for load in loads], [(float(c), float(m)) for c, m in hall.nodes])
    assert value_today(snapshot(nodes=nodes, pods=pods)) == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_what_is_proven_optimal_is_the_best_of_all_placements() -> None:
    cluster = load(Path(__file__).parent.parent / "golden" / "cases" / "variance_199.json")
    found = solve(compiled(cluster).problem, Options(time_limit=10, deterministic=True))
    assert found.status is Status.OPTIMAL
    assert round(found.tiers[-1].tier.shown(found.tiers[-1].value)) == 2571


def crowded(*waiting: Any) -> Snapshot:
    """Four nodes, and all pods on two of them."""
    pods = [pod(f"p{i}", f"n{i % 2}", cpu="500m", memory="512Mi") for i in range(20)]
    return snapshot(nodes=[node(f"n{i}", cpu="8", memory="16Gi") for i in range(4)], pods=[*pods, *waiting])


@pytest.mark.parametrize(
    "waiting",
    [
        [pod(f"w{i}", cpu="100", memory="1Gi") for i in range(10)],
        [pod(f"w{i}", cpu="1", memory="1Gi", nodeSelector={"no": "where"}) for i in range(200)],
    ],
    ids=["too large for any node", "wanting a node that is not there"],
)
def test_pods_that_can_stand_nowhere_change_nothing(waiting: list[Any]) -> None:
    alone, beside = compiled(crowded()), compiled(crowded(*waiting))
    expected = solve(alone.problem, Options(time_limit=10, deterministic=True))
    found = solve(beside.problem, Options(time_limit=10, deterministic=True))
    assert found.status is expected.status is Status.OPTIMAL
    assert found.tiers[-1].value == expected.tiers[-1].value
    assert Evaluator(beside.problem).evaluate(found.placement).moves == 10


def test_a_load_beyond_all_sense_is_refused_by_name() -> None:
    cluster = snapshot(nodes=[node("n0", cpu="1")], pods=[pod("p", "n0", cpu="5000")])
    with pytest.raises(InputError, match="5,000 times what it offers") as caught:
        compiled(cluster)
    assert caught.value.obj == "Node n0"
