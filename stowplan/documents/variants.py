"""Several schedulers and objectives side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from stowplan.answers.variants import SideBySide
from stowplan.documents.comparison import ComparisonDocument, comparison_document
from stowplan.models.document import API_VERSION, Document
from stowplan.models.settings import Settings


class VariantFigureDocument(Document):
    """One figure of all placements; ``figure`` is its path, joined with dots, and null says nothing of a placement."""

    figure: str
    unit: str
    values: dict[str, float | None]


class VariantDocument(Document):
    """A comparison for one scheduler and one objective."""

    scheduler: str
    objective: str
    comparison: ComparisonDocument


class VariantsDocument(Document):
    """Comparisons of one snapshot, and one table of them."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Comparisons"] = "Comparisons"
    table: tuple[VariantFigureDocument, ...]
    comparisons: tuple[VariantDocument, ...]


def variants_document(found: SideBySide, settings: Sequence[Settings]) -> VariantsDocument:
    """Describe comparisons; ``settings`` are those of each."""
    return VariantsDocument(
        table=tuple(
            VariantFigureDocument(
                figure=".".join(one.key), unit=one.unit, values=dict(zip(found.titles, one.values, strict=True))
            )
            for one in found.figures
        ),
        comparisons=tuple(
            VariantDocument(
                scheduler=variant.scheduler,
                objective=variant.objective,
                comparison=comparison_document(variant.comparison, own),
            )
            for variant, own in zip(found.variants, settings, strict=True)
        ),
    )
