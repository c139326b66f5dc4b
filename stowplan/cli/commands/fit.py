"""``stowplan fit``: the cheapest plan that schedules pending pods."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.exit_codes import IMPOSSIBLE
from stowplan.cli.groups import but, grouped
from stowplan.cli.options import Format
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_search
from stowplan.settings.terms import Terms

PendingFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="Manifests of additional pods to schedule, JSON or YAML; repeatable.",
        show_default=False,
    ),
]
PendingPods = Annotated[
    list[str] | None,
    typer.Option(
        "--pod",
        metavar="NAMESPACE/NAME",
        help="A pending pod of the dump to schedule; repeatable.",
        show_default=False,
    ),
]


@grouped
def fit(
    paths: opt.Paths,
    *,
    files: PendingFiles = None,
    pods: PendingPods = None,
    settings: Annotated[Settings, but("preemption", suits=concerns_search)],
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    partial: opt.Partial = False,
    terms: Annotated[Terms, but("wave_timeout")],
    options: Options,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Plan the cheapest moves that make room for pending pods; exit 3 if not all of them fit."""
    from stowplan.cli.session import emit, found, load_snapshot, warn_of_idle_freezes
    from stowplan.documents.drain_and_fit import fit_document
    from stowplan.planning.fit import admitting, fit, pods_of
    from stowplan.report.drain_and_fit import show_fit
    from stowplan.report.rows import plan_rows

    files = files or []
    keys = [*(key for file in files for key in pods_of(file)), *(pods or ())]
    snapshot = load_snapshot([*paths, *files], skip_unknown_nodes, partial=partial)
    warn_of_idle_freezes(settings.freeze, snapshot)
    fitted = found(fit, snapshot, admitting(settings, snapshot, keys), options, terms, quiet)
    emit(
        output,
        lambda console: show_fit(console, fitted, wide=output is Format.WIDE),
        lambda: fit_document(fitted),
        lambda: plan_rows(fitted.planned.plan),
    )
    if not fitted.possible:
        raise typer.Exit(IMPOSSIBLE)
