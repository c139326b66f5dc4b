"""Trimaran's scores: equal to recordings of the real plugins, and to what their definitions say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import FOLDER, cases
from tests.support.trimaran import differences

FILES = sorted(FOLDER.glob("trimaran/*.jsonl.gz"))


def test_recordings_are_there() -> None:
    assert len(FILES) == 3


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_every_recorded_score_is_ours(path: Path) -> None:
    found = [line for recorded in cases(path) for line in differences(recorded)]
    assert not found, "\n".join(found[:5])
