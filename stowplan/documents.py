"""The machine-readable forms of answers, and the file format of a solution.

All documents carry ``apiVersion`` and ``kind``; field names are camelCase; figures are not rounded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from models.errors import InputError
from models.objective import Objective
from models.result import TierOutcome
from models.snapshot import Snapshot, Standing
from models.validation import field_path, say
from optimizer.evaluate import Breach
from plugins_compat.admission import Rejection
from plugins_compat.compiler.compile import Compiled
from plugins_compat.simulate import Simulation
from stowplan.comparison import Comparison
from stowplan.inputs import Settings
from stowplan.measures import Measures
from stowplan.solution import Solution
from stowplan.validation import Validation

API_VERSION: Literal["stowplan/v1"] = "stowplan/v1"


class _Document(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid")


class TierDocument(_Document):
    """A tier: its value, what is proven, and how. ``bound`` holds given what the tiers above reached."""

    name: str
    unit: str
    value: float
    bound: float
    gap: float
    status: str
    bound_by: str


class PodsDocument(_Document):
    """How many pods have which standing, and why; ``placed + pending + fixed + finished = total``."""

    total: int
    placed: int
    pending: int
    fixed: int
    finished: int
    fixed_because: dict[str, int]
    pending_because: dict[str, int]


class SnapshotDocument(_Document):
    """Which snapshot an answer is about."""

    nodes: int
    pods: PodsDocument
    fingerprint: str
    notes: tuple[str, ...] = ()


class SettingsDocument(_Document):
    """What the problem was."""

    objective: Objective
    release: str
    scheduler: str
    config: str | None = None
    freeze: tuple[str, ...] = ()
    freeze_bare: bool = False
    max_moves: int | None = None


class PlacementDocument(_Document):
    """Where one pod goes: ``source`` is where it stands today; ``why_not`` is what keeps it from having a node."""

    namespace: str
    name: str
    uid: str = ""
    source: str | None = None
    node: str | None = None
    why_not: str | None = None


class BreachDocument(_Document):
    """A place where a rule is exceeded."""

    rule: str
    place: str
    amount: int
    before: int


class RefusalDocument(_Document):
    """A pod that the filters would not admit where it stands."""

    namespace: str
    name: str
    node: str
    plugin: str
    reasons: tuple[str, ...]


class SolutionDocument(_Document):
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
    breaches: tuple[BreachDocument, ...]
    refused: tuple[RefusalDocument, ...]
    notes: tuple[str, ...]


class UsageDocument(_Document):
    """How a resource is used: totals in scheduler units, the rest as fractions."""

    requested: int
    allocatable: int
    mean: float
    deviation: float
    plain_deviation: float
    highest: float


class ScoresDocument(_Document):
    """Mean final-state scores per pod, by plugin."""

    by_plugin: dict[str, float]
    total: float
    scored: int
    pods: int


class MeasuresDocument(_Document):
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


class ComparisonDocument(_Document):
    """Placements side by side, and the solution itself."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Comparison"] = "Comparison"
    placements: dict[str, MeasuresDocument]
    solution: SolutionDocument
    notes: tuple[str, ...]


def snapshot_document(compiled: Compiled) -> SnapshotDocument:
    """Describe the snapshot."""
    roll = compiled.roll
    pods = PodsDocument(
        total=len(roll.pods),
        **{standing.value: roll.count(standing) for standing in Standing},
        fixed_because=dict(roll.reasons(Standing.FIXED)),
        pending_because=dict(roll.reasons(Standing.PENDING)),
    )
    snapshot = compiled.snapshot
    return SnapshotDocument(
        nodes=len(snapshot.nodes), pods=pods, fingerprint=fingerprint(snapshot), notes=snapshot.notes
    )


def fingerprint(snapshot: Snapshot) -> str:
    """Return a hash of which nodes there are and which pod stands where."""
    lines = [f"node {node.name}" for node in snapshot.nodes]
    lines += [f"pod {pod.key} {pod.metadata.uid} {pod.node_name} {pod.finished}" for pod in snapshot.pods]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def solution_document(solution: Solution, settings: Settings) -> SolutionDocument:
    """Describe a solution."""
    compiled, outcome = solution.compiled, solution.outcome
    waiting = {pod.key: message for pod, message in solution.waiting}
    return SolutionDocument(
        snapshot=snapshot_document(compiled),
        settings=SettingsDocument(
            objective=compiled.objective,
            release=compiled.profile.release.name,
            scheduler=compiled.profile.scheduler_name,
            config=settings.config,
            freeze=tuple(settings.freeze),
            freeze_bare=settings.freeze_bare,
            max_moves=settings.max_moves,
        ),
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
                node=solution.where.get(pod.key),
                why_not=waiting.get(pod.key),
            )
            for pod in compiled.pods
        ),
        breaches=tuple(breach_document(breach) for breach in solution.evaluation.breaches),
        refused=tuple(refusal_document(rejection) for rejection in solution.refused),
        notes=tuple(solution.notes),
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


