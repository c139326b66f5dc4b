"""``stowplan solve``: the best placement, pod by pod."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.bundling import Bundling
from stowplan.cli.exit_codes import CHANGES
from stowplan.cli.groups import but, grouped
from stowplan.cli.live import OptionalPaths, Source, load_source
from stowplan.cli.options import Format
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_search


@grouped
def solve(
    paths: OptionalPaths = None,
    *,
    settings: Annotated[Settings, but(suits=concerns_search)],
    source: Source,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    options: Options,
    report: opt.Report = None,
    bundling: Bundling,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Find the best placement, with a proof or a gap; verify reads its -o json."""
    from stowplan.answers.solve import solve_snapshot
    from stowplan.cli.progress import ready, reported
    from stowplan.cli.session import emit, steps_for, stoppable, warn_of_idle_freezes
    from stowplan.documents.solution import solution_document
    from stowplan.report.rows import solution_rows
    from stowplan.report.text import show_solution
    from stowplan.settings.problem import make_problem

    steps = steps_for(report)
    bundling.check()
    snapshot = load_source(paths, source, skip_unknown_nodes, configs=[settings.config])
    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    with stoppable() as stop:
        options = ready(compiled.problem, options, quiet, stop)
        with reported(compiled.problem.tiers, quiet, steps, options=options) as progress:
            solution = solve_snapshot(compiled, options, stop=stop, progress=progress)
    if report is not None:
        from stowplan.html_report.answers import solution_page
        from stowplan.html_report.render import write_page

        write_page(solution_page(solution, settings, options, steps or ()), report)
    if bundling.bundle is not None:
        from stowplan.bundles.answer import of_solution
        from stowplan.bundles.making import Question

        bundling.keep(Question("solve", snapshot, settings, options), compiled, of_solution(solution))
    emit(
        output,
        lambda console: show_solution(console, solution, wide=output is Format.WIDE),
        lambda: solution_document(solution, settings),
        lambda: solution_rows(solution),
    )
    if detailed_exitcode and solution.moves:
        raise typer.Exit(CHANGES)
