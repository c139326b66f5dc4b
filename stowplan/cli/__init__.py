"""The command line. Nothing is imported before an interrupt is caught, and nothing heavy until a command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main() -> None:
    """Run the command line and exit: 0 done, 1 error, 2 changes (asked for by --detailed-exitcode), 130 interrupted."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, on ``sys.argv`` by default; whatever goes wrong on purpose is one line on stderr."""
    try:
        from stowplan.cli.entry import run_app
    except KeyboardInterrupt:
        print("stowplan: interrupted", file=sys.stderr)
        return 130
    return run_app(arguments)
