"""Commands that place: compare, solve, and the demonstration."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.choices import CHANGES, ProblemChoice, SearchChoice
from stowplan.cli.groups import but, grouped
from stowplan.cli.options import Format

if TYPE_CHECKING:
    from stowplan.models.snapshot import Snapshot
    from stowplan.optimizer.portfolio import Options
    from stowplan.settings.settings import Settings


@grouped
def compare(
    paths: opt.Paths,
    *,
    problem: ProblemChoice,
    search: Annotated[SearchChoice, but(time_limit=15.0)],
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Show today, kube-scheduler and the best placement side by side."""
    from stowplan.cli.session import load_snapshot

    settings = problem.settings()
    snapshot = load_snapshot(paths, problem.skip_unknown_nodes)
    changed = _compare(snapshot, settings, search.options(), output, quiet)
    if detailed_exitcode and changed:
        raise typer.Exit(CHANGES)


def _compare(snapshot: Snapshot, settings: Settings, options: Options, output: Format, quiet: bool) -> bool:
    from stowplan.answers.compare import compare
    from stowplan.cli.progress import reported
    from stowplan.cli.session import emit, stoppable, warn_of_idle_freezes
    from stowplan.documents.comparison import comparison_document
    from stowplan.report.rows import comparison_rows
    from stowplan.report.text import show_comparison
    from stowplan.settings.settings import make_problem

    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    with stoppable() as stop, reported(compiled.problem.tiers, quiet, stop) as progress:
        comparison = compare(compiled, options, stop=stop, progress=progress)
    emit(
        output,
        lambda console: show_comparison(console, comparison, wide=output is Format.WIDE),
        lambda: comparison_document(comparison, settings),
        lambda: comparison_rows(comparison),
    )
    return bool(comparison.solution.moves)


@grouped
def solve(
    paths: opt.Paths,
    *,
    problem: Annotated[ProblemChoice, but("sample_nodes")],
    search: SearchChoice,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
    detailed_exitcode: opt.DetailedExit = False,
) -> None:
    """Find the best placement, with a proof or a gap; -o json is what verify reads."""
    from stowplan.answers.solve import solve_snapshot
    from stowplan.cli.progress import reported
    from stowplan.cli.session import emit, load_snapshot, stoppable, warn_of_idle_freezes
    from stowplan.documents.solution import solution_document
    from stowplan.optimizer.evaluate import Evaluator
    from stowplan.report.rows import solution_rows
    from stowplan.report.text import show_solution
    from stowplan.settings.settings import make_problem

    settings = problem.settings()
    options = search.options()
    snapshot = load_snapshot(paths, problem.skip_unknown_nodes)
    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)
    with stoppable() as stop, reported(compiled.problem.tiers, quiet, stop) as progress:
        solution = solve_snapshot(compiled, options, stop=stop, progress=progress)
    before = Evaluator(compiled.problem).evaluate(compiled.problem.start).values
    emit(
        output,
        lambda console: show_solution(console, solution, before, wide=output is Format.WIDE),
        lambda: solution_document(solution, settings),
        lambda: solution_rows(solution),
    )
    if detailed_exitcode and solution.moves:
        raise typer.Exit(CHANGES)


def demo(
    time_limit: opt.TimeLimit = 15.0,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Compare placements of a bundled cluster."""
    from stowplan.cli.session import load_snapshot
    from stowplan.instances.catalog import demo_path
    from stowplan.settings.settings import Settings

    if not quiet:
        print(f"stowplan: stowplan compare {demo_path()}", file=sys.stderr)
    options = SearchChoice(time_limit=time_limit).options()
    _compare(load_snapshot([str(demo_path())]), Settings(), options, output, quiet)
