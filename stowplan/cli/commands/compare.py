"""``stowplan compare``: today, kube-scheduler and the best placement, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.exit_codes import CHANGES
from stowplan.cli.groups import but, grouped
from stowplan.cli.live import OptionalPaths, Source, load_source
from stowplan.cli.options import Format
from stowplan.models.command_line import PROBLEM
from stowplan.models.options import Options
from stowplan.models.settings import Settings

if TYPE_CHECKING:
    from stowplan.models.snapshot import Snapshot


Ideal = Annotated[
    bool,
    typer.Option(
        "--ideal",
        help="Also show the best placement if every pod could move, and what each protection of pods costs.",
        rich_help_panel=PROBLEM,
    ),
]


@grouped
def compare(
    paths: OptionalPaths = None,
    *,
    settings: Settings,
    source: Source,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    options: Annotated[Options, but(time_limit=15.0)],
    ideal: Ideal = False,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Show today, kube-scheduler, and the best placement side by side."""
    snapshot = load_source(paths, source, skip_unknown_nodes)
    changes = compared(snapshot, settings, options, output, quiet, ideal=ideal)
    if detailed_exitcode and changes:
        raise typer.Exit(CHANGES)


def compared(
    snapshot: Snapshot, settings: Settings, options: Options, output: Format, quiet: bool, *, ideal: bool = False
) -> bool:
    """Print a comparison; return whether its answer differs from today."""
    from stowplan.answers.compare import compare
    from stowplan.answers.protections import protections
    from stowplan.cli.progress import ready, reported
    from stowplan.cli.session import emit, stoppable, warn_of_idle_freezes
    from stowplan.documents.comparison import comparison_document
    from stowplan.report.rows import comparison_rows
    from stowplan.report.text import show_comparison
    from stowplan.settings.problem import make_ideal, make_problem

    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    with stoppable() as stop:
        options = ready(compiled.problem, options, quiet, stop)
        with reported(compiled.problem.tiers, quiet) as progress:
            everyone = make_ideal(snapshot, settings) if ideal else None
            comparison = compare(compiled, options, ideal=everyone, stop=stop, progress=progress)
            if ideal:
                found = tuple(protections(snapshot, settings, comparison.solution.assessment, options, stop=stop))
                comparison = replace(comparison, protections=found)
    emit(
        output,
        lambda console: show_comparison(console, comparison, wide=output is Format.WIDE),
        lambda: comparison_document(comparison, settings),
        lambda: comparison_rows(comparison),
    )
    return bool(comparison.solution.moves)
