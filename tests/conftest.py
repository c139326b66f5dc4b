"""Where tests find data that the project does not ship, and how random cases are drawn."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.docs.blocks import summary
from tests.support.cases import MEASURED

# The same cases at every run; how long one takes depends on what else the machine does.
SLOW = [HealthCheck.too_slow]
settings.register_profile("same", derandomize=True, deadline=None, database=None, suppress_health_check=SLOW)
# Other ones at each run, of which those that failed are tried first the next time: --hypothesis-profile=new.
settings.register_profile("new", deadline=None, suppress_health_check=SLOW)
settings.load_profile("new" if "STOWPLAN_SEEDS" in os.environ else "same")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Public benchmark data and dumps of real clusters, kept outside the project."""
    folder = os.environ.get("STOWPLAN_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("STOWPLAN_DATA names no folder with benchmark data")
    return Path(folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put first what is marked so. Where coverage is measured, leave out all but the first cases of each test."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
    if config.pluginmanager.hasplugin("_cov"):
        seen: Counter[str] = Counter()
        for item in items:
            test, _, _ = item.nodeid.partition("[")
            seen[test] += 1
            if seen[test] > MEASURED:
                item.add_marker(pytest.mark.no_cover)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the tests of the documentation look at."""
    terminalreporter.write_line(summary())
