"""Where tests find data that the project does not ship."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.blocks import summary


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Public benchmark data and dumps of real clusters, kept outside the project."""
    folder = os.environ.get("STOWPLAN_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("STOWPLAN_DATA names no folder with benchmark data")
    return Path(folder)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the tests of the documentation look at."""
    terminalreporter.write_line(summary())
