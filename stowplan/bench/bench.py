"""A whole suite."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from stowplan.bench.jobs import answers
from stowplan.bench.row import Row
from stowplan.bench.totals import Total, totals
from stowplan.instances.suites.published import final_run
from stowplan.instances.suites.suite import Instance, Suite
from stowplan.models.errors import InputError
from stowplan.models.stop import Stop
from stowplan.optimizer.portfolio import Options


@dataclass(frozen=True, slots=True)
class Bench:
    """What came of a suite.

    Parameters
    ----------
    asked
        How many instances were to be answered.
    rows
        In the order of the suite; after an interruption, those that were begun.
    """

    suite: Suite
    options: Options
    jobs: int
    asked: int
    rows: tuple[Row, ...]
    totals: tuple[Total, ...]

    @property
    def complete(self) -> bool:
        """Whether every instance has had its time."""
        return len(self.rows) == self.asked and not any(row.interrupted for row in self.rows)

    @property
    def accepted(self) -> bool:
        """Whether every answer was accepted by the checker of its format."""
        return all(row.accepted for row in self.rows)


def choose(suite: Suite, patterns: Sequence[str] = (), first: int | None = None) -> list[Instance]:
    """Return the instances whose names match a pattern, and of each group at most the ``first`` so many.

    Raises
    ------
    InputError
        If a pattern matches nothing.
    """
    for pattern in patterns:
        if not any(_matches(instance, pattern) for instance in suite.instances):
            example = suite.instances[0].name if suite.instances else "none"
            raise InputError(
                f"matches no instance of {suite.name}; the first is {example}", field=f"--instances {pattern}"
            )
    chosen: list[Instance] = []
    taken: dict[str, int] = {}
    for instance in suite.instances:
        if patterns and not any(_matches(instance, pattern) for pattern in patterns):
            continue
        taken[instance.group] = taken.get(instance.group, 0) + 1
        if first is None or taken[instance.group] <= first:
            chosen.append(instance)
    return chosen


def run(
    suite: Suite,
    instances: Sequence[Instance],
    options: Options,
    *,
    place: Path | None = None,
    solutions: Path | None = None,
    jobs: int = 1,
    stop: Stop | None = None,
    progress: Callable[[int, Row], None] = lambda number, row: None,
) -> Bench:
    """Solve instances, and check every written solution.

    Parameters
    ----------
    place
        Where the suite was read, for tables that lie beside it.
    solutions
        Where solutions are written; by default a folder that is gone afterwards.
    jobs
        How many instances at once, each in a process of its own.
    progress
        Called with a running number and each row when it is there.

    Raises
    ------
    InputError
        If no solution could be written.
    """
    stop = stop or Stop()
    if solutions is not None:
        _make_ready(solutions)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="stowplan-") as temporary:
        for row in answers(instances, options, solutions or Path(temporary), jobs, stop):
            rows.append(row)
            progress(len(rows), row)
    order = {instance.name: i for i, instance in enumerate(instances)}
    rows.sort(key=lambda row: order[row.instance])
    teams = final_run([place, place.parent, place.parent.parent]) if place else {}
    summed = totals(suite.kind, rows, teams)
    return Bench(suite, options, jobs, len(instances), tuple(rows), tuple(summed))


def _make_ready(folder: Path) -> None:
    """Make a folder, and see whether files can be written there, before hours have gone into what they should hold."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"cannot store solutions: {error.strerror}", file=str(folder)) from None


def _matches(instance: Instance, pattern: str) -> bool:
    return fnmatchcase(instance.name, pattern) or fnmatchcase(Path(instance.name).name, pattern)
