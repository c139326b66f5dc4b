"""A cluster as a problem, solutions as files, and what a written solution is worth.

A solution is one line of JSON: the cluster's ``seed``, and as ``nodes`` for every ReplicaSet the node of each replica,
counted from 0, or ``null`` for an unscheduled replica.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from stowplan.instances.suites.priority_matters.clusters import Cluster
from stowplan.models.arrays import Ints
from stowplan.models.errors import InputError
from stowplan.models.problem import (
    PENALTY_WEIGHT,
    Capacity,
    Origin,
    Placement,
    Problem,
    Tier,
    Unplaced,
    Weighted,
    project,
    refine,
)
from stowplan.models.validation import refusal


@dataclass(frozen=True, slots=True, eq=False)
class ClusterProblem:
    """A cluster as a problem.

    Parameters
    ----------
    class_of
        ``[s]`` the class of each ReplicaSet; those that nothing tells apart share one.
    """

    cluster: Cluster
    problem: Problem
    class_of: Ints

    def write(self, placement: Placement) -> str:
        """Write a placement as a solution."""
        taken: list[list[int]] = [[] for _ in self.problem.classes]
        for c, n, count in placement.entries():
            taken[c] += [n] * count
        nodes = []
        for c, replica_set in zip(self.class_of.tolist(), self.cluster.replicasets, strict=True):
            mine, taken[c] = taken[c][: replica_set.replicas], taken[c][replica_set.replicas :]
            nodes.append([*mine, *[None] * (replica_set.replicas - len(mine))])
        return json.dumps({"seed": self.cluster.seed, "nodes": nodes}) + "\n"


def cluster_problem(cluster: Cluster) -> ClusterProblem:
    """State a cluster as a problem: one tier a priority, the highest first, of unscheduled pods."""
    sets = cluster.replicasets
    priority = np.array([s.priority for s in sets], dtype=np.int64)
    rules = [
        _capacity("cpu", [s.cpu_m for s in sets], cluster.node_cpu_m, cluster.nodes),
        _capacity("memory", [s.mem_b for s in sets], cluster.node_mem_b, cluster.nodes),
    ]
    terms = [Unplaced(Origin("unplaced"), (priority == p).astype(np.int64)) for p in cluster.priorities]
    class_of = refine(len(sets), [*rules, *terms])
    representative = np.unique(class_of, return_index=True)[1]
    size = np.bincount(class_of, [s.replicas for s in sets], minlength=len(representative)).astype(np.int64)
    problem = Problem(
        nodes=tuple(f"node {n}" for n in range(cluster.nodes)),
        classes=tuple(f"set {s}" for s in representative.tolist()),
        size=size,
        optional=size.copy(),
        start=Placement.of(()),
        rules=tuple(project(rule, class_of, representative) for rule in rules),
        tiers=tuple(
            Tier(f"priority {p}", (Weighted(1, project(term, class_of, representative)),), unit="pods")
            for p, term in zip(cluster.priorities, terms, strict=True)
        ),
    )
    return ClusterProblem(cluster, problem, class_of)


class _Solution(BaseModel):
    model_config = ConfigDict(extra="forbid")

    seed: int
    nodes: list[list[int | None]]


def check_cluster(cluster: Cluster, name: str, data: bytes) -> tuple[tuple[int, ...], list[str]]:
    """Check a written solution.

    Returns
    -------
    unplaced, violations
        Unscheduled pods for each priority, the highest first, and one line for each node that holds too much.

    Raises
    ------
    InputError
        If it is not a solution of this cluster at all.
    """
    try:
        solution = _Solution.model_validate_json(data)
    except ValidationError as error:
        raise refusal(error, name) from None
    if solution.seed != cluster.seed:
        raise InputError(f"is {solution.seed}; must be {cluster.seed}", file=name, field="seed")
    if [len(row) for row in solution.nodes] != [s.replicas for s in cluster.replicasets]:
        raise InputError("must hold one entry for every replica of every ReplicaSet", file=name, field="nodes")
    cpu, memory, missing = Counter[int](), Counter[int](), Counter[int]()
    for i, (row, replica_set) in enumerate(zip(solution.nodes, cluster.replicasets, strict=True)):
        for j, node in enumerate(row):
            if node is None:
                missing[replica_set.priority] += 1
                continue
            if not 0 <= node < cluster.nodes:
                raise InputError(f"is {node}; must be below {cluster.nodes}", file=name, field=f"nodes[{i}][{j}]")
            cpu[node] += replica_set.cpu_m
            memory[node] += replica_set.mem_b
    violations = [
        f"node {node}: {load} {what} exceed its {room}"
        for used, room, what in (
            (cpu, cluster.node_cpu_m, "millicores"),
            (memory, cluster.node_mem_b, "bytes of memory"),
        )
        for node, load in sorted(used.items())
        if load > room
    ]
    return tuple(missing[p] for p in cluster.priorities), violations


def _capacity(resource: str, demand: list[int], room: int, nodes: int) -> Capacity:
    amounts = np.array(demand, dtype=np.int64)
    unit = max(1, int(np.gcd.reduce(amounts)))
    free = np.full(nodes, room // unit, dtype=np.int64)
    return Capacity(
        Origin("capacity", resource), amounts // unit, free, np.maximum(1, PENALTY_WEIGHT // (free + 1)), unit
    )
