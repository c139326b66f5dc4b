"""Solution documents: how one is made and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from stowplan.answers.parts import TierPart
from stowplan.answers.solve import Solution
from stowplan.documents.reading import another_kind, kind_of, read_content
from stowplan.models.result import TierOutcome, improvement_reached
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Participation
from stowplan.models.solution import (
    PlacementDocument,
    PodsDocument,
    RefusalDocument,
    SnapshotDocument,
    SolutionDocument,
    TierDocument,
    TierPartDocument,
    ViolationDocument,
)
from stowplan.models.validation import refusal
from stowplan.optimizer.evaluate import ConstraintViolation
from stowplan.plugins_compat.admission import Rejection
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.problem import settings_document


def snapshot_document(compiled: Compiled) -> SnapshotDocument:
    """Describe the snapshot."""
    participants = compiled.participants
    pods = PodsDocument(
        total=len(participants.pods),
        **{standing.value: participants.count(standing) for standing in Participation},
        fixed_because=dict(participants.reasons(Participation.FIXED)),
        pending_because=dict(participants.reasons(Participation.PENDING)),
    )
    snapshot = compiled.snapshot
    return SnapshotDocument(
        gaps=snapshot.gaps,
        nodes=len(snapshot.nodes),
        pods=pods,
        fingerprint=snapshot.fingerprint,
        notes=snapshot.notes,
    )


def solution_document(solution: Solution, settings: Settings) -> SolutionDocument:
    """Describe a solution.

    Parameters
    ----------
    solution
        The solution.
    settings
        Settings that it was found with.
    """
    compiled, outcome = solution.compiled, solution.outcome
    waiting = {pod.key: message for pod, message in solution.waiting}
    return SolutionDocument(
        snapshot=snapshot_document(compiled),
        settings=settings_document(compiled, settings),
        status=outcome.status,
        interrupted=outcome.interrupted,
        seconds=outcome.seconds,
        moves=solution.evaluation.moves,
        tiers=tier_documents(outcome.tiers, solution.before.values, solution.parts),
        placements=tuple(
            PlacementDocument(
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.metadata.uid,
                source=pod.node_name or None,
                node=solution.assignment.get(pod.key),
                why_not=waiting.get(pod.key),
                loses=solution.losses.get(pod.key, ()),
            )
            for pod in compiled.pods
        ),
        violations=tuple(violation_document(violation) for violation in solution.evaluation.violations),
        refused=tuple(refusal_document(rejection) for rejection in solution.refused),
        notes=(*compiled.notes, *solution.notes),
    )


def tier_documents(
    tiers: Sequence[TierOutcome], before: Sequence[int], parts: Sequence[Sequence[TierPart]] = ()
) -> tuple[TierDocument, ...]:
    """Describe tiers, beside their values today, and what they are made of where that is known."""
    return tuple(
        TierDocument(
            name=outcome.tier.name,
            unit=outcome.tier.unit,
            value=outcome.tier.shown(outcome.value),
            bound=outcome.tier.shown(outcome.bound),
            gap=outcome.gap,
            status=outcome.status,
            bound_by=outcome.bound_by,
            before=outcome.tier.shown(before[t]),
            improvement=improvement_reached(before, tiers, t),
            parts=tuple(
                TierPartDocument(
                    name=part.name,
                    today=outcome.tier.shown_difference(part.before),
                    value=outcome.tier.shown_difference(part.after),
                    change=outcome.tier.shown_difference(part.change),
                )
                for part in (parts[t] if parts else ())
            ),
        )
        for t, outcome in enumerate(tiers)
    )


def violation_document(violation: ConstraintViolation) -> ViolationDocument:
    """Describe a constraint violation."""
    return ViolationDocument(
        rule=str(violation.origin), place=violation.place, amount=violation.amount, before=violation.before
    )


def refusal_document(rejection: Rejection) -> RefusalDocument:
    """Describe a refusal."""
    pod, status = rejection.pod, rejection.status
    return RefusalDocument(
        namespace=pod.namespace,
        name=pod.name,
        node=rejection.node,
        plugin=status.plugin,
        reasons=tuple(status.reasons),
    )


def read_solution(path: str) -> SolutionDocument:
    """Read a solution, or the solution inside a comparison, from JSON or YAML, plain or gzip; ``-`` is standard input.

    Raises
    ------
    InputError
        With the field that cannot be used.
    """
    return parse_solution(read_content(path), path)


def parse_solution(content: Any, path: str, wanted: str = "Solution or Comparison") -> SolutionDocument:
    """Return the solution that a document holds, or raise as `read_solution` does.

    Parameters
    ----------
    path, wanted
        Named in errors: where the document was read, and which kinds would do.
    """
    kind = kind_of(content)
    if kind == "Comparison":
        content = content.get("solution")
    elif kind != "Solution":
        raise another_kind(path, content, wanted)
    try:
        return SolutionDocument.model_validate(content)
    except ValidationError as error:
        raise refusal(error, path) from None
