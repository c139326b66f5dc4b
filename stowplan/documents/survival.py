"""The document of ``survive``: what the loss of each domain comes to, and the moves after which it comes to nothing."""

from __future__ import annotations

from typing import Literal

from stowplan.documents.solution import snapshot_document
from stowplan.models.document import API_VERSION, Document
from stowplan.models.plan import PodReference
from stowplan.models.settings import Settings, SettingsDocument
from stowplan.models.solution import SnapshotDocument
from stowplan.planning.domain_loss import Loss
from stowplan.planning.fit import UnscheduledPod
from stowplan.planning.survive import Survival, Survivor
from stowplan.plans.document import reference
from stowplan.settings.problem import settings_document


class PendingPodDocument(Document):
    """A pod without a node, and why."""

    pod: PodReference
    reason: str


class LossDocument(Document):
    """What a lost domain comes to if no other pod moves; ``impossible`` is how many pods are pending whatever moves."""

    domain: str
    nodes: tuple[str, ...]
    displaced: int
    pending: tuple[PendingPodDocument, ...]
    at_least: int
    proven: bool
    left_by_scheduler: int
    unknown: tuple[PendingPodDocument, ...]
    impossible: int


class SurvivalMoveDocument(Document):
    """A pod that moves to another node."""

    pod: PodReference
    source: str
    target: str


class SurvivorDocument(Document):
    """Moves after which no pod is pending whichever of the domains is lost, and how many it takes at least."""

    moves: tuple[SurvivalMoveDocument, ...]
    least_moves: int
    proven: bool


class SurvivalDocument(Document):
    """What the loss of each domain comes to; ``untried`` are those that there was no time for."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Survival"] = "Survival"
    snapshot: SnapshotDocument
    settings: SettingsDocument
    key: str
    survives: bool
    losses: tuple[LossDocument, ...]
    untried: tuple[str, ...]
    survivor: SurvivorDocument | None


def survival_document(found: Survival, settings: Settings) -> SurvivalDocument:
    """Describe what the loss of each domain comes to; ``settings`` are those that it was found with."""
    return SurvivalDocument(
        snapshot=snapshot_document(found.compiled),
        settings=settings_document(found.compiled, settings),
        key=found.key,
        survives=found.survives,
        losses=tuple(_loss(loss, found.impossible.get(loss.domain.name, 0)) for loss in found.losses),
        untried=tuple(domain.name for domain in found.untried),
        survivor=None if found.survivor is None else _survivor(found.survivor),
    )


def _loss(loss: Loss, impossible: int) -> LossDocument:
    return LossDocument(
        domain=loss.domain.name,
        nodes=tuple(loss.domain.nodes),
        displaced=loss.displaced,
        pending=tuple(map(_pending, loss.pending)),
        at_least=loss.at_least,
        proven=loss.proven,
        left_by_scheduler=loss.left,
        unknown=tuple(map(_pending, loss.unknown)),
        impossible=impossible,
    )


def _pending(one: UnscheduledPod) -> PendingPodDocument:
    return PendingPodDocument(pod=reference(one.pod), reason=one.reason)


def _survivor(survivor: Survivor) -> SurvivorDocument:
    return SurvivorDocument(
        moves=tuple(
            SurvivalMoveDocument(pod=reference(move.pod), source=move.source, target=move.target)
            for move in survivor.moves
        ),
        least_moves=survivor.least,
        proven=survivor.proven,
    )
