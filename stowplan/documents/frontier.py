"""The document of a frontier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from stowplan.answers.frontier import Frontier, Point
from stowplan.documents.solution import snapshot_document, tier_documents
from stowplan.models.document import API_VERSION, Document
from stowplan.models.settings import Settings, SettingsDocument
from stowplan.models.solution import SnapshotDocument, TierDocument
from stowplan.settings.problem import settings_document


class PointDocument(Document):
    """The best placement found for a limit on moves; ``limit`` is null without a limit.

    Parameters
    ----------
    share
        The least share of the gain without a limit; null where nothing gains.
    shares
        The share of each tier that gains, by name.
    """

    limit: int | None
    moves: int
    share: float | None
    shares: dict[str, float]
    proven: bool
    tiers: tuple[TierDocument, ...]


class FrontierDocument(Document):
    """Points by rising limit on moves, none worse than the one before.

    Parameters
    ----------
    before
        Value of each tier today.
    recommended_moves
        The fewest moves of a point that brings most of every gain; null where nothing gains.
    nested
        On request, a point for each of ``points`` whose moves begin with those of the one before; null otherwise.
    nesting_loss
        By how much these are behind at most, as a share of the gain.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Frontier"] = "Frontier"
    snapshot: SnapshotDocument
    settings: SettingsDocument
    complete: bool
    before: dict[str, float]
    points: tuple[PointDocument, ...]
    recommended_moves: int | None = None
    nested: tuple[PointDocument, ...] | None = None
    nesting_loss: float | None = None


def frontier_document(frontier: Frontier, settings: Settings) -> FrontierDocument:
    """Describe a frontier."""
    compiled = frontier.compiled
    return FrontierDocument(
        snapshot=snapshot_document(compiled),
        settings=settings_document(compiled, settings),
        complete=frontier.complete,
        before={t.name: t.shown(v) for t, v in zip(compiled.problem.tiers, frontier.before, strict=True)},
        points=_points(frontier, frontier.points),
        recommended_moves=None if frontier.recommended is None else frontier.recommended.moves,
        nested=_points(frontier, frontier.nested) if frontier.nested else None,
        nesting_loss=frontier.nesting_loss if frontier.nested else None,
    )


def _points(frontier: Frontier, points: Sequence[Point]) -> tuple[PointDocument, ...]:
    return tuple(
        PointDocument(
            limit=point.limit,
            moves=point.moves,
            share=point.share,
            shares={point.tiers[t].tier.name: share for t, share in point.shares.items()},
            proven=point.proven,
            tiers=tier_documents(point.tiers, frontier.before),
        )
        for point in points
    )
