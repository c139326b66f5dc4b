"""The documents of verifications."""

from __future__ import annotations

from typing import Literal

from stowplan.answers.verify_plan import PlanVerification
from stowplan.answers.verify_solution import Verification
from stowplan.documents.solution import refusal_document
from stowplan.models.document import API_VERSION, Document
from stowplan.models.solution import RefusalDocument


class VerificationDocument(Document):
    """Result of verifying a solution."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Verification"] = "Verification"
    holds: bool
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    tiers: dict[str, float]
    refused: tuple[RefusalDocument, ...]


class PlanVerificationDocument(Document):
    """Result of verifying a plan; ``done`` and ``open`` are ids of moves."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["PlanVerification"] = "PlanVerification"
    plan: str
    holds: bool
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    done: tuple[str, ...]
    open: tuple[str, ...]


def verification_document(verification: Verification) -> VerificationDocument:
    """Describe a verification."""
    tiers = zip(verification.compiled.problem.tiers, verification.evaluation.values, strict=True)
    return VerificationDocument(
        holds=verification.holds,
        problems=tuple(verification.problems),
        remarks=tuple(verification.remarks),
        tiers={tier.name: tier.shown(value) for tier, value in tiers},
        refused=tuple(refusal_document(rejection) for rejection in verification.refused),
    )


def plan_verification_document(verification: PlanVerification) -> PlanVerificationDocument:
    """Describe a verification."""
    drift = verification.drift
    return PlanVerificationDocument(
        plan=verification.plan.id,
        holds=drift.holds,
        problems=tuple(drift.problems),
        remarks=tuple(drift.remarks),
        done=tuple(drift.done),
        open=tuple(drift.open),
    )
