"""What kube-scheduler would do with the pods of a snapshot, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from models.kubernetes import Pod
from models.snapshot import Snapshot
from plugins_compat.admission import standing
from plugins_compat.framework.framework import Framework
from plugins_compat.framework.profile import Profile
from plugins_compat.framework.scheduler import Decision, schedule
from plugins_compat.framework.shapes import Shapes
from plugins_compat.framework.state import ClusterState


@dataclass(frozen=True, slots=True)
class Simulation:
    """The scheduler's decisions, in the order it made them.

    Parameters
    ----------
    where
        Node name by pod key of every pod that has a node at the end, those that had one at the beginning included.
    complete
        Whether every pod was tried; ``False`` after an interruption.
    """

    decisions: Sequence[Decision]
    where: Mapping[str, str]
    complete: bool


def simulate(
    snapshot: Snapshot,
    profile: Profile,
    queue: Sequence[Pod],
    standing_at: Mapping[str, str],
    *,
    shapes: Shapes | None = None,
    seed: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> Simulation:
    """Schedule pods onto a cluster.

    Every node is scored, and a pod that finds none is not tried again; pods are not preempted.

    Parameters
    ----------
    queue
        Pods to schedule, in order of arrival; the profile's queue sort plugin decides whose turn it is.
    standing_at
        Node name by pod key of the pods that stand already.
    stopped
        Asked before every pod; ``True`` ends the simulation.
    """
    state = ClusterState(snapshot, profile.release, shapes)
    for pod, node in standing(snapshot, standing_at):
        state.assume(state.shapes.of(pod), node)
    framework = Framework(profile, state, seed)
    where = dict(standing_at)
    decisions: list[Decision] = []
    for decision in schedule(framework, queue):
        decisions.append(decision)
        if decision.node is not None:
            where[decision.pod.key] = snapshot.nodes[decision.node].name
        if stopped():
            break
    return Simulation(decisions, where, len(decisions) == len(queue))
