"""Every reader ends with an answer or with one line, whatever it is given: a few inputs of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def fuzzing(*options: str) -> str:
    """Run the campaign in a process of its own, since each input gets a fork of it; return what it printed."""
    command = [sys.executable, "-m", "tests.support.fuzzing", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_changed_input_ends_as_it_should() -> None:
    assert fuzzing("--count", "21", "--seed", "1").endswith(" readers: 0 did not end as they should\n")


def test_what_is_large_when_it_is_read_is_refused() -> None:
    bombs = [word for bomb in ("{}, in gzip", "1, in gzip", "blanks in gzip", "digits") for word in ("--bomb", bomb)]
    said = fuzzing(*bombs, "--reader", "dump", "--reader", "verified plan")
    assert said.endswith(" for 2 readers: 0 did not end as they should\n")
