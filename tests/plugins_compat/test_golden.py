"""Parity with the real kube-scheduler, on decisions recorded from its own plugin code."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowplan.answers.validate import validate

FOLDER = Path(__file__).parent.parent / "golden"
FILES = sorted(FOLDER.glob("*/*.jsonl.gz"))


def test_recordings_are_there() -> None:
    assert len(FILES) >= 28


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}")
def test_every_recorded_decision_is_ours(path: Path) -> None:
    validation = validate([path])
    assert validation.pods > 50
    assert validation.holds, validation.findings[:5]
