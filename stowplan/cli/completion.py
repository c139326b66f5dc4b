"""``kubectl_complete-stowplan``: what kubectl runs to complete the words behind ``kubectl stowplan``.

kubectl passes the words so far, and reads one completion a line and then a directive: what the shell may add itself.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress

NO_FILES, FILES = ":4", ":0"
"""Directives: complete no names of files beside these words; complete them, since there are no words."""


def main() -> None:
    """Print the completions of the last word of the command line."""
    found = completions(sys.argv[1:])
    print(*found, NO_FILES if found else FILES, sep="\n")


def completions(words: Sequence[str]) -> list[str]:
    """Return what the last of the words behind ``stowplan`` may be, which is empty where a new one begins."""
    from stowplan.cli.app import app

    *before, last = words or [""]
    line = shlex.join(["stowplan", *before, *([last] if last else [])])
    asked = {"_STOWPLAN_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(before) + 1)}
    printed = io.StringIO()
    with _environment(asked), redirect_stdout(printed), suppress(SystemExit):
        app([], prog_name="stowplan")
    return list(dict.fromkeys(filter(None, printed.getvalue().splitlines())))


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
