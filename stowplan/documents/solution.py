"""The file format of a solution."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationError

from stowplan.answers.solve import Solution
from stowplan.documents.reading import another_kind, kind_of, read_content
from stowplan.models.document import API_VERSION, Document
from stowplan.models.result import TierOutcome
from stowplan.models.settings import Settings, SettingsDocument
from stowplan.models.snapshot import Participation
from stowplan.models.validation import refusal
from stowplan.optimizer.evaluate import ConstraintViolation
from stowplan.plugins_compat.admission import Rejection
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.problem import settings_document


class TierDocument(Document):
    """A tier: its value, what is proven, and how. ``bound`` holds given what the tiers above reached."""

    name: str
    unit: str
    value: float
    bound: float
    gap: float
    status: str
    bound_by: str


class PodsDocument(Document):
    """How many pods have which standing, and why; ``placed + pending + fixed + finished = total``."""

    total: int
    placed: int
    pending: int
    fixed: int
    finished: int
    fixed_because: dict[str, int]
    pending_because: dict[str, int]


class SnapshotDocument(Document):
    """Which snapshot an answer is about."""

    nodes: int
    pods: PodsDocument
    fingerprint: str
    notes: tuple[str, ...] = ()


class PlacementDocument(Document):
    """Where one pod goes: ``source`` is where it stands today; ``why_not`` is what keeps it from having a node."""

    namespace: str
    name: str
    uid: str = ""
    source: str | None = None
    node: str | None = None
    why_not: str | None = None


class ViolationDocument(Document):
    """A place where a rule is exceeded."""

    rule: str
    place: str
    amount: int
    before: int


class RefusalDocument(Document):
    """A pod that the filters would not admit where it stands."""

    namespace: str
    name: str
    node: str
    plugin: str
    reasons: tuple[str, ...]


class SolutionDocument(Document):
    """A solution: one entry for every pod that is free to move."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Solution"] = "Solution"
    snapshot: SnapshotDocument
    settings: SettingsDocument
    status: str
    interrupted: bool
    seconds: float
    moves: int
    tiers: tuple[TierDocument, ...]
    placements: tuple[PlacementDocument, ...]
    violations: tuple[ViolationDocument, ...]
    refused: tuple[RefusalDocument, ...]
    notes: tuple[str, ...]


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
        nodes=len(snapshot.nodes), pods=pods, fingerprint=snapshot.fingerprint, notes=snapshot.notes
    )


def solution_document(solution: Solution, settings: Settings) -> SolutionDocument:
    """Describe a solution."""
    compiled, outcome = solution.compiled, solution.outcome
    waiting = {pod.key: message for pod, message in solution.waiting}
    return SolutionDocument(
        snapshot=snapshot_document(compiled),
        settings=settings_document(compiled, settings),
        status=outcome.status,
        interrupted=outcome.interrupted,
        seconds=outcome.seconds,
        moves=solution.evaluation.moves,
        tiers=tuple(tier_document(tier) for tier in outcome.tiers),
        placements=tuple(
            PlacementDocument(
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.metadata.uid,
                source=pod.node_name or None,
                node=solution.assignment.get(pod.key),
                why_not=waiting.get(pod.key),
            )
            for pod in compiled.pods
        ),
        violations=tuple(violation_document(violation) for violation in solution.evaluation.violations),
        refused=tuple(refusal_document(rejection) for rejection in solution.refused),
        notes=(*compiled.notes, *solution.notes),
    )


def tier_document(outcome: TierOutcome) -> TierDocument:
    """Describe a tier."""
    tier = outcome.tier
    return TierDocument(
        name=tier.name,
        unit=tier.unit,
        value=tier.shown(outcome.value),
        bound=tier.shown(outcome.bound),
        gap=outcome.gap,
        status=outcome.status,
        bound_by=outcome.bound_by,
    )


def violation_document(violation: ConstraintViolation) -> ViolationDocument:
    """Describe a breach."""
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
