"""The document of a question that was asked again."""

from __future__ import annotations

from typing import Literal

from stowplan.bundles.answer import Answer
from stowplan.bundles.rerun import Rerun
from stowplan.models.document import API_VERSION, Document


class RerunDocument(Document):
    """A question that was asked again.

    Parameters
    ----------
    command
        What made the answer of the bundle.
    made_with
        Version that made it.
    same
        Whether both answers are the same.
    differences
        Between both, one line each.
    remarks
        Why they may differ.
    then, now
        Both answers.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Rerun"] = "Rerun"
    command: str
    made_with: str
    same: bool
    differences: tuple[str, ...]
    remarks: tuple[str, ...]
    then: Answer
    now: Answer


def rerun_document(found: Rerun) -> RerunDocument:
    """Describe a question that was asked again."""
    return RerunDocument(
        command=found.then.command,
        made_with=found.then.stowplan,
        same=found.same,
        differences=found.differences,
        remarks=tuple(found.remarks),
        then=found.then.answer,
        now=found.now,
    )
