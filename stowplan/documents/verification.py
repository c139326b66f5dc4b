"""What a check of a solution, or of a plan, found."""

from __future__ import annotations

from typing import Literal

from stowplan.documents.solution import RefusalDocument
from stowplan.models.document import API_VERSION, Document


class VerificationDocument(Document):
    """What a check found."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Verification"] = "Verification"
    holds: bool
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    tiers: dict[str, float]
    refused: tuple[RefusalDocument, ...]


class PlanVerificationDocument(Document):
    """What a check of a plan found; ``done`` and ``open`` are ids of moves."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["PlanVerification"] = "PlanVerification"
    plan: str
    holds: bool
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    done: tuple[str, ...]
    open: tuple[str, ...]