def breach_document(breach: Breach) -> BreachDocument:
    """Describe a breach."""
    return BreachDocument(rule=str(breach.origin), place=breach.place, amount=breach.amount, before=breach.before)


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
        notes=tuple(comparison.notes),
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
        exceeded=len(measures.breaches),
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


class DecisionDocument(_Document):
    """What became of one pod: ``preempts`` names the pods that had to leave its node, as ``namespace/name``."""

    namespace: str
    name: str
    node: str | None
    message: str
    preempts: tuple[str, ...] = ()
    preempted_by: str | None = None


class PreemptionDocument(_Document):
    """A pod that had to leave a node for another; ``target`` is the node it has at the end."""

    victim: str
    preemptor: str
    node: str
    target: str | None


class SimulationDocument(_Document):
    """The scheduler's decisions, in the order it made them.

    A pod that was preempted and came back to the queue has more than one; ``placed`` and ``failed`` count pods.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Simulation"] = "Simulation"
    snapshot: SnapshotDocument
    release: str
    from_empty: bool
    placed: int
    failed: int
    decisions: tuple[DecisionDocument, ...]
    preemptions: tuple[PreemptionDocument, ...] = ()


class VerificationDocument(_Document):
    """What a check found."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Verification"] = "Verification"
    holds: bool
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    tiers: dict[str, float]
    refused: tuple[RefusalDocument, ...]


class FileTallyDocument(_Document):
    """What a trace file holds."""

    file: str
    cases: int
    pods: int
    different: int


class PluginTallyDocument(_Document):
    """What was compared of a plugin."""

    plugin: str
    refusals: int
    scores: int
    different: int


class DifferenceDocument(_Document):
    """One thing that is decided differently from the record."""

    source: str
    case: str
    pod: str
    stage: str
    plugin: str
    node: str
    recorded: str
    ours: str


class ValidationDocument(_Document):
    """What came of running recorded decisions; ``differences`` holds the first of ``total``."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Validation"] = "Validation"
    holds: bool
    complete: bool
    total: int
    files: tuple[FileTallyDocument, ...]
    plugins: tuple[PluginTallyDocument, ...]
    differences: tuple[DifferenceDocument, ...]


def validation_document(validation: Validation) -> ValidationDocument:
    """Describe a validation."""
    return ValidationDocument(
        holds=validation.holds,
        complete=validation.complete,
        total=validation.total,
        files=tuple(FileTallyDocument(**asdict(tally)) for tally in validation.files),
        plugins=tuple(PluginTallyDocument(**asdict(tally)) for tally in validation.plugins.values()),
        differences=tuple(
            DifferenceDocument(source=f.source, case=f.case, pod=f.pod, **asdict(f.difference))
            for f in validation.findings
        ),
    )


def simulation_document(compiled: Compiled, simulation: Simulation, from_empty: bool) -> SimulationDocument:
    """Describe a simulation."""
    names = [node.name for node in compiled.snapshot.nodes]
    return SimulationDocument(
        snapshot=snapshot_document(compiled),
        release=compiled.profile.release.name,
        from_empty=from_empty,
        placed=simulation.placed,
        failed=len(simulation.outcomes) - simulation.placed,
        decisions=tuple(
            DecisionDocument(
                namespace=d.pod.namespace,
                name=d.pod.name,
                node=names[d.node] if d.node is not None else None,
                message=d.message,
                preempts=tuple(victim.key for victim in d.victims),
                preempted_by=d.preempted_by.key if d.preempted_by is not None else None,
            )
            for d in simulation.decisions
        ),
        preemptions=tuple(
            PreemptionDocument(
                victim=preemption.victim.key,
                preemptor=preemption.preemptor.key,
                node=preemption.node,
                target=simulation.where.get(preemption.victim.key),
            )
            for preemption in simulation.preemptions
        ),
    )


def read_solution(path: str) -> SolutionDocument:
    """Read a solution, or the solution inside a comparison, from JSON or YAML.

    Raises
    ------
    InputError
        With the field that cannot be used.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        content: Any = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except FileNotFoundError:
        raise InputError("no such file", file=path) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, yaml.YAMLError) as error:
        raise InputError(f"is neither JSON nor YAML: {error}".partition("\n")[0], file=path) from None
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind == "Comparison":
        content = content.get("solution")
    elif kind != "Solution":
        raise InputError(f"is {kind!r}, must be Solution or Comparison", file=path, field="kind")
    try:
        return SolutionDocument.model_validate(content)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        raise InputError(say(detail), file=path, field=field_path(detail["loc"])) from None
