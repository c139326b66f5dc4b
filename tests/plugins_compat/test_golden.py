"""Parity with the real kube-scheduler, on decisions recorded from its own plugin code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import FOLDER, cases, differences

FILES = sorted(FOLDER.glob("k*/*.jsonl.gz"))


def test_recordings_are_there() -> None:
    assert len(FILES) == 28


def _name(path: Path) -> str:
    return f"{path.parent.name}-{path.name.partition('.')[0]}"


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_every_recorded_decision_is_ours(path: Path) -> None:
    found = [line for recorded in cases(path) for line in differences(recorded)]
    assert not found, "\n".join(found[:5])
