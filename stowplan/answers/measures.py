"""What a placement looks like from outside: the figures that a report shows, none of them an engine's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.snapshot import Participation
from stowplan.optimizer.evaluate import ConstraintViolation, Evaluator
from stowplan.plugins_compat.admission import Rejection, populated, rejections
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.requests import CPU, MEMORY
from stowplan.plugins_compat.scoring import FinalScores, final_scores


@dataclass(frozen=True, slots=True)
class Usage:
    """How one resource is used, in requests of all unfinished pods.

    Parameters
    ----------
    requested, allocatable
        Totals in scheduler units.
    mean, deviation, plain_deviation, highest
        Utilisation of the nodes that offer the resource, as fractions: mean and standard deviation weighted by
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
class Measures:
    """Figures of one placement.

    Parameters
    ----------
    placed
        Pods with a node, fixed ones included; ``pending`` have none.
    moves
        Pods that left the node they stand on today.
    values
        Value of each tier of the objective.
    violations
        Places where a rule of the model is exceeded.
    refused
        Pods that the filters would not admit where they stand.
    nodes_in_use
        Nodes that hold a pod other than of a DaemonSet or a static pod.
    scores
        Mean final-state scores of the scheduler's plugins, if they were asked for.
    """

    placed: int
    pending: int
    moves: int
    values: Sequence[int]
    violations: Sequence[ConstraintViolation]
    refused: Sequence[Rejection]
    usage: Sequence[Usage]
    nodes_in_use: int
    scores: FinalScores | None


def measure(compiled: Compiled, where: Mapping[str, str], *, scores: bool = True) -> Measures:
    """Measure where pods stand.

    Parameters
    ----------
    where
        Node name by pod key of every pod that has a node.
    scores
        Also score pods on their nodes, which takes a scheduling cycle for each.
    """
    placement = compiled.placement({pod.key: where.get(pod.key, "") for pod in compiled.pods})
    evaluation = Evaluator(compiled.problem).evaluate(placement)
    framework = populated(compiled.snapshot, compiled.profile, where, compiled.signatures)
    unfinished = sum(
        1 for participation in compiled.participants.participation if participation is not Participation.FINISHED
    )
    return Measures(
        placed=len(where),
        pending=unfinished - len(where),
        moves=evaluation.moves,
        values=evaluation.values,
        violations=evaluation.violations,
        refused=rejections(framework, where),
        usage=_usage(framework),
        nodes_in_use=_nodes_in_use(compiled, where),
        scores=final_scores(framework, compiled.pods, where) if scores else None,
    )


def _usage(framework: Framework) -> list[Usage]:
    """Return the usage of the resources that pods ask for; what a plugin accounts for goes by its own figures."""
    state = framework.state
    shown = [name for name in state.resources if name in (CPU, MEMORY) or _is_asked_for(state, name)]
    amounts = {
        name: (state.requested[state.resources[name]], state.allocatable[state.resources[name]]) for name in shown
    }
    for plugin in framework.plugins.values():
        amounts |= plugin.accounts()
    return [_usage_of(name, requested, allocatable) for name, (requested, allocatable) in amounts.items()]


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


def _nodes_in_use(compiled: Compiled, where: Mapping[str, str]) -> int:
    return len(
        {
            where[pod.key]
            for pod in compiled.snapshot.pods
            if pod.key in where
            and not pod.finished
            and not ((owner := pod.metadata.controller) and owner.kind in ("DaemonSet", "Node"))
        }
    )
