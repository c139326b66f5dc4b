"""What came of the comparison with simple methods."""

from __future__ import annotations

from typing import Literal

from stowplan.bench.baselines.comparison import BaselineRow, Baselines
from stowplan.documents.bench import MachineDocument, machine_document
from stowplan.models.document import API_VERSION, Document


class BaselineTierDocument(Document):
    """A tier of a question, in its whole units; ``scale`` of them make one ``unit``.

    Parameters
    ----------
    floor, floor_by
        A bound of one line, and what it is called, where there is one.
    """

    name: str
    unit: str
    scale: int
    start: int
    value: int
    bound: int
    floor: int | None
    floor_by: str


class MethodDocument(Document):
    """Values that a simple method reached, by tier."""

    method: str
    values: tuple[int, ...]
    seconds: float


class QuestionDocument(Document):
    """A question, what was answered, and where the answer is behind; ``limit`` is null for any number of moves."""

    cluster: str
    objective: str
    limit: int | None
    seconds: float
    tiers: tuple[BaselineTierDocument, ...]
    methods: tuple[MethodDocument, ...]
    findings: tuple[str, ...]


class BaselinesDocument(Document):
    """The product beside simple methods; ``asked`` is how many questions there were."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Baselines"] = "Baselines"
    machine: MachineDocument
    time_limit: float
    deterministic: bool
    seed: int
    asked: int
    complete: bool
    behind: int
    questions: tuple[QuestionDocument, ...]


def baselines_document(baselines: Baselines) -> BaselinesDocument:
    """Describe the comparison."""
    return BaselinesDocument(
        machine=machine_document(),
        time_limit=baselines.options.time_limit,
        deterministic=baselines.options.deterministic,
        seed=baselines.options.seed,
        asked=baselines.asked,
        complete=baselines.complete,
        behind=len(baselines.behind),
        questions=tuple(map(_question, baselines.rows)),
    )


def _question(row: BaselineRow) -> QuestionDocument:
    return QuestionDocument(
        cluster=row.question.cluster.name,
        objective=row.question.objective,
        limit=row.question.limit,
        seconds=row.seconds,
        tiers=tuple(
            BaselineTierDocument(
                name=tier.name,
                unit=tier.unit,
                scale=tier.scale,
                start=row.start[t],
                value=row.values[t],
                bound=row.bounds[t],
                floor=row.floors[t][0] if t in row.floors else None,
                floor_by=row.floors[t][1] if t in row.floors else "",
            )
            for t, tier in enumerate(row.tiers)
        ),
        methods=tuple(
            MethodDocument(method=name, values=values, seconds=seconds)
            for name, (values, seconds) in row.methods.items()
        ),
        findings=row.findings,
    )
