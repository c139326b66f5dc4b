"""``stowplan frontier``: the gain for each limit on moves."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.groups import but, grouped
from stowplan.cli.live import OptionalPaths, Source, load_source
from stowplan.cli.options import OUTPUT, Format
from stowplan.models.command_line import PROBLEM
from stowplan.models.errors import InputError
from stowplan.models.messages import log
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_search

Limits = Annotated[
    list[int] | None,
    typer.Option(
        "--moves",
        help="A limit on moves to try; repeatable. Default: 0, 1, 2, 5, 10, … and none.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Drawing = Annotated[
    str | None,
    typer.Option(
        "--svg", metavar="FILE", help="Also draw the curve to this file.", show_default=False, rich_help_panel=OUTPUT
    ),
]
Nested = Annotated[
    bool,
    typer.Option(
        "--nested",
        help="Also find plans that each begin with the moves of the one before, and what that costs.",
        rich_help_panel=PROBLEM,
    ),
]


@grouped
def frontier(
    paths: OptionalPaths = None,
    *,
    limits: Limits = None,
    nested: Nested = False,
    settings: Annotated[Settings, but(suits=concerns_search)],
    source: Source,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    options: Annotated[Options, but(time_limit=60.0)],
    drawing: Drawing = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Find the best placement for 0, 1, 2, 5, 10, … moves, and for any number of moves."""
    from stowplan.answers.frontier import Point, climb
    from stowplan.answers.nested import nest
    from stowplan.cli.progress import ready
    from stowplan.cli.session import emit, stoppable, warn_of_idle_freezes
    from stowplan.documents.frontier import frontier_document
    from stowplan.report.frontier import frontier_chart, frontier_rows, point_line, show_frontier
    from stowplan.report.svg import write_drawing
    from stowplan.settings.problem import make_problem

    if settings.max_moves is not None:
        raise InputError(f"is {settings.max_moves}; a limit on all moves is given with --moves", field="--max-moves")
    snapshot = load_source(paths, source, skip_unknown_nodes, configs=[settings.config])
    warn_of_idle_freezes(settings.freeze, snapshot)
    compiled = make_problem(snapshot, settings)

    def tell(point: Point) -> None:
        if not quiet:
            log(point_line(point))

    with stoppable("with the points found so far") as stop:
        options = ready(compiled.problem, options, quiet, stop)
        found = climb(compiled, options, limits=limits, stop=stop, tell=tell)
        if nested and found.points and not stop.is_set():
            found = nest(found)
    if drawing is not None:
        write_drawing(frontier_chart(found), drawing)
    emit(
        output,
        lambda console: show_frontier(console, found),
        lambda: frontier_document(found, settings),
        lambda: frontier_rows(found),
    )
