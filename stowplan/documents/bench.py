"""The document of a benchmark."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Literal

from stowplan.bench.bench import Bench
from stowplan.bench.row import Row
from stowplan.models.document import API_VERSION, Document


class MachineDocument(Document):
    """The machine: processors, and versions of the software."""

    processors: int
    system: str
    python: str
    stowplan: str
    ortools: str


class BenchSettingsDocument(Document):
    """How each instance was solved."""

    time_limit: float
    deterministic: bool
    seed: int
    workers: int
    jobs: int


class ReferenceDocument(Document):
    """Published results of others."""

    best: int | None
    best_by: str
    bound: int | None
    bound_by: str
    others: dict[str, int]


class BenchTierDocument(Document):
    """A tier of an instance, in its whole units; ``scale`` of them make one ``unit``."""

    name: str
    unit: str
    scale: int
    start: int
    value: int
    bound: int
    greedy: int | None


class InstanceDocument(Document):
    """Result of an instance; ``accepted`` says whether the format's own checker accepts the written solution."""

    instance: str
    group: str
    status: str
    accepted: bool
    interrupted: bool
    seconds: float
    gap: float | None
    excess: float | None
    score: float | None
    tiers: tuple[BenchTierDocument, ...]
    measures: dict[str, float]
    bound_measures: dict[str, float]
    reference: ReferenceDocument
    complaints: tuple[str, ...]
    notes: tuple[str, ...]


class TotalDocument(Document):
    """Figures of a part of a suite, by name."""

    group: str
    figures: dict[str, float | int | str | None]


class BenchmarkDocument(Document):
    """Result of a suite; ``asked`` is the number of instances to solve."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Benchmark"] = "Benchmark"
    suite: str
    format: str
    machine: MachineDocument
    settings: BenchSettingsDocument
    complete: bool
    accepted: bool
    asked: int
    instances: tuple[InstanceDocument, ...]
    totals: tuple[TotalDocument, ...]


def bench_document(bench: Bench) -> BenchmarkDocument:
    """Describe a benchmark."""
    options = bench.options
    return BenchmarkDocument(
        suite=bench.suite.name,
        format=bench.suite.kind,
        machine=machine_document(),
        settings=BenchSettingsDocument(
            time_limit=options.time_limit,
            deterministic=options.deterministic,
            seed=options.seed,
            workers=options.workers,
            jobs=bench.jobs,
        ),
        complete=bench.complete,
        accepted=bench.accepted,
        asked=bench.asked,
        instances=tuple(_instance(row) for row in bench.rows),
        totals=tuple(TotalDocument(group=total.group, figures=dict(total.figures)) for total in bench.totals),
    )


def machine_document() -> MachineDocument:
    """Describe this machine."""
    return MachineDocument(
        processors=os.cpu_count() or 1,
        system=platform.platform(),
        python=platform.python_version(),
        stowplan=version("stowplan"),
        ortools=version("ortools"),
    )


def _instance(row: Row) -> InstanceDocument:
    reference = row.reference
    return InstanceDocument(
        instance=row.instance,
        group=row.group,
        status=row.status,
        accepted=row.accepted,
        interrupted=row.interrupted,
        seconds=row.seconds,
        gap=row.gap,
        excess=row.excess,
        score=row.score,
        tiers=tuple(
            BenchTierDocument(
                name=name,
                unit=unit,
                scale=scale,
                start=row.start[t],
                value=row.values[t],
                bound=row.bounds[t],
                greedy=row.greedy[t] if row.greedy is not None else None,
            )
            for t, (name, unit, scale) in enumerate(row.units)
        ),
        measures=dict(row.measures),
        bound_measures=dict(row.bound_measures),
        reference=ReferenceDocument(
            best=reference.best,
            best_by=reference.best_by,
            bound=reference.bound,
            bound_by=reference.bound_by,
            others=dict(reference.others),
        ),
        complaints=row.complaints,
        notes=row.notes,
    )
