"""What kube-scheduler would do with the pods of a snapshot, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.models.words import plural
from stowplan.plugins_compat.admission import standing
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.scheduler import Decision, schedule
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState


@dataclass(frozen=True, slots=True)
class Preemption:
    """A pod that had to leave its node for another."""

    victim: Pod
    preemptor: Pod
    node: str


@dataclass(frozen=True)
class Simulation:
    """The scheduler's decisions, in the order it made them.

    Parameters
    ----------
    decisions
        A pod that is preempted and comes back to the queue is decided about again.
    assignment
        Every pod that has a node at the end, those that had one at the beginning included.
    complete
        Whether every pod was tried; ``False`` after an interruption.
    preemptions
        Every pod that had to leave a node, in the order it happened.
    """

    decisions: Sequence[Decision]
    assignment: Assignment
    complete: bool
    preemptions: Sequence[Preemption] = ()

    def __repr__(self) -> str:
        state = "" if self.complete else ", interrupted"
        return f"<Simulation: {self.scheduled:,} of {plural(len(self.outcomes), 'pod')} scheduled{state}>"

    @cached_property
    def outcomes(self) -> Mapping[str, Decision]:
        """The last word on each pod that was decided about, by pod key."""
        return {decision.pod.key: decision for decision in self.decisions}

    @cached_property
    def scheduled(self) -> int:
        """Of the pods that were decided about, how many have a node at the end."""
        return sum(1 for key in self.outcomes if key in self.assignment)


def simulate(
    snapshot: Snapshot,
    profile: Profile,
    queue: Sequence[Pod],
    start: Mapping[str, str],
    *,
    signatures: Signatures | None = None,
    seed: int = 0,
    preempts: bool = True,
    stopped: Callable[[], bool] = lambda: False,
) -> Simulation:
    """Schedule pods onto a cluster, each by the profile that it names.

    Every node is scored, and a pod that finds none is not tried again. A pod that preempts others takes their place at
    once; of these, those that a controller replaces go back to the queue, and the others are gone.

    Parameters
    ----------
    snapshot, profile
        The cluster and the scheduler's plugins.
    signatures
        Signatures of the snapshot's pods, if computed already.
    seed
        Seed of random choices, such as ties between nodes.
    queue
        Pods to schedule, in order of arrival; the profile's queue sort plugin decides whose turn it is.
    start
        Node name by pod key of the pods that have a node already.
    preempts
        ``False`` leaves PostFilter plugins out, as in a profile that disables them.
    stopped
        Asked before every pod; ``True`` ends the simulation.
    """
    state = ClusterState(snapshot, profile.release, signatures)
    for pod, node in standing(snapshot, start):
        state.put(pod, node)
    state.nominator.nominate_pending(queue, snapshot.node_index)
    framework = Framework(profile, state, seed)
    others = {other.scheduler_name: Framework(other, state, seed) for other in profile.siblings}
    if not preempts:
        for each in (framework, *others.values()):
            each.post_filters = []
    node_of = dict(start)
    decisions: list[Decision] = []
    preemptions: list[Preemption] = []
    for decision in schedule(framework, queue, others):
        decisions.append(decision)
        preemptions += [Preemption(v, decision.pod, node_of.pop(v.key)) for v in decision.victims]
        if decision.node is not None:
            node_of[decision.pod.key] = snapshot.nodes[decision.node].name
        if stopped():
            return Simulation(decisions, Assignment(node_of), _all_decided(decisions, queue), preemptions)
    return Simulation(decisions, Assignment(node_of), True, preemptions)


def _all_decided(decisions: Sequence[Decision], queue: Sequence[Pod]) -> bool:
    """Whether an interruption came when nothing was left to do: no pod is pending, and none was preempted since."""
    last = {decision.pod.key: i for i, decision in enumerate(decisions)}
    waiting = any(pod.key not in last for pod in queue)
    driven = any(last.get(victim.key, -1) < i for i, decision in enumerate(decisions) for victim in decision.victims)
    return not waiting and not driven
