"""The metrics of each command that has any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from stowplan.applying.ledger import Stage

ERROR, INTERRUPTED = "error", "interrupted"
"""Outcomes of runs without an answer."""
SUCCESSES = frozenset({"changes", "empty", "done", "paused"})


@dataclass(frozen=True, slots=True)
class Family:
    """A metric of a command.

    Parameters
    ----------
    name
        What follows ``stowplan_COMMAND_``.
    text
        What it measures.
    label, values
        Its label with all values that it takes; a metric without a label has one series.
    counts
        Whether it is a counter.
    """

    name: str
    text: str
    label: str = ""
    values: tuple[str, ...] = ("",)
    counts: bool = False


def _of_runs(outcomes: tuple[str, ...]) -> tuple[Family, ...]:
    return (
        Family("runs_total", "Runs, by outcome.", "outcome", outcomes, counts=True),
        Family("duration_seconds", "How long the last run took."),
        Family("last_run_timestamp_seconds", "When the last run ended."),
        Family("last_success_timestamp_seconds", "When the last successful run ended; 0 if none was."),
    )


FAMILIES: dict[str, tuple[Family, ...]] = {
    "plan": (
        *_of_runs(("changes", "empty", INTERRUPTED, ERROR)),
        Family("moves", "Moves of the last plan, by kind.", "kind", ("evict", "place", "remove")),
        Family("waves", "Waves of the last plan."),
        Family("gap_ratio", "Largest gap of the objectives of the last plan: 0 if all are proven optimal."),
    ),
    "apply": (
        *_of_runs(("done", "paused", "stopped", INTERRUPTED, ERROR)),
        Family("moves", "Moves of the plan of the last run, by state.", "state", get_args(Stage)),
        Family("waves", "Waves of the plan of the last run."),
        Family("waves_over", "Waves of that plan that are over."),
    ),
}
"""The metrics of each command that has any."""
