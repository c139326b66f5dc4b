"""Linear programs of HiGHS as all engines begin them: silent, on one thread, with a time limit for each run."""

from __future__ import annotations

import highspy

SHORTEST = 0.05
"""Seconds that a run has at least."""


def linear_program() -> highspy.Highs:
    """Return an empty program."""
    lp = highspy.Highs()
    lp.setOptionValue("output_flag", False)
    lp.setOptionValue("threads", 1)
    return lp


def limit_time(lp: highspy.Highs, seconds: float | None, shortest: float = SHORTEST) -> None:
    """Limit the next run; nothing is changed without a limit."""
    if seconds is not None:
        # HiGHS counts the time of all its runs.
        lp.setOptionValue("time_limit", lp.getRunTime() + max(shortest, seconds))
