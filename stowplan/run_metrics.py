"""What runs tell Prometheus: a file of the text format, since a Job is gone before it could be scraped.

The file is for the textfile collector of node-exporter, or for a Pushgateway. It holds the last run and counts all
runs, so a run begins with what the file says. Every series is there from the first run on, at 0 if nothing happened.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from stowplan.applying.apply import Applied
from stowplan.applying.ledger import Stage
from stowplan.build_info import build_info
from stowplan.instances.documents import read_file
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from stowplan.models.whole_file import PUBLIC, write_whole

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


@dataclass(eq=False)
class RunMetrics(Collector):
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

    def restore(self, text: str) -> None:
        """Begin with what a file says.

        Raises
        ------
        ValueError
            If it does not hold the metrics of this command.
        """
        prefix = f"stowplan_{self.command}_"
        labels = {family.name: family.label for family in FAMILIES[self.command]}
        commands = set()
        for found in text_string_to_metric_families(text):
            for sample in found.samples:
                if sample.name == "stowplan_build_info":
                    commands.add(sample.labels.get("command"))
                name = sample.name.removeprefix(prefix)
                key = (name, sample.labels.get(labels.get(name, ""), ""))
                if sample.name.startswith(prefix) and key in self.values:
                    self.values[key] = float(sample.value)
        if commands != {self.command}:
            raise ValueError(f"must hold metrics of stowplan {self.command}, or be a new file")

    def collect(self) -> Iterable[Metric]:
        """Yield all families, for the registry."""
        yield build_info(self.command)
        for family in FAMILIES[self.command]:
            made = CounterMetricFamily if family.counts else GaugeMetricFamily
            labels = [family.label] if family.label else []
            found = made(f"stowplan_{self.command}_{family.name}", family.text, labels=labels)
            for value in family.values:
                found.add_metric([value] if family.label else [], self.values[family.name, value])
            yield found

    def text(self) -> bytes:
        """Return all of it in the text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)


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
            write_whole(metrics.text(), path, PUBLIC)
        except InputError as error:
            warn(str(error))


def _begin(metrics: RunMetrics, path: Path) -> None:
    try:
        if path.exists() and (text := read_file(path).decode()):
            metrics.restore(text)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
    except ValueError as error:
        told = str(error) if str(error).startswith("must ") else f"must hold metrics of stowplan {metrics.command}"
        raise InputError(f"is another file; {told}", str(path)) from None
