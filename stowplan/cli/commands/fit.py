"""``stowplan fit``: the cheapest plan that schedules pending pods."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import IO, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.exit_codes import IMPOSSIBLE
from stowplan.cli.groups import but, grouped
from stowplan.cli.options import OUTPUT, Format
from stowplan.models.command_line import PROBLEM
from stowplan.models.options import Options
from stowplan.models.settings import Settings, concerns_search
from stowplan.settings.terms import Terms

PendingFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="Manifests of pods, Deployments, StatefulSets, ReplicaSets or Jobs to schedule; repeatable.",
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

AllPending = Annotated[
    bool, typer.Option("--all-pending", help="All pending pods of the dump.", rich_help_panel=PROBLEM)
]
Replicas = Annotated[
    int | None,
    typer.Option(
        "--replicas",
        min=0,
        help="Number of pods of each workload of -f, instead of what it says.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Most = Annotated[
    bool, typer.Option("--most", help="Find how many replicas of the workload of -f fit.", rich_help_panel=PROBLEM)
]
WritePods = Annotated[
    str | None,
    typer.Option(
        "--write-pods",
        metavar="FILE",
        help="Also write the pods of -f to this file, which replay and verify need beside the dump.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]


@grouped
def fit(
    paths: opt.Paths,
    *,
    files: PendingFiles = None,
    pods: PendingPods = None,
    all_pending: AllPending = False,
    replicas: Replicas = None,
    most: Most = False,
    write_pods: WritePods = None,
    settings: Annotated[Settings, but("preemption", suits=concerns_search)],
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    partial: opt.Partial = False,
    terms: Annotated[Terms, but("wave_timeout")],
    options: Options,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Plan the cheapest moves that make room for pending pods; exit 3 if not all of them fit."""
    from pathlib import Path

    from stowplan.cli.session import emit, found, load_snapshot, warn_of_idle_freezes
    from stowplan.cluster.snapshot import save
    from stowplan.documents.drain_and_fit import fit_document
    from stowplan.planning.fit import admitting, fit, pending_pods, with_creations
    from stowplan.planning.replicas import new_pods
    from stowplan.report.drain_and_fit import show_fit
    from stowplan.report.rows import plan_rows

    if most:
        replicas = _capacity(paths, files or (), skip_unknown_nodes, replicas)
    new = new_pods(files or (), replicas)
    if write_pods is not None:
        save(new.data, Path(write_pods))
    opened: list[str | IO[bytes]] = [*paths, *_opened(new.data, files)]
    snapshot = load_snapshot(opened, skip_unknown_nodes, partial=partial, configs=[settings.config])
    keys = [*new.keys, *(pods or ()), *(pending_pods(snapshot) if all_pending else ())]
    warn_of_idle_freezes(settings.freeze, snapshot)
    fitted = found(fit, snapshot, admitting(settings, snapshot, keys), options, terms, quiet)
    fitted = with_creations(fitted, new.keys)
    emit(
        output,
        lambda console: show_fit(console, fitted, wide=output is Format.WIDE, most=most),
        lambda: fit_document(fitted),
        lambda: plan_rows(fitted.planned.plan),
    )
    if not fitted.possible and not most:
        raise typer.Exit(IMPOSSIBLE)


def _opened(data: bytes, files: Sequence[str] | None) -> list[IO[bytes]]:
    """Return pods as a file to be read beside the dump, under the name of the files that they are from."""
    if not files:
        return []
    opened = io.BytesIO(data)
    opened.name = ", ".join(files)
    return [opened]


def _capacity(paths: Sequence[str], files: Sequence[str], skip_unknown_nodes: bool, replicas: int | None) -> int:
    """Return a number of replicas that no placement can exceed.

    Raises
    ------
    InputError
        If the files do not hold exactly one workload.
    """
    from stowplan.instances.load import load
    from stowplan.models.errors import InputError
    from stowplan.planning.fit import most_replicas
    from stowplan.planning.replicas import new_pods

    one = new_pods(files, 1)
    if replicas is not None:
        raise InputError("excludes --replicas, since it finds the number", field="--most")
    if (one.workloads, len(one.keys)) != (1, 1):
        raise InputError("needs one workload, such as a Deployment, and nothing else that is a pod", field="--most")
    snapshot = load([*paths, *_opened(one.data, files)], skip_unknown_nodes=skip_unknown_nodes)
    return most_replicas(snapshot, next(pod for pod in snapshot.pods if pod.key == one.keys[0]))
