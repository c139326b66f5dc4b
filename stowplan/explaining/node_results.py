"""What kube-scheduler says of one pod on every node: the first filter that refuses it, or the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.diagnosis import Diagnosis
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.scheduler import Scored, examine
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.status import Code


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What kube-scheduler says of a pod on one node.

    Parameters
    ----------
    plugin
        The first filter that refuses the pod; empty if none does.
    reasons
        Why, in upstream's words.
    scores
        Weighted, normalized score by plugin, in points, if all filters admit the pod.
    total
        Their sum, with what extenders add; ``None`` if a filter refuses the pod.
    """

    node: str
    plugin: str = ""
    reasons: Sequence[str] = ()
    scores: Mapping[str, float] | None = None
    total: float | None = None

    @property
    def admitted(self) -> bool:
        """Whether all filters admit the pod."""
        return self.total is not None


def own_profile(profile: Profile, pod: Pod) -> Profile:
    """Return the profile that a pod names, or the first one if none of these is."""
    names = (one for one in (profile, *profile.siblings) if one.scheduler_name == pod.spec.scheduler_name)
    return next(names, profile)


def without(snapshot: Snapshot, profile: Profile, pod: Pod, signatures: Signatures | None = None) -> Framework:
    """Return a framework on today's cluster from which one pod was taken, with the profile that the pod names."""
    rest = snapshot.assignment.without([pod.key]) if pod.node_name else snapshot.assignment
    return populated(snapshot, own_profile(profile, pod), Assignment(rest), signatures)


def node_results(framework: Framework, pod: Pod) -> tuple[Scored, list[NodeResult]]:
    """Return what a cycle of the pod finds, and the result on each node looked at, in the snapshot's order."""
    found = examine(framework, pod, score_single=True)
    diagnosis = found.diagnosis
    feasible = {int(node): i for i, node in enumerate(diagnosis.feasible)}
    told: dict[int, NodeResult] = {}
    for position, node in enumerate(diagnosis.nodes.tolist()):
        name = framework.state.nodes[node].name
        if (i := feasible.get(node)) is None:
            told[node] = _refused(diagnosis, position, name)
        else:
            scores = {plugin: float(points[i]) for plugin, points in found.scores.items()}
            told[node] = NodeResult(name, scores=scores, total=float(found.total[i]) if len(found.total) else 0.0)
    return found, [told[node] for node in sorted(told)]


def _refused(diagnosis: Diagnosis, position: int, name: str) -> NodeResult:
    if diagnosis.rejected is not None:
        return NodeResult(name, diagnosis.rejected.plugin, tuple(diagnosis.rejected.reasons))
    status = diagnosis.why(position)
    return NodeResult(name, status.plugin or "extender", tuple(status.reasons))


def refused_everywhere(diagnosis: Diagnosis) -> bool:
    """Whether no node admits the pod."""
    return diagnosis.rejected is not None or not (diagnosis.codes == Code.SUCCESS).any()
