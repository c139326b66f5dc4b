"""Placements side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from stowplan.answers.compare import Comparison
from stowplan.answers.figures import values
from stowplan.answers.ranking import RankedMove
from stowplan.documents.solution import solution_document, violation_document
from stowplan.models.document import API_VERSION, Document
from stowplan.models.plan import ProtectionDocument
from stowplan.models.settings import Settings
from stowplan.models.solution import SolutionDocument, ViolationDocument


class RankedMoveDocument(Document):
    """A move of the best placement.

    Parameters
    ----------
    why
        Purpose of the move.
    loses
        What is lost for good: data on the node, the work of a Job's pod.
    moves
        Number of pods that have left their node after this move and all before it.
    tiers
        Value of each tier then; null if the moves so far do not result in a legal placement.
    """

    namespace: str
    name: str
    uid: str
    source: str | None
    target: str | None
    why: str
    loses: tuple[str, ...] = ()
    moves: int
    tiers: dict[str, float] | None


class WorthDocument(Document):
    """Number of first moves that bring most of the improvement of a tier, and their share of it."""

    tier: str
    moves: int
    share: float


class ComparisonDocument(Document):
    """Placements side by side, and the solution itself.

    Parameters
    ----------
    solution
        The solution, as ``solve`` prints it.
    notes
        Notes on the placements.
    placements
        By placement, its figures: those of `stowplan.answers.figures`, as a tree by the parts of their keys.
    moves
        The moves of the best placement, those that bring most first.
    recommended_moves
        The number of moves that bring most of every improvement; null if that takes all of them.
    resolved
        Constraint violations of today that the best placement does not have.
    protections
        Cost of each eviction restriction, on request.
    worth
        For each tier that improves, the number of first moves that bring most of it, and their share.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Comparison"] = "Comparison"
    placements: dict[str, dict[str, Any]]
    moves: tuple[RankedMoveDocument, ...]
    worth: tuple[WorthDocument, ...]
    recommended_moves: int | None
    resolved: tuple[ViolationDocument, ...]
    solution: SolutionDocument
    protections: tuple[ProtectionDocument, ...] = ()
    notes: tuple[str, ...]


def comparison_document(comparison: Comparison, settings: Settings) -> ComparisonDocument:
    """Describe a comparison.

    Parameters
    ----------
    comparison
        The comparison.
    settings
        Settings that it was made with.
    """
    found = (*comparison.figures, *comparison.node_figures)
    return ComparisonDocument(
        placements={column.name: values(found, column.measures) for column in comparison.columns},
        moves=tuple(_move(one, comparison) for one in comparison.moves),
        worth=tuple(WorthDocument(tier=one.tier, moves=one.moves, share=one.share) for one in comparison.worth),
        recommended_moves=comparison.recommended_moves,
        resolved=tuple(violation_document(one) for one in comparison.resolved),
        solution=solution_document(comparison.solution, settings),
        protections=tuple(ProtectionDocument(**asdict(one)) for one in comparison.protections),
        notes=(*comparison.compiled.notes, *comparison.notes),
    )


def _move(one: RankedMove, comparison: Comparison) -> RankedMoveDocument:
    tiers = comparison.compiled.problem.tiers
    pod = one.move.pod
    return RankedMoveDocument(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.metadata.uid,
        source=one.move.source or None,
        target=one.move.target or None,
        why=comparison.why[pod.key],
        loses=comparison.solution.losses.get(pod.key, ()),
        moves=one.moves,
        tiers=one.values and {tier.name: tier.shown(value) for tier, value in zip(tiers, one.values, strict=True)},
    )
