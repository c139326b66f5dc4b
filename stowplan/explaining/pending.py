"""What holds pending pods back: the filters that refuse them first, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stowplan.explaining.node_results import own_profile, refused_everywhere
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Participation
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.diagnosis import Diagnosis
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.status import Code

NOT_QUEUED = "not queued"
"""In place of a plugin: the pod is not offered to the scheduler, for the reason beside it."""


@dataclass(frozen=True, slots=True)
class FirstBroken:
    """A filter that refuses pending pods before any other, for one reason.

    Parameters
    ----------
    nodes
        Number of pairs of a pod and a node that it refuses first.
    pods
        Number of pods that it refuses first on some node.
    alone
        Number of pods that it refuses first on all nodes.
    """

    plugin: str
    reason: str
    nodes: int
    pods: int
    alone: int


@dataclass(frozen=True, eq=False)
class PendingExplanation:
    """What holds the pending pods of a snapshot back, with all pods that have a node where they are.

    Parameters
    ----------
    compiled
        The problem that the pods are part of.
    pending
        Pods without a node.
    admitted
        Those that some node admits today: kube-scheduler has not had its turn, or they get in each other's way.
    broken
        What refuses the others and them, the most frequent first.
    """

    compiled: Compiled
    pending: Sequence[Pod]
    admitted: Sequence[Pod]
    broken: Sequence[FirstBroken]

    def __repr__(self) -> str:
        return (
            f"<PendingExplanation: {len(self.pending)} pending pods, {len(self.admitted)} of them admitted somewhere>"
        )


def explain_pending(compiled: Compiled, *, stopped: Callable[[], bool] = lambda: False) -> PendingExplanation:
    """Count the filters that refuse pending pods first.

    Pods of one signature are asked about once.

    Parameters
    ----------
    stopped
        Asked before each pod; ``True`` ends with what was counted.
    """
    snapshot = compiled.snapshot
    frameworks: dict[str, Framework] = {}
    known: dict[tuple[str, int], tuple[bool, Counter[tuple[str, str]]]] = {}
    pending: list[Pod] = []
    admitted: list[Pod] = []
    nodes: Counter[tuple[str, str]] = Counter()
    pods: Counter[tuple[str, str]] = Counter()
    alone: Counter[tuple[str, str]] = Counter()
    for pod, participation, reason in zip(
        snapshot.pods, compiled.participants.participation, compiled.participants.reason, strict=True
    ):
        if participation is not Participation.PENDING or stopped():
            continue
        pending.append(pod)
        profile = own_profile(compiled.profile, pod)
        if pod.spec.scheduling_gates or pod.spec.scheduler_name not in compiled.profile.names:
            counts = Counter({(NOT_QUEUED, reason): len(snapshot.nodes)})
            somewhere = False
        else:
            of = profile.scheduler_name, compiled.signatures.of(pod).index
            if of not in known:
                name = profile.scheduler_name
                if name not in frameworks:
                    frameworks[name] = populated(snapshot, profile, snapshot.assignment, compiled.signatures)
                diagnosis = frameworks[name].run_filters(frameworks[name].cycle(pod))
                known[of] = not refused_everywhere(diagnosis), _first_broken(diagnosis)
            somewhere, counts = known[of]
        admitted += [pod] if somewhere else []
        nodes.update(counts)
        pods.update(counts.keys())
        alone.update(counts.keys() if len(counts) == 1 and not somewhere else ())
    broken = [FirstBroken(*key, nodes[key], pods[key], alone[key]) for key in nodes]
    broken.sort(key=lambda one: (-one.pods, -one.nodes, one.plugin, one.reason))
    return PendingExplanation(compiled, pending, admitted, broken)


def _first_broken(diagnosis: Diagnosis) -> Counter[tuple[str, str]]:
    """Count the nodes that each filter refuses first, by its first reason."""
    if (rejected := diagnosis.rejected) is not None:
        return Counter({(rejected.plugin, rejected.reasons[0] if rejected.reasons else ""): len(diagnosis.nodes)})
    counts: Counter[tuple[str, str]] = Counter()
    for position, code in enumerate(diagnosis.codes.tolist()):
        if code != Code.SUCCESS:
            status = diagnosis.why(position)
            counts[status.plugin or "extender", status.reasons[0] if status.reasons else ""] += 1
    return counts
