"""One pod after the other, as kube-scheduler does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Ints
from models.kubernetes import Pod
from plugins_compat.framework.cycle import Verdict
from plugins_compat.framework.framework import Framework


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What became of a pod.

    Parameters
    ----------
    node
        Index of the chosen node, or ``None``.
    message
        Why there is none, in the words of a FailedScheduling event.
    """

    pod: Pod
    node: int | None
    message: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Everything the cycle of one pod found out before it was placed.

    Parameters
    ----------
    scores
        Weighted scores of the feasible nodes by plugin.
    total
        Their sum.
    node
        Index of the node to take, or ``None`` if none is feasible.
    """

    verdict: Verdict
    scores: dict[str, Ints]
    total: Ints
    node: int | None


def examine(framework: Framework, pod: Pod, *, score_single: bool = False) -> Scored:
    """Filter and score all nodes for a pod, without placing it.

    Parameters
    ----------
    score_single
        Score even a single feasible node, which the scheduler takes unscored.
    """
    cycle, extenders = framework.cycle(pod), framework.extenders
    verdict = framework.run_filters(cycle)
    if framework.sampler is not None:
        unscored = not framework.scores and not extenders.prioritizing and not extenders.filtering
        first_will_do = framework.state.release.takes_first_if_unscored and unscored
        verdict = framework.sampler.cut(verdict, first_will_do=first_will_do)
    extenders.filter(verdict)
    feasible = verdict.feasible
    none = np.zeros(0, dtype=np.int64)
    if not len(feasible):
        return Scored(verdict, {}, none, None)
    if len(feasible) == 1 and not score_single:
        return Scored(verdict, {}, none, int(feasible[0]))
    scores = framework.run_scores(cycle, feasible)
    unscored = not scores and not framework.scores and not extenders.prioritizing
    total = np.full(len(feasible), int(unscored), dtype=np.int64)
    total += np.sum(list(scores.values()), axis=0, dtype=np.int64)
    added, extended = extenders.prioritize(pod, feasible)
    total += added
    return Scored(verdict, scores, total, int(feasible[framework.select(total, extended)]))


def schedule_one(framework: Framework, pod: Pod) -> Decision:
    """Run a pod's whole cycle: filter, score, assume, reserve, bind."""
    found = examine(framework, pod)
    if found.node is None:
        return Decision(pod, None, failure(found.verdict))
    status = framework.place(found.verdict.cycle, found.node)
    if status is not None:
        return Decision(pod, None, "; ".join(status.reasons))
    return Decision(pod, found.node)


def schedule(framework: Framework, pods: Sequence[Pod]) -> Iterable[Decision]:
    """Schedule pods in the order of the queue."""
    for pod in in_turn(framework, pods):
        yield schedule_one(framework, pod)


def in_turn(framework: Framework, pods: Sequence[Pod]) -> list[Pod]:
    """Return pods in the order of the queue. They enter it in the order of their creation."""
    arrived = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp or "")
    return sorted(arrived, key=framework.queue_sort[0].queue_key)


def failure(verdict: Verdict) -> str:
    """Say why no node is feasible: how many nodes failed for which reason."""
    total = len(verdict.nodes)
    reasons = ", ".join(f"{count} {reason}" for reason, count in verdict.summary().items())
    return f"0/{total} nodes are available: {reasons}." if reasons else "no nodes available to schedule pods"
