"""``stowplan explain``: why a pod is where it is, or nowhere; why a node cannot be emptied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.groups import but, grouped
from stowplan.cli.options import Format
from stowplan.models.command_line import PROBLEM
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_search

if TYPE_CHECKING:
    from stowplan.explaining.node import NodeExplanation
    from stowplan.explaining.pod import PodExplanation
    from stowplan.models.snapshot import Snapshot

What = Annotated[
    str | None,
    typer.Argument(metavar="POD|NODE", help="A pod as NAMESPACE/NAME, or a node as node/NAME.", show_default=False),
]
Everything = Annotated[
    bool,
    typer.Option("--all", help="Count what refuses the pending pods first.", rich_help_panel=PROBLEM),
]
NoSearch = Annotated[
    bool,
    typer.Option(
        "--no-search", help="Do not search for the best placement to say where it has the pod.", rich_help_panel=PROBLEM
    ),
]


@grouped
def explain(
    what: What = None,
    *,
    paths: opt.From,
    everything: Everything = False,
    settings: Annotated[Settings, but(suits=concerns_search)],
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    partial: opt.Partial = False,
    no_search: NoSearch = False,
    options: Options,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Explain a pod node by node, what keeps a node from being emptied, or what refuses pending pods."""
    from stowplan.cli.session import emit, load_snapshot, warn_of_idle_freezes
    from stowplan.documents.explanation import node_document, pending_document, pod_document
    from stowplan.explaining.named import named
    from stowplan.explaining.pending import explain_pending
    from stowplan.models.errors import InputError
    from stowplan.report.explained_node import node_rows, show_node
    from stowplan.report.explained_pending import pending_rows, show_pending
    from stowplan.report.explained_pod import pod_rows, show_pod
    from stowplan.settings.problem import make_problem

    if everything == (what is not None):
        raise InputError("name one pod or one node, or give --all")
    kind, name = named(what)
    snapshot = load_snapshot(paths, skip_unknown_nodes, partial=partial or kind != "node", configs=[settings.config])
    warn_of_idle_freezes(settings.freeze, snapshot)
    wide = output is Format.WIDE
    if kind == "all":
        pending = explain_pending(make_problem(snapshot, settings))
        emit(
            output,
            lambda console: show_pending(console, pending, wide=wide),
            lambda: pending_document(pending),
            lambda: pending_rows(pending),
        )
    elif kind == "node":
        node = _explained_node(snapshot, name, settings, options, quiet)
        emit(
            output,
            lambda console: show_node(console, node, wide=wide),
            lambda: node_document(node),
            lambda: node_rows(node),
        )
    else:
        pod = _explained_pod(snapshot, name, settings, None if no_search else options, quiet)
        emit(
            output,
            lambda console: show_pod(console, pod, wide=wide),
            lambda: pod_document(pod),
            lambda: pod_rows(pod),
        )


def _explained_node(
    snapshot: Snapshot, name: str, settings: Settings, options: Options, quiet: bool
) -> NodeExplanation:
    """Explain a node, with progress and a stop signal."""
    from stowplan.cli.progress import ready, reported
    from stowplan.cli.session import stoppable
    from stowplan.explaining.node import explain_node, node_problem

    compiled = node_problem(snapshot, name, settings)
    with stoppable() as stop:
        prepared = ready(compiled.problem, options, quiet, stop)
        with reported(compiled.problem.tiers, quiet, None, options=prepared) as progress:
            return explain_node(snapshot, name, settings, prepared, compiled=compiled, stop=stop, progress=progress)


def _explained_pod(
    snapshot: Snapshot, key: str, settings: Settings, options: Options | None, quiet: bool
) -> PodExplanation:
    """Explain a pod, with progress and a stop signal."""
    from stowplan.cli.progress import ready, reported
    from stowplan.cli.session import stoppable
    from stowplan.explaining.pod import explain_pod
    from stowplan.settings.problem import make_problem

    compiled = make_problem(snapshot, settings)
    with stoppable() as stop:
        if options is None:
            return explain_pod(compiled, key, None, stop=stop)
        prepared = ready(compiled.problem, options, quiet, stop)
        with reported(compiled.problem.tiers, quiet, None, options=prepared) as progress:
            return explain_pod(compiled, key, prepared, stop=stop, progress=progress)
