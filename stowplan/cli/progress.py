"""Progress on stderr: a live table on a terminal, otherwise a line for each improvement."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from stowplan.models.messages import LOG_FORMAT, LogFormat, log
from stowplan.models.options import Options
from stowplan.models.problem import Problem, Tier
from stowplan.models.stop import Stop
from stowplan.models.words import plural, printable
from stowplan.optimizer.backend import named_backend
from stowplan.optimizer.compiled import kernel_cache
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.run import Progress, Step, silent
from stowplan.optimizer.warm import warm_ahead
from stowplan.report.tables import Printable, bar
from stowplan.report.words import figure

A_SECOND = 4
"""Updates of the live table per second."""

BAR = 20
"""Characters of the bar of time."""

TELL_EVERY = 10.0
"""Seconds between lines about compiling."""


@contextmanager
def reported(
    tiers: Sequence[Tier], quiet: bool, kept: list[Step] | None = None, *, options: Options | None = None
) -> Iterator[Progress]:
    """Yield a reporter for one solve.

    Parameters
    ----------
    options
        Of the search, whose time limit is shown unless it counts work.
    kept
        Takes every step, for a report of the search.
    """
    limit = None if options is None or options.deterministic else options.time_limit
    with _shown(tiers, quiet, limit) as show:
        if kept is None:
            yield show
            return
        steps = kept

        def keep(step: Step) -> None:
            steps.append(step)
            show(step)

        yield keep


@contextmanager
def _shown(tiers: Sequence[Tier], quiet: bool, limit: float | None) -> Iterator[Progress]:
    """Yield a reporter that prints, unless nothing is to be printed."""
    if quiet:
        yield silent
    elif sys.stderr.isatty() and LOG_FORMAT.get() is LogFormat.TEXT:
        console = Console(stderr=True)
        console.push_render_hook(Printable())
        shown = LiveTable(tiers, limit)
        with Live(shown, console=console, refresh_per_second=A_SECOND, transient=True):
            yield shown.report
    else:
        yield _Lines(tiers).report


def ready(problem: Problem, options: Options, quiet: bool, stop: Stop) -> Options:
    """Return options for a search that can begin at once.

    Where kernels are not compiled yet, a problem that CP-SAT can hold is solved without them. For another one they are
    compiled first, which is no part of the search. A deterministic answer does not depend on what was compiled before.
    """
    named_backend(options, stop)  # a cluster that does not answer is told before anything begins
    kept = kernel_cache.folder()
    if kept is not None and kept.complete:
        return options
    if not options.deterministic and np.count_nonzero(upper_bounds(problem)) <= options.largest_model:
        if not quiet:
            _say(
                "the search kernels are not compiled yet; this problem is small enough to be solved without them "
                "(python -m stowplan.optimizer.warm compiles them)"
            )
        return replace(options, kernels=False)
    compile_kernels(quiet, stop)
    return options


def ready_to_search() -> Options:
    """Return options for a search that must not wait for a compilation: kernels are used if they are compiled."""
    kept = kernel_cache.folder()
    return Options(kernels=kept is not None and kept.complete)


def compile_kernels(quiet: bool, stop: Stop) -> None:
    """Compile the kernels, unless that was done before, and report progress: it takes a few minutes."""
    kept = kernel_cache.folder()
    if kept is None and not quiet:
        _say(f"every run compiles the search kernels again: {kernel_cache.WHY_NOWHERE}")
    if kept is None or kept.complete:
        return
    if not quiet:
        _say("compiling the search kernels, once; this takes a few minutes and is not part of the time limit")
    began = told = time.monotonic()

    def tell(kernels: int) -> None:
        nonlocal told
        now = time.monotonic()
        if not quiet and now - told >= TELL_EVERY:
            told = now
            _say(f"compiling the search kernels: {plural(kernels, 'kernel')} after {now - began:.0f} s")

    for line in dict.fromkeys(warm_ahead(stop, tell)):
        if not quiet and not stop.is_set():
            _say(line)


def _say(line: str) -> None:
    log(line)


class _Lines:
    """Prints a line whenever a value improves, or a bound improves considerably."""

    def __init__(self, tiers: Sequence[Tier]) -> None:
        self.tiers = tiers
        self.printed = ""

    def report(self, step: Step) -> None:
        """Print the improvements since the last call."""
        shown = [
            f"{tier.name} {figure(tier.shown(value))}" + (f" (at least {figure(tier.shown(bound))})" if bound else "")
            for tier, value, bound in zip(self.tiers, step.values, step.bounds, strict=True)
            if value
        ]
        line = f"{step.source:<25} {', '.join(shown) or 'all tiers 0'}"
        if line != self.printed:
            there = f" [{step.elsewhere()}]" if step.elsewhere else ""
            if LOG_FORMAT.get() is LogFormat.JSON:
                log(f"{line}{there}", about={"seconds": step.seconds})
            else:
                print(f"{step.seconds:7.1f}s  {printable(line)}{there}", file=sys.stderr, flush=True)
        self.printed = line


class LiveTable:
    """Incumbent, bound, and gap of every tier, and the time that has passed; drawn anew several times in a second.

    Parameters
    ----------
    limit
        Seconds that the search may take; ``None`` if they are not known.
    """

    def __init__(self, tiers: Sequence[Tier], limit: float | None) -> None:
        self.tiers = tiers
        self.limit = limit
        self._step: Step | None = None
        self._began = 0.0

    def report(self, step: Step) -> None:
        """Take what was found last."""
        self._began = time.monotonic() - step.seconds
        self._step = step

    def __rich__(self) -> RenderableType:
        """Draw the table, and the time below it."""
        step = self._step
        if step is None:
            return ""
        table = Table(title=f"last improvement by {step.source}", title_justify="left", box=None, pad_edge=False)
        table.add_column("tier", overflow="fold")
        for name in ("value", "bound", "gap"):
            table.add_column(name, justify="right", no_wrap=True)
        for tier, value, bound in zip(self.tiers, step.values, step.bounds, strict=True):
            gap = "proven" if value <= bound else f"{(value - bound) / value:.1%}"
            table.add_row(escape(tier.name), figure(tier.shown(value)), figure(tier.shown(bound)), gap)
        passed = max(step.seconds, time.monotonic() - self._began)
        parts: list[RenderableType] = [table, escape(step.elsewhere())] if step.elsewhere else [table]
        if self.limit is None:
            return Group(*parts, f"{passed:.0f} s; Ctrl-C ends the search with the best answer so far")
        drawn = bar(passed / self.limit, BAR)
        return Group(*parts, f"{passed:.0f} of {self.limit:g} s {drawn:<{BAR}} Ctrl-C ends the search with this answer")
