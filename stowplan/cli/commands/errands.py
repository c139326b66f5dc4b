"""Commands that get something done at the least cost of moves: drain, fit."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli import trial_options as trial
from stowplan.cli.choices import IMPOSSIBLE, ProblemChoice, SearchChoice, WaveChoice
from stowplan.cli.groups import but, grouped
from stowplan.cli.options import Format


@grouped
def drain(
    nodes: trial.DrainedNodes,
    paths: trial.From,
    *,
    problem: Annotated[ProblemChoice, but("freeze_bare", "preemption", "sample_nodes")],
    waves: Annotated[WaveChoice, but("wave_timeout")],
    search: SearchChoice,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Plan the cheapest way to empty nodes; exit 3 if something has to stay on them."""
    from stowplan.cli.session import emit, found, load_snapshot, warn_of_idle_freezes
    from stowplan.documents.errands import drain_document
    from stowplan.planning.drain import drain, draining
    from stowplan.report.errands import show_drain
    from stowplan.report.rows import plan_rows

    settings = problem.settings(opt.ExecutorName.EVICTION_API)
    terms = waves.terms()
    snapshot = load_snapshot(paths, problem.skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    options = search.options()
    drained = found(partial(drain, nodes=nodes), snapshot, draining(settings, nodes), options, terms, quiet)
    emit(
        output,
        lambda console: show_drain(console, drained, wide=output is Format.WIDE),
        lambda: drain_document(drained),
        lambda: plan_rows(drained.planned.plan),
    )
    if not drained.possible:
        raise typer.Exit(IMPOSSIBLE)


@grouped
def fit(
    paths: opt.Paths,
    *,
    files: trial.PendingFiles = None,
    waiting: trial.WaitingPods = None,
    problem: Annotated[ProblemChoice, but("preemption", "sample_nodes")],
    waves: Annotated[WaveChoice, but("wave_timeout")],
    search: SearchChoice,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Plan the cheapest way to get waiting pods in, of a file or of the dump; exit 3 if they do not all fit."""
    from stowplan.cli.session import emit, found, load_snapshot, warn_of_idle_freezes
    from stowplan.documents.errands import fit_document
    from stowplan.planning.fit import admitting, fit, pods_of
    from stowplan.report.errands import show_fit
    from stowplan.report.rows import plan_rows

    settings = problem.settings(opt.ExecutorName.EVICTION_API)
    terms = waves.terms()
    files = files or []
    keys = [*(key for file in files for key in pods_of(file)), *(waiting or ())]
    snapshot = load_snapshot([*paths, *files], problem.skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    options = search.options()
    fitted = found(fit, snapshot, admitting(settings, snapshot, keys), options, terms, quiet)
    emit(
        output,
        lambda console: show_fit(console, fitted, wide=output is Format.WIDE),
        lambda: fit_document(fitted),
        lambda: plan_rows(fitted.planned.plan),
    )
    if not fitted.possible:
        raise typer.Exit(IMPOSSIBLE)
