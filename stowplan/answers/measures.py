"""Figures of an assignment, computed independently of the engine that found it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.answers.assessment import Assessment, Assessor
from stowplan.models.arrays import Ints
from stowplan.models.assignment import Assignment
from stowplan.models.snapshot import Participation
from stowplan.optimizer.evaluate import ConstraintViolation
from stowplan.plugins_compat.admission import Rejection
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.final_state.scorer import scores_in_place
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.requests import CPU, MEMORY
from stowplan.plugins_compat.scoring import FinalScores, final_scores

ALL_SCORED = 2_000
"""Pods up to which all are scored for a report, which takes some seconds at most."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How one resource is used, in requests of all unfinished pods.

    Parameters
    ----------
    requested, allocatable
        Totals in scheduler units.
    mean, deviation, plain_deviation, highest
        Utilization of the nodes that offer the resource, as fractions: mean and standard deviation weighted by
        capacity, plain standard deviation, and the fullest node.
    """

    resource: str
    requested: int
    allocatable: int
    mean: float
    deviation: float
    plain_deviation: float
    highest: float


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What the unfinished pods of one node come to.

    Parameters
    ----------
    requested, allocatable
        Amounts in scheduler units, by resource; those that `Measures.usage` has.
    """

    name: str
    pods: int
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]

    def share(self, resource: str) -> float | None:
        """Return what is requested of what the node offers, as a fraction; ``None`` if it offers nothing."""
        offered = self.allocatable[resource]
        return self.requested[resource] / offered if offered else None


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of one placement.

    Parameters
    ----------
    usage
        Usage of each resource.
    scheduled, unscheduled
        Pods with and without a node, fixed ones included.
    moves
        Pods that are on another node than today, or on none any more.
    values
        Value of each tier of the objective; a limit on moves, which kube-scheduler does not know, does not count.
    move_costs
        What moves cost in each tier; part of the value.
    violations
        Places where a rule of the model is violated.
    refused
        Pods that the filters would not admit to the nodes that they are on.
    nodes_in_use
        Nodes that hold a pod other than of a DaemonSet or a static pod.
    price
        Cost of these nodes per hour; ``None`` if unknown.
    nodes
        The usage of each node, in the snapshot's order.
    scores
        Mean final-state scores of the scheduler's plugins, if they were asked for.
    """

    scheduled: int
    unscheduled: int
    moves: int
    values: Sequence[int]
    move_costs: Sequence[int]
    violations: Sequence[ConstraintViolation]
    refused: Sequence[Rejection]
    usage: Sequence[Usage]
    nodes_in_use: int
    price: float | None
    nodes: Sequence[NodeUsage]
    scores: FinalScores | None


def measure(compiled: Compiled, assignment: Assignment, *, scores: bool = True) -> Measures:
    """Measure an assignment.

    Parameters
    ----------
    compiled
        The compiled snapshot.
    assignment
        Of every pod that has a node.
    scores
        Also score pods on their nodes: all of them where scores are the objective and up to `ALL_SCORED`, otherwise a
        sample, whose size the result states.
    """
    return measured(Assessor(compiled).assess(assignment), scores=scores)


def measured(assessment: Assessment, *, scores: bool = True) -> Measures:
    """Measure an assignment, with what its assessment knows already; see `measure`."""
    compiled, assignment, evaluation = assessment.assessor.compiled, assessment.assignment, assessment.measured
    refused, framework = assessment.refused, assessment.framework
    unfinished = sum(
        1 for participation in compiled.participants.participation if participation is not Participation.FINISHED
    )
    amounts, in_use = _amounts(framework), _nodes_in_use(compiled, assignment)
    return Measures(
        scheduled=len(assignment),
        unscheduled=unfinished - len(assignment),
        moves=evaluation.moves,
        values=evaluation.values,
        move_costs=assessment.move_costs,
        violations=evaluation.violations,
        refused=refused,
        usage=[_usage_of(name, requested, allocatable) for name, (requested, allocatable) in amounts.items()],
        nodes_in_use=len(in_use),
        price=None if compiled.prices is None else sum(compiled.prices[name] for name in sorted(in_use)),
        nodes=_nodes(compiled, assignment, amounts),
        scores=_scores(framework, compiled, assignment) if scores else None,
    )


def _scores(framework: Framework, compiled: Compiled, assignment: Assignment) -> FinalScores:
    """Return the scores of all pods where they are the objective, or quickly found; otherwise those of a sample."""
    judged = any(tier.final is not None for tier in compiled.problem.tiers)
    if judged or len(compiled.pods) <= ALL_SCORED:
        return scores_in_place(framework, compiled.pods, assignment)
    return final_scores(framework, compiled.pods, assignment)


def _amounts(framework: Framework) -> Mapping[str, tuple[Ints, Ints]]:
    """Return ``[n]`` requested and ``[n]`` allocatable amounts of each resource that pods ask for.

    What a plugin accounts for goes by its own figures.
    """
    state = framework.state
    shown = [name for name in state.resources if name in (CPU, MEMORY) or _is_asked_for(state, name)]
    amounts = {
        name: (state.requested[state.resources[name]], state.allocatable[state.resources[name]]) for name in shown
    }
    for plugin in framework.plugins.values():
        amounts |= plugin.accounts()
    return {name: (requested.copy(), allocatable.copy()) for name, (requested, allocatable) in amounts.items()}


def _nodes(compiled: Compiled, assignment: Assignment, amounts: Mapping[str, tuple[Ints, Ints]]) -> list[NodeUsage]:
    pods = assignment.count()
    columns = {name: (requested.tolist(), offered.tolist()) for name, (requested, offered) in amounts.items()}
    return [
        NodeUsage(
            node.name,
            pods[node.name],
            {name: requested[n] for name, (requested, _) in columns.items()},
            {name: offered[n] for name, (_, offered) in columns.items()},
        )
        for n, node in enumerate(compiled.snapshot.nodes)
    ]


def _is_asked_for(state: ClusterState, name: str) -> bool:
    row = state.resources[name]
    return (
        "/" in name and bool(state.allocatable[row].any()) and any(state.vector(s)[row] for s in state.signatures.all)
    )


def _usage_of(resource: str, requested: Ints, allocatable: Ints) -> Usage:
    here = allocatable > 0
    total, used = int(allocatable[here].sum()), int(requested[here].sum())
    if not total:
        return Usage(resource, used, 0, 0.0, 0.0, 0.0, 0.0)
    share = requested[here] / allocatable[here]
    mean = used / total
    weighted = float(np.sqrt((allocatable[here] * (share - mean) ** 2).sum() / total))
    return Usage(resource, used, total, mean, weighted, float(share.std()), float(share.max()))


def _nodes_in_use(compiled: Compiled, assignment: Assignment) -> set[str]:
    counted = (pod.key for pod in compiled.snapshot.pods if not pod.finished and not pod.per_node)
    return {node for key in counted if (node := assignment.get(key))}
