"""The picture of a report that the README shows: ``python -m tests.docs.picture`` takes it anew, in a real browser.

The cluster is the bundled one and the search is deterministic, so that only a change of ours changes the picture.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from stowplan.cli import run
from stowplan.instances.demo import demo_path
from tests.docs.blocks import ROOT
from tests.support.browser import Browser, find_browser

PICTURE = ROOT / "docs" / "report.png"
WIDTH, HEIGHT = 1200, 860
SECTION = "nodes"
"""What is at the top of the picture."""


def report(file: Path) -> None:
    """Write the report."""
    words = ["compare", str(demo_path()), "-q", "--deterministic", "-o", "csv", "--report", str(file)]
    if run(words):
        raise SystemExit(1)


def main() -> None:
    """Take the picture."""
    program = find_browser()
    if program is None:
        sys.exit("no Chromium is installed")
    with tempfile.TemporaryDirectory() as folder, Browser(program) as browser:
        file = Path(folder) / "report.html"
        report(file)
        tab = browser.tab()
        tab.open(file)
        tab.picture(width=WIDTH, height=HEIGHT)  # the page takes its width, and then its place
        tab.run(f"document.getElementById('{SECTION}').scrollIntoView()")
        PICTURE.write_bytes(tab.picture(width=WIDTH, height=HEIGHT))


if __name__ == "__main__":
    main()
