"""``stowplan survive``: which pods are pending once a zone or a node is lost, and what would help."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.bundling import Bundling
from stowplan.cli.exit_codes import IMPOSSIBLE
from stowplan.cli.groups import but, grouped
from stowplan.cli.live import OptionalPaths, Source, load_source
from stowplan.cli.options import Format
from stowplan.models.command_line import PROBLEM
from stowplan.models.messages import log
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_search

Zones = Annotated[bool, typer.Option("--zones", help="Lose one zone; the default.", rich_help_panel=PROBLEM)]
Nodes = Annotated[bool, typer.Option("--nodes", help="Lose one node.", rich_help_panel=PROBLEM)]
Topology = Annotated[
    str | None,
    typer.Option(
        "--topology",
        metavar="KEY",
        help="Lose the nodes with one value of this label.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]


@grouped
def survive(
    paths: OptionalPaths = None,
    *,
    zones: Zones = False,
    nodes: Nodes = False,
    topology: Topology = None,
    settings: Annotated[
        Settings,
        but("objective", "preemption", "prices", "max_moves", "max_moves_of", "move_costs", suits=concerns_search),
    ],
    source: Source,
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    options: Annotated[Options, but(time_limit=60.0)],
    report: opt.Report = None,
    bundling: Bundling,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Find pods that are pending once a zone or node is lost, and few moves that help; exit 3 if there are any."""
    from stowplan.cli.progress import ready
    from stowplan.cli.session import emit, steps_for, stoppable, warn_of_idle_freezes
    from stowplan.documents.survival import survival_document
    from stowplan.hypothetical import survive
    from stowplan.models.errors import InputError
    from stowplan.planning.domain_loss import Loss
    from stowplan.report.survival import loss_line, show_survival, survival_rows
    from stowplan.settings.problem import make_problem

    if zones + nodes + (topology is not None) > 1:
        raise InputError("exclude each other; give one", field="--zones, --nodes, --topology")
    bundling.check()
    steps_for(report)
    snapshot = load_source(paths, source, skip_unknown_nodes, configs=[settings.config])
    warn_of_idle_freezes(settings.freeze, snapshot)

    def tell(loss: Loss) -> None:
        if not quiet:
            log(loss_line(loss))

    with stoppable("with what is known so far") as stop:
        prepared = ready(make_problem(snapshot, settings).problem, options, quiet, stop)
        word = "node" if nodes else topology or "zone"
        found = survive(snapshot, word, settings, prepared, stop=stop, tell=tell)
    if report is not None:
        from stowplan.html_report.render import write_page
        from stowplan.html_report.survival import survival_page

        write_page(survival_page(found, settings, options), report)
    if bundling.bundle is not None:
        from stowplan.bundles.answer import of_survival
        from stowplan.bundles.making import Question

        key = "node" if word == "node" else found.key
        bundling.keep(
            Question("survive", snapshot, settings, options, topology=key), found.compiled, of_survival(found)
        )
    emit(
        output,
        lambda console: show_survival(console, found, wide=output is Format.WIDE),
        lambda: survival_document(found, settings),
        lambda: survival_rows(found),
    )
    if not found.survives:
        raise typer.Exit(IMPOSSIBLE)
