"""``stowplan drain``: the cheapest plan that empties nodes."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.exit_codes import IMPOSSIBLE
from stowplan.cli.groups import but, grouped
from stowplan.cli.options import Format
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_search
from stowplan.settings.terms import Terms

Nodes = Annotated[list[str], typer.Argument(metavar="NODE", help="Nodes to empty.", show_default=False)]


@grouped
def drain(
    nodes: Nodes,
    paths: opt.From,
    *,
    settings: Annotated[Settings, but("freeze_bare", "preemption", suits=concerns_search)],
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    incomplete: opt.Partial = False,
    terms: Annotated[Terms, but("wave_timeout")],
    options: Options,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Plan the cheapest moves that empty nodes; exit 3 if they cannot be emptied."""
    from stowplan.cli.session import emit, found, load_snapshot, warn_of_idle_freezes
    from stowplan.documents.drain_and_fit import drain_document
    from stowplan.planning.drain import drain, draining
    from stowplan.report.drain_and_fit import show_drain
    from stowplan.report.rows import plan_rows

    snapshot = load_snapshot(paths, skip_unknown_nodes, partial=incomplete, configs=[settings.config])
    warn_of_idle_freezes(settings.freeze, snapshot)
    drained = found(partial(drain, nodes=nodes), snapshot, draining(settings, nodes), options, terms, quiet)
    emit(
        output,
        lambda console: show_drain(console, drained, wide=output is Format.WIDE),
        lambda: drain_document(drained),
        lambda: plan_rows(drained.planned.plan),
    )
    if not drained.possible:
        raise typer.Exit(IMPOSSIBLE)
