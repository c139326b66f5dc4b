"""A run that is killed goes on where it was. ``python -m benchmarks.apply_crashes`` does this fifty times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.crashing import crash
from tests.support.kubectl import needs_kubectl


@needs_kubectl
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_run_goes_on(home: Path, seed: int) -> None:
    found = crash(home, seed, most=1)
    assert found.runs > len(found.kills) == 1
