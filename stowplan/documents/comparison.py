"""Placements side by side."""

from __future__ import annotations

from typing import Any, Literal

from stowplan.answers.compare import Comparison
from stowplan.answers.figures import values
from stowplan.documents.solution import solution_document
from stowplan.models.document import API_VERSION, Document
from stowplan.models.settings import Settings
from stowplan.models.solution import SolutionDocument


class ComparisonDocument(Document):
    """Placements side by side, and the solution itself.

    Parameters
    ----------
    placements
        By placement, its figures: those of `stowplan.answers.figures`, as a tree by the parts of their keys.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Comparison"] = "Comparison"
    placements: dict[str, dict[str, Any]]
    solution: SolutionDocument
    notes: tuple[str, ...]


def comparison_document(comparison: Comparison, settings: Settings) -> ComparisonDocument:
    """Describe a comparison."""
    return ComparisonDocument(
        placements={column.name: values(comparison.figures, column.measures) for column in comparison.columns},
        solution=solution_document(comparison.solution, settings),
        notes=(*comparison.compiled.notes, *comparison.notes),
    )
