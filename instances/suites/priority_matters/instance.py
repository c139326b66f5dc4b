"""A cluster of a cell."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stowplan.instances.suites.priority_matters.clusters import Cluster
from stowplan.instances.suites.priority_matters.placing import ClusterProblem, check_cluster, cluster_problem
from stowplan.instances.suites.suite import Instance, Verdict

CELL = re.compile(r"nodes(?P<nodes>[0-9]+)_pods(?P<pods>[0-9]+)_prio(?P<priorities>[0-9]+)_util(?P<load>[0-9]+)")
"""What a cell of alike clusters is called: nodes, pods, priorities, and the percentage of the nodes they ask for."""


@dataclass(frozen=True)
class ClusterInstance(Instance):
    """A cluster; its group is its cell."""

    name: str
    group: str
    cluster: Cluster
    suffix = ".jsonl"

    def state(self) -> ClusterProblem:
        """State it as a problem."""
        return cluster_problem(self.cluster)

    def check(self, file: str, data: bytes) -> Verdict:
        """Count unscheduled pods by priority, and name nodes that hold too much."""
        unplaced, violations = check_cluster(self.cluster, file, data)
        return Verdict(unplaced, tuple(violations))


def cell(name: str) -> dict[str, int] | None:
    """Return the numbers in the name of a cell, or ``None`` for another name."""
    found = CELL.fullmatch(name)
    return found and {key: int(number) for key, number in found.groupdict().items()}
