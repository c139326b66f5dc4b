"""Whether a pod may lose its node: never, or for a pod of its own or a higher priority, and for nothing else."""

from __future__ import annotations

import pytest

from stowplan.answers.solve import Solution, solve_snapshot
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.portfolio import Options
from stowplan.settings.problem import make_problem
from tests.support.clusters import node, pod, snapshot


def solved(cluster: Snapshot, objective: str = "repair", preemption: str = "by-priority") -> Solution:
    compiled = make_problem(cluster, Settings(objective=objective, preemption=preemption))
    return solve_snapshot(compiled, Options(time_limit=10, deterministic=True))


def lost(solution: Solution) -> set[str]:
    return {move.pod.name for move in solution.moves if not move.target}


def full(waiting: int, running: int) -> Snapshot:
    """One node for one pod, which is taken."""
    return snapshot(
        nodes=[node("n0", cpu="1")],
        pods=[
            pod("running", "n0", owner="ReplicaSet/r", cpu="1", priority=running),
            pod("waiting", cpu="1", priority=waiting),
        ],
    )


def test_a_more_important_pod_takes_the_node() -> None:
    solution = solved(full(waiting=10, running=0))
    assert lost(solution) == {"running"}
    assert solution.assignment == {"default/waiting": "n0"}


@pytest.mark.parametrize("running", [10, 11])
def test_a_pod_that_is_as_important_keeps_its_node(running: int) -> None:
    assert lost(solved(full(waiting=10, running=running))) == set()


def test_never_means_never() -> None:
    assert lost(solved(full(waiting=10, running=0), preemption="never")) == set()


@pytest.mark.parametrize("objective", ["pack", "balance", "repair", "spread", "kube"])
def test_nobody_loses_a_node_for_the_objective_or_to_mend_a_rule(objective: str) -> None:
    cluster = snapshot(
        nodes=[node("n0", cpu="2"), node("n1", cpu="1")],
        pods=[pod(f"p{i}", "n0", cpu="1", priority=i, owner="ReplicaSet/r") for i in range(4)],
    )
    solution = solved(cluster, objective)
    assert lost(solution) == set()
    assert len(solution.assignment) == 4


def test_more_pods_of_one_priority_are_better() -> None:
    cluster = snapshot(
        nodes=[node("n0", cpu="2")],
        pods=[pod("large", "n0", cpu="2", owner="ReplicaSet/r"), pod("small-0", cpu="1"), pod("small-1", cpu="1")],
    )
    assert lost(solved(cluster)) == {"large"}
