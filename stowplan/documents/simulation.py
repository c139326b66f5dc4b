"""What the scheduler decided about each pod."""

from __future__ import annotations

from typing import Literal

from stowplan.documents.solution import snapshot_document
from stowplan.models.document import API_VERSION, Document
from stowplan.models.solution import SnapshotDocument
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.simulate import Simulation


class DecisionDocument(Document):
    """Decision on one pod.

    ``preempts`` names its victims, as ``namespace/name``; ``tied`` names other nodes with the same score, any of which
    the scheduler may take instead.
    """

    namespace: str
    name: str
    node: str | None
    message: str
    preempts: tuple[str, ...] = ()
    preempted_by: str | None = None
    tied: tuple[str, ...] = ()


class PreemptionDocument(Document):
    """A preempted pod; ``target`` is its node at the end."""

    victim: str
    preemptor: str
    node: str
    target: str | None


class SimulationDocument(Document):
    """The scheduler's decisions, in the order it made them.

    A pod that was preempted and came back to the queue has more than one; ``scheduled`` and ``unscheduled`` count pods.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Simulation"] = "Simulation"
    snapshot: SnapshotDocument
    release: str
    from_empty: bool
    scheduled: int
    unscheduled: int
    decisions: tuple[DecisionDocument, ...]
    preemptions: tuple[PreemptionDocument, ...] = ()


def simulation_document(compiled: Compiled, simulation: Simulation, from_empty: bool) -> SimulationDocument:
    """Describe a simulation."""
    names = [node.name for node in compiled.snapshot.nodes]
    return SimulationDocument(
        snapshot=snapshot_document(compiled),
        release=compiled.profile.release.name,
        from_empty=from_empty,
        scheduled=simulation.scheduled,
        unscheduled=len(simulation.outcomes) - simulation.scheduled,
        decisions=tuple(
            DecisionDocument(
                namespace=d.pod.namespace,
                name=d.pod.name,
                node=names[d.node] if d.node is not None else None,
                message=d.message,
                preempts=tuple(victim.key for victim in d.victims),
                preempted_by=d.preempted_by.key if d.preempted_by is not None else None,
                tied=tuple(names[node] for node in d.tied),
            )
            for d in simulation.decisions
        ),
        preemptions=tuple(
            PreemptionDocument(
                victim=preemption.victim.key,
                preemptor=preemption.preemptor.key,
                node=preemption.node,
                target=simulation.assignment.get(preemption.victim.key),
            )
            for preemption in simulation.preemptions
        ),
    )
