"""The document of ``what-if``: the scenario, the figures of both answers, and both solutions."""

from __future__ import annotations

from typing import Any, Literal

from stowplan.answers.what_if import WhatIf
from stowplan.documents.solution import solution_document
from stowplan.models.document import API_VERSION, Document
from stowplan.models.settings import Settings
from stowplan.models.solution import SolutionDocument


class DifferenceDocument(Document):
    """One figure; null where an answer does not have it."""

    figure: str
    unit: str
    unchanged: float | None
    what_if: float | None
    change: float | None


class PendingDocument(Document):
    """A pod without a node, and why."""

    pod: str
    reason: str


class RelocationDocument(Document):
    """A pod that the answers put on different nodes; null for no node, or no such pod."""

    pod: str
    unchanged: str | None
    what_if: str | None


class RoomDocument(Document):
    """How many placeholders there are, and how many of them have room."""

    wanted: int
    found: int


class WhatIfDocument(Document):
    """What a scenario changes."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["WhatIf"] = "WhatIf"
    scenario: dict[str, Any]
    effects: tuple[str, ...]
    figures: tuple[DifferenceDocument, ...]
    newly_pending: tuple[PendingDocument, ...]
    no_longer_pending: tuple[str, ...]
    headroom: RoomDocument | None
    relocations: tuple[RelocationDocument, ...]
    unchanged: SolutionDocument
    what_if: SolutionDocument


def what_if_document(found: WhatIf, settings: Settings) -> WhatIfDocument:
    """Describe what a scenario changes; ``settings`` are those without it."""
    return WhatIfDocument(
        scenario=found.scenario.model_dump(by_alias=True, exclude_defaults=True, mode="json"),
        effects=tuple(found.changed.effects),
        figures=tuple(
            DifferenceDocument(
                figure=one.name, unit=one.unit, unchanged=one.before, what_if=one.after, change=one.change
            )
            for one in found.figures
        ),
        newly_pending=tuple(PendingDocument(pod=key, reason=why) for key, why in found.newly_pending.items()),
        no_longer_pending=tuple(found.no_longer_pending),
        headroom=RoomDocument(wanted=len(found.placeholders), found=found.with_room) if found.placeholders else None,
        relocations=tuple(
            RelocationDocument(pod=one.key, unchanged=one.before, what_if=one.after) for one in found.relocations
        ),
        unchanged=solution_document(found.before, settings),
        what_if=solution_document(found.after, found.changed.settings),
    )
