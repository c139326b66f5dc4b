"""Placements side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from stowplan.answers.compare import Comparison
from stowplan.answers.measures import Measures
from stowplan.documents.solution import SolutionDocument, solution_document
from stowplan.models.document import API_VERSION, Document
from stowplan.settings.settings import Settings


class UsageDocument(Document):
    """How a resource is used: totals in scheduler units, the rest as fractions."""

    requested: int
    allocatable: int
    mean: float
    deviation: float
    plain_deviation: float
    highest: float


class ScoresDocument(Document):
    """Mean final-state scores per pod, by plugin."""

    by_plugin: dict[str, float]
    total: float
    scored: int
    pods: int


class MeasuresDocument(Document):
    """Figures of one placement."""

    placed: int
    pending: int
    moves: int
    tiers: dict[str, float]
    refused: int
    exceeded: int
    nodes_in_use: int
    usage: dict[str, UsageDocument]
    scores: ScoresDocument | None


class ComparisonDocument(Document):
    """Placements side by side, and the solution itself."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Comparison"] = "Comparison"
    placements: dict[str, MeasuresDocument]
    solution: SolutionDocument
    notes: tuple[str, ...]


def comparison_document(comparison: Comparison, settings: Settings) -> ComparisonDocument:
    """Describe a comparison."""
    tiers = comparison.compiled.problem.tiers
    return ComparisonDocument(
        placements={
            column.name: measures_document(
                column.measures,
                {tier.name: tier.shown(value) for tier, value in zip(tiers, column.measures.values, strict=True)},
            )
            for column in comparison.columns
        },
        solution=solution_document(comparison.solution, settings),
        notes=(*comparison.compiled.notes, *comparison.notes),
    )


def measures_document(measures: Measures, tiers: Mapping[str, float]) -> MeasuresDocument:
    """Describe the figures of a placement."""
    scores = measures.scores
    return MeasuresDocument(
        placed=measures.placed,
        pending=measures.pending,
        moves=measures.moves,
        tiers=dict(tiers),
        refused=len(measures.refused),
        exceeded=len(measures.violations),
        nodes_in_use=measures.nodes_in_use,
        usage={
            usage.resource: UsageDocument(
                requested=usage.requested,
                allocatable=usage.allocatable,
                mean=usage.mean,
                deviation=usage.deviation,
                plain_deviation=usage.plain_deviation,
                highest=usage.highest,
            )
            for usage in measures.usage
        },
        scores=scores
        and ScoresDocument(
            by_plugin=dict(scores.by_plugin), total=scores.total, scored=scores.scored, pods=scores.pods
        ),
    )
