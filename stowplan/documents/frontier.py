"""The document of a frontier."""

from __future__ import annotations

from typing import Literal

from stowplan.answers.frontier import Frontier
from stowplan.documents.solution import snapshot_document, tier_documents
from stowplan.models.document import API_VERSION, Document
from stowplan.models.settings import Settings, SettingsDocument
from stowplan.models.solution import SnapshotDocument, TierDocument
from stowplan.settings.problem import settings_document


class PointDocument(Document):
    """The best placement found for a limit on moves; ``limit`` is null without a limit."""

    limit: int | None
    moves: int
    share: float | None
    proven: bool
    tiers: tuple[TierDocument, ...]


class FrontierDocument(Document):
    """Points by rising limit on moves, none worse than the one before.

    Parameters
    ----------
    before
        Value of each tier today.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Frontier"] = "Frontier"
    snapshot: SnapshotDocument
    settings: SettingsDocument
    complete: bool
    before: dict[str, float]
    points: tuple[PointDocument, ...]


def frontier_document(frontier: Frontier, settings: Settings) -> FrontierDocument:
    """Describe a frontier."""
    compiled = frontier.compiled
    return FrontierDocument(
        snapshot=snapshot_document(compiled),
        settings=settings_document(compiled, settings),
        complete=frontier.complete,
        before={t.name: t.shown(v) for t, v in zip(compiled.problem.tiers, frontier.before, strict=True)},
        points=tuple(
            PointDocument(
                limit=point.limit,
                moves=point.moves,
                share=point.share,
                proven=point.proven,
                tiers=tier_documents(point.tiers, frontier.before),
            )
            for point in frontier.points
        ),
    )
