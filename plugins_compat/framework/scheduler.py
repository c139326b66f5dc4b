"""One pod after the other, as kube-scheduler does it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.diagnosis import Diagnosis
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.status import Code, ScoreError, Status


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What became of a pod.

    Parameters
    ----------
    node
        Index of the chosen node, or ``None``.
    message
        Why there is none, in the words of a FailedScheduling event.
    victims
        Pods that the scheduler preempted on the node.
    preempted_by
        The pod that had preempted this one before.
    is_error
        The cycle broke off, instead of finding no node.
    waits
        The pod has a node, and waits for the permission of a Permit plugin to be bound to it.
    tied
        Indices of other nodes with the same score, if the release may take any of them.
    """

    pod: Pod
    node: int | None
    message: str = ""
    victims: Sequence[Pod] = ()
    preempted_by: Pod | None = None
    is_error: bool = False
    waits: bool = False
    tied: Sequence[int] = ()


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
    error
        What a score plugin failed with.
    """

    diagnosis: Diagnosis
    scores: dict[str, Ints]
    total: Ints
    node: int | None
    error: Status | None = None

    @property
    def tied(self) -> tuple[int, ...]:
        """Indices of the nodes with the highest score, without the one that is taken."""
        if self.node is None or not len(self.total):
            return ()
        best = self.diagnosis.feasible[self.total == self.total.max()]
        return tuple(node for node in best.tolist() if node != self.node)


def examine(framework: Framework, pod: Pod, *, score_single: bool = False) -> Scored:
    """Filter and score all nodes for a pod, without placing it.

    Parameters
    ----------
    score_single
        Score even a single feasible node, which the scheduler takes unscored.
    """
    none, extenders = np.zeros(0, dtype=np.int64), framework.extenders
    nominated = framework.state.nominator.node_of(pod)
    if nominated is not None:
        alone = framework.run_filters(framework.cycle(pod), np.array([nominated]), narrow=False)
        extenders.filter(alone)
        if len(alone.feasible):
            return Scored(alone, {}, none, nominated)
    cycle = framework.cycle(pod)
    diagnosis = framework.run_filters(cycle)
    if framework.sampler is not None:
        unscored = not framework.scores and not extenders.prioritizing and not extenders.filtering
        first_will_do = framework.state.release.takes_first_if_unscored and unscored
        diagnosis = framework.sampler.cut(diagnosis, first_will_do=first_will_do)
    extenders.filter(diagnosis)
    feasible = diagnosis.feasible
    if not len(feasible):
        return Scored(diagnosis, {}, none, None)
    if len(feasible) == 1 and not score_single:
        return Scored(diagnosis, {}, none, int(feasible[0]))
    try:
        scores = framework.run_scores(cycle, feasible)
    except ScoreError as error:
        return Scored(diagnosis, {}, none, None, Status(Code.ERROR, (str(error),)))
    unscored = not scores and not framework.scores and not extenders.prioritizing
    number = np.float64 if framework.state.release.real_scores else np.int64
    total: Any = np.full(len(feasible), int(unscored), dtype=number)
    total += np.sum(list(scores.values()), axis=0, dtype=number)
    added, extended = extenders.prioritize(pod, feasible)
    total += added
    return Scored(diagnosis, scores, total, int(feasible[framework.select(feasible, total, extended)]))


def schedule_one(framework: Framework, pod: Pod) -> Decision:
    """Run a pod's whole cycle: filter, score, assume, reserve, bind.

    A pod that preempts others has its turn again at once, when they are gone: the grace period of victims, in which
    upstream may try other pods, takes no time here.
    """
    found = examine(framework, pod)
    if error := found.error or found.diagnosis.error:
        return Decision(pod, None, "; ".join(error.reasons), is_error=True)
    if found.node is not None:
        return _place(framework, found)
    result = framework.run_post_filters(found.diagnosis.cycle, found.diagnosis)
    message = failure(found.diagnosis, ", ".join(result.status.reasons))
    framework.nominate(pod, result)
    if result.nominated is None:
        return Decision(pod, None, message)
    again = examine(framework, pod)
    decision = Decision(pod, None, message) if again.node is None else _place(framework, again)
    return replace(decision, victims=result.victims)


def _place(framework: Framework, found: Scored) -> Decision:
    cycle = found.diagnosis.cycle
    assert found.node is not None
    status = framework.place(cycle, found.node)
    tied = found.tied if framework.profile.release.ties_by_chance else ()
    if status is not None and status.code is Code.WAIT:
        return Decision(cycle.pod, found.node, "; ".join(status.reasons), waits=True, tied=tied)
    if status is not None:
        return Decision(cycle.pod, None, "; ".join(status.reasons))
    return Decision(cycle.pod, found.node, tied=tied)


def schedule(
    framework: Framework, pods: Sequence[Pod], others: Mapping[str, Framework] = MappingProxyType({})
) -> Iterable[Decision]:
    """Schedule pods in the order of the queue.

    The victims of a preemption are deleted. Where a controller replaces one, its successor enters the queue under the
    same name; any other victim is decided about once more: it is gone.

    A pod that Permit plugins let wait is decided about when they have allowed or rejected it. There is no clock: those
    that still wait when the queue is empty run into their time-outs, the shortest first, and are not tried again.

    Parameters
    ----------
    others
        The frameworks of the other profiles of the same scheduler, on the same cluster state, by scheduler name. All
        profiles sort the queue alike.
    """
    key = framework.queue_sort[0].queue_key
    queue: list[tuple[tuple[Any, ...], int, Pod, Pod | None]] = [
        (key(pod), entry, pod, None) for entry, pod in enumerate(in_turn(framework, pods))
    ]
    entered = len(queue)
    while queue or len(framework.state.waiting):
        if not queue:
            framework.state.waiting.expire()
            yield from _no_longer_waiting(framework, others)
            continue
        _, _, pod, preemptor = heapq.heappop(queue)
        own = others.get(pod.spec.scheduler_name, framework)
        decision = schedule_one(own, pod)
        if not decision.waits:
            yield replace(decision, preempted_by=preemptor) if preemptor is not None else decision
        for victim in decision.victims:
            if reason := not_replaced(own, victim, others):
                yield Decision(victim, None, f"preempted by {pod.key}; {reason}", preempted_by=pod)
            else:
                heapq.heappush(queue, (key(victim), entered, victim, pod))
                entered += 1
        yield from _no_longer_waiting(framework, others)


def _no_longer_waiting(framework: Framework, others: Mapping[str, Framework]) -> Iterable[Decision]:
    """Bind or give up the pods whose Permit plugins have decided."""
    while (waiting := framework.state.waiting.take_decided()) is not None:
        pod = waiting.cycle.pod
        status = others.get(pod.spec.scheduler_name, framework).finish(waiting)
        yield Decision(pod, waiting.node) if status is None else Decision(pod, None, "; ".join(status.reasons))


def in_turn(framework: Framework, pods: Sequence[Pod]) -> list[Pod]:
    """Return pods in the order of the queue. They enter it in the order of their creation."""
    arrived = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp or "")
    return sorted(arrived, key=framework.queue_sort[0].queue_key)


def not_replaced(
    framework: Framework, victim: Pod, others: Mapping[str, Framework] = MappingProxyType({})
) -> str | None:
    """Return why nothing of a victim comes back to this queue, or ``None`` if its successor does."""
    controller = victim.metadata.controller
    if controller is None:
        return "no controller replaces it"
    if controller.kind == "Node":
        return "a static pod is the business of its kubelet"
    if victim.terminating:
        return "it was terminating"
    if victim.spec.scheduler_name not in {framework.profile.scheduler_name, *others}:
        return f"its successor is the business of scheduler {victim.spec.scheduler_name}"
    return None


def failure(diagnosis: Diagnosis, hint: str = "") -> str:
    """Say why no node is feasible: how many nodes failed for which reason, and what PostFilter made of it."""
    reasons = ", ".join(diagnosis.summary())
    said = (
        f"0/{len(diagnosis.nodes)} nodes are available: {reasons}."
        if reasons
        else "no nodes available to schedule pods"
    )
    return f"{said} {hint}" if hint else said
