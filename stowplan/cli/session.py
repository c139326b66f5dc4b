"""Common parts of commands: load, handle signals, report progress, print."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO, TYPE_CHECKING, TypeVar, assert_never

import yaml
from pydantic import BaseModel
from rich.console import Console

from stowplan.cli.options import Format
from stowplan.models.messages import log
from stowplan.models.stop import Stop
from stowplan.models.words import printable_json
from stowplan.report.rows import Row, write_csv
from stowplan.report.tables import Printable

if TYPE_CHECKING:
    from stowplan.models.options import Options
    from stowplan.models.settings import Settings
    from stowplan.models.snapshot import Snapshot
    from stowplan.optimizer.run import Step
    from stowplan.settings.terms import Terms

T = TypeVar("T")

PIPE_WIDTH = 10_000
"""Width of tables where no terminal limits it."""


def load_snapshot(
    paths: Sequence[str | IO[bytes]],
    skip_unknown_nodes: bool = False,
    *,
    partial: bool = True,
    configs: Iterable[str | None] = (),
) -> Snapshot:
    """Load a snapshot, and exclude it from garbage collection, since it lives as long as the process.

    Parameters
    ----------
    partial
        Whether to accept a snapshot that lacks pods, or fields of nodes.
    configs
        Paths of the configurations that it is read for, which may ask for annotations.

    Raises
    ------
    InputError
        If it cannot be read, or is incomplete and has to be complete.
    """
    from stowplan.instances.load import load

    keys = annotations_of(configs)
    return checked(load(paths, skip_unknown_nodes=skip_unknown_nodes, annotations=keys), partial=partial)


def annotations_of(configs: Iterable[str | None]) -> list[str]:
    """Return the keys of the annotations that configurations ask for."""
    named = [path for path in configs if path]
    if not named:
        return []
    from stowplan.plugins_compat.profiles import annotations_read

    return [key for path in named for key in annotations_read(path)]


def checked(snapshot: Snapshot, *, partial: bool) -> Snapshot:
    """Return a snapshot that is whole, or is allowed not to be; say what it lacks."""
    from stowplan.instances.completeness import require_whole

    if not partial:
        require_whole(snapshot, "--partial")
    for gap in snapshot.gaps:
        warn(gap)
    gc.freeze()
    return snapshot


def warn(message: str) -> None:
    """Print a warning."""
    log(message, "warning")


def warn_of_idle_freezes(words: Sequence[str], snapshot: Snapshot) -> None:
    """Warn of freezes that match no pod."""
    from stowplan.settings.freeze import Freeze

    for word in Freeze(words).unmatched(snapshot):
        warn(f"--freeze {word} matches no pod")


@contextmanager
def stoppable(with_what: str = "with the best answer so far") -> Iterator[Stop]:
    """Turn the first SIGINT or SIGTERM into a request to stop; a second one ends the process."""
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        log(f"stopping {with_what}; once more to give up")

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def found(
    search: Callable[..., T],
    snapshot: Snapshot,
    settings: Settings,
    options: Options,
    terms: Terms,
    quiet: bool,
    kept: list[Step] | None = None,
) -> T:
    """Run a search for plans, such as `stowplan.planning.plan.make_plan`, with progress and a stop signal.

    Parameters
    ----------
    kept
        Takes every step of the search.
    """
    from stowplan.cli.progress import ready, reported
    from stowplan.planning.plan import planning_problem

    compiled = planning_problem(snapshot, settings, terms)
    with stoppable() as stop:
        prepared = ready(compiled.problem, options, quiet, stop)
        with reported(compiled.problem.tiers, quiet, kept, options=prepared) as progress:
            return search(
                snapshot=snapshot,
                settings=settings,
                options=prepared,
                terms=terms,
                compiled=compiled,
                stop=stop,
                progress=progress,
            )


def steps_for(report: str | None) -> list[Step] | None:
    """Return a list for the steps of a search if a report is to be written, and make sure that it can be written.

    Raises
    ------
    InputError
        If it cannot be.
    """
    if report is None:
        return None
    from stowplan.html_report.render import require_writable

    require_writable(report)
    return []


def emit(
    output: Format,
    text: Callable[[Console], None],
    document: Callable[[], BaseModel],
    rows: Callable[[], Iterator[Row]],
) -> None:
    """Print an answer on stdout in the requested format."""
    match output:
        case Format.TABLE | Format.WIDE:
            write_report(text)
        case Format.JSON:
            print(printable_json(document().model_dump_json(by_alias=True, indent=2)))
        case Format.YAML:
            content = document().model_dump(by_alias=True, mode="json")
            print(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), end="")
        case Format.CSV:
            print(write_csv(rows()), end="")
        case _:
            assert_never(output)


def write_report(text: Callable[[Console], None]) -> None:
    """Write a report as wide as the terminal; in a file or a pipe nothing is folded, and no line ends in blanks."""
    if sys.stdout is not None and sys.stdout.isatty():
        console = Console(highlight=False)
        console.push_render_hook(Printable())
        text(console)
        return
    console = Console(highlight=False, soft_wrap=True, width=PIPE_WIDTH)
    console.push_render_hook(Printable())
    with console.capture() as captured:
        text(console)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))
