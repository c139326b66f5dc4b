"""A run recorded in a file of the text format of Prometheus.

The file is for the textfile collector of node-exporter, or for a Pushgateway. It holds the last run and counts all
runs, so a run begins with what the file says. Every series is there from the first run on, at 0 if nothing happened.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from stowplan.applying.ledger import Stage
from stowplan.instances.documents import read_file
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from stowplan.models.whole_file import PUBLIC, write_whole
from stowplan.run_metrics.families import ERROR, FAMILIES, INTERRUPTED, SUCCESSES

if TYPE_CHECKING:
    from stowplan.applying.apply import Applied


@dataclass(eq=False)
class RunMetrics:
    """Metrics of the runs of a command.

    Attributes
    ----------
    values
        By name of the metric and value of its label.
    outcome
        Of the run under way; empty as long as it is not known.
    """

    command: str
    values: dict[tuple[str, str], float] = field(init=False)
    outcome: str = ""

    def __post_init__(self) -> None:
        self.values = {(family.name, value): 0.0 for family in FAMILIES[self.command] for value in family.values}

    def planned(self, plan: Plan) -> None:
        """Take in the answer of ``plan``."""
        self.outcome = "changes" if plan.waves else "empty"
        for kind in ("evict", "place", "remove"):
            self.values["moves", kind] = sum(move.kind == kind for move in plan.moves)
        self.values["waves", ""] = len(plan.waves)
        self.values["gap_ratio", ""] = gap(plan)

    def applied(self, result: Applied) -> None:
        """Take in the answer of ``apply``."""
        ledger = result.ledger
        if result.interrupted:
            self.outcome = INTERRUPTED
        elif result.stopped or any(progress.stage == "refused" for progress in ledger.progress.values()):
            self.outcome = "stopped"
        else:
            self.outcome = "done" if ledger.done else "paused"
        for stage in get_args(Stage):
            self.values["moves", stage] = sum(progress.stage == stage for progress in ledger.progress.values())
        self.values["waves", ""] = len(ledger.plan.waves)
        self.values["waves_over", ""] = len(ledger.ended)

    def end(self, seconds: float, moment: float) -> None:
        """Count the run; ``moment`` is when it ended, as a Unix time."""
        self.values["runs_total", self.outcome] += 1
        self.values["duration_seconds", ""] = seconds
        self.values["last_run_timestamp_seconds", ""] = moment
        if self.outcome in SUCCESSES:
            self.values["last_success_timestamp_seconds", ""] = moment


def gap(plan: Plan) -> float:
    """Return the largest gap of the tiers of a plan, relative to their values; 1 for one without a lower bound."""
    gaps = [
        (tier.after - tier.bound) / tier.after if tier.bound > 0 else 1.0
        for tier in plan.tiers
        if tier.after > tier.bound
    ]
    return max(gaps, default=0.0)


@contextmanager
def recorded(file: str | None, command: str, warn: Callable[[str], None]) -> Iterator[RunMetrics]:
    """Write the metrics of the run inside the block into a file, however it ends; without a file, nowhere.

    Parameters
    ----------
    warn
        Told of a file that cannot be written when the run is over, which does not make it a failure.

    Raises
    ------
    InputError
        Before the run begins, if the file cannot be written or holds something else.
    """
    metrics = RunMetrics(command)
    if file is None:
        yield metrics
        return
    from stowplan.run_metrics.text_format import written

    path = Path(file)
    _begin(metrics, path)
    began = time.monotonic()
    try:
        yield metrics
    except BaseException as error:
        metrics.outcome = metrics.outcome or (INTERRUPTED if isinstance(error, KeyboardInterrupt) else ERROR)
        raise
    finally:
        metrics.end(time.monotonic() - began, time.time())
        try:
            write_whole(written(command, metrics.values), path, PUBLIC)
        except InputError as error:
            warn(str(error))


def _begin(metrics: RunMetrics, path: Path) -> None:
    from stowplan.run_metrics.text_format import read

    try:
        if path.exists() and (text := read_file(path).decode()):
            metrics.values |= read(text, metrics.command)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
    except ValueError as error:
        told = str(error) if str(error).startswith("must ") else f"must hold metrics of stowplan {metrics.command}"
        raise InputError(f"is another file; {told}", str(path)) from None
