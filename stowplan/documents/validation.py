"""The document of a validation."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from stowplan.answers.validate import Validation
from stowplan.models.document import API_VERSION, Document


class FileCountsDocument(Document):
    """Counts of a trace file."""

    file: str
    cases: int
    pods: int
    different: int


class PluginCountsDocument(Document):
    """Counts of a plugin."""

    plugin: str
    refusals: int
    scores: int
    different: int


class DifferenceDocument(Document):
    """One difference from the recorded decisions."""

    source: str
    case: str
    pod: str
    stage: str
    plugin: str
    node: str
    recorded: str
    ours: str


class ValidationDocument(Document):
    """Result of a validation; ``differences`` holds the first of ``total``."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Validation"] = "Validation"
    holds: bool
    complete: bool
    total: int
    files: tuple[FileCountsDocument, ...]
    plugins: tuple[PluginCountsDocument, ...]
    differences: tuple[DifferenceDocument, ...]


def validation_document(validation: Validation) -> ValidationDocument:
    """Describe a validation."""
    return ValidationDocument(
        holds=validation.holds,
        complete=validation.complete,
        total=validation.total,
        files=tuple(FileCountsDocument(**asdict(counts)) for counts in validation.files),
        plugins=tuple(PluginCountsDocument(**asdict(counts)) for counts in validation.plugins.values()),
        differences=tuple(
            DifferenceDocument(source=f.source, case=f.case, pod=f.pod, **asdict(f.difference))
            for f in validation.findings
        ),
    )
