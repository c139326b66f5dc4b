"""What keeps a node from being emptied, pod by pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.explaining.node_results import without
from stowplan.models.kubernetes import Pod
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.run import Progress, silent
from stowplan.planning.drain import Drained, drain, draining
from stowplan.planning.plan import planning_problem
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.scheduler import failure
from stowplan.settings.terms import Terms


@dataclass(frozen=True, slots=True)
class Occupant:
    """A pod on the node.

    Parameters
    ----------
    admitting
        Number of other nodes that admit it, with all other pods where they are.
    target
        Its node at the end of the plan that empties as much as it can; ``None`` if it stays.
    reason
        Why it stays.
    by_rule
        Whether it stays because it cannot or must not be evicted, rather than for lack of room.
    """

    pod: Pod
    admitting: int
    target: str | None
    reason: str
    by_rule: bool


@dataclass(frozen=True, eq=False)
class NodeExplanation:
    """Why a node can or cannot be emptied.

    Parameters
    ----------
    node
        Name of the node.
    drained
        The cheapest plan that empties it as far as that goes.
    occupants
        The pods on it that count: those that stay first, but for pods that belong to the node.
    """

    node: str
    drained: Drained
    occupants: Sequence[Occupant]

    def __repr__(self) -> str:
        staying = sum(occupant.target is None for occupant in self.occupants)
        return f"<NodeExplanation {self.node}: {staying} of {len(self.occupants)} pods stay>"


def explain_node(
    snapshot: Snapshot,
    node: str,
    settings: Settings,
    options: Options,
    *,
    compiled: Compiled | None = None,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> NodeExplanation:
    """Explain what keeps a node from being emptied.

    Parameters
    ----------
    node
        Its name.
    options
        Of the search for the cheapest plan that empties it.
    compiled
        Result of `node_problem`, if computed already.

    Raises
    ------
    InputError
        If the node is not in the snapshot, or a setting cannot be used.
    """
    terms = Terms()
    compiled = compiled or node_problem(snapshot, node, settings)
    drained = drain(
        snapshot,
        [node],
        settings,
        options,
        terms,
        compiled=compiled,
        stop=stop,
        progress=progress,
        backend=backend,
    )
    staying = {one.pod.key: one for one in drained.stays}
    free = {pod.key for pod in compiled.pods}
    occupants = []
    for pod in compiled.snapshot.pods:
        if pod.node_name != node or pod.finished or (pod.key not in staying and pod.key not in free):
            continue
        framework = without(compiled.snapshot, compiled.profile, pod, compiled.signatures)
        diagnosis = framework.run_filters(framework.cycle(pod))
        names = [compiled.snapshot.nodes[n].name for n in diagnosis.feasible.tolist()]
        admitting = sum(name != node for name in names) if diagnosis.rejected is None else 0
        one = staying.get(pod.key)
        target = drained.planned.assignment.get(pod.key) if one is None else None
        reason = one.reason if one is not None else ""
        if one is not None and not one.by_rule and not admitting:
            reason = failure(diagnosis)
        occupants.append(Occupant(pod, admitting, target, reason, one is not None and one.by_rule))
    occupants.sort(key=lambda occupant: (occupant.target is not None, occupant.pod.key))
    return NodeExplanation(node, drained, occupants)


def node_problem(snapshot: Snapshot, node: str, settings: Settings) -> Compiled:
    """Return the problem whose answer empties a node.

    Raises
    ------
    InputError
        If the node is not in the snapshot, or a setting cannot be used.
    """
    return planning_problem(snapshot, draining(settings, [node]), Terms())
