"""Where a snapshot comes from: the files that the user names, or the cluster that kubectl reaches."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli.cluster_options import Connection
from stowplan.models.command_line import CLUSTER

if TYPE_CHECKING:
    from stowplan.models.snapshot import Snapshot

PLUGIN = "kubectl-stowplan"
"""The program that kubectl runs as a plugin."""

TRIES = 3
"""How often a cluster is read whose pods come to nodes that were not there a moment before."""

OptionalPaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SNAPSHOT",
        help="Output of kubectl get nodes,pods,… -A -o json: files, directories, or - for standard input. "
        "Without one, the cluster is asked: with --live, or as a plugin of kubectl.",
        show_default=False,
    ),
]
Live = Annotated[
    bool,
    typer.Option("--live", help="Ask the cluster through kubectl; nothing is changed there.", rich_help_panel=CLUSTER),
]


@dataclass(frozen=True, slots=True)
class Source(Connection):
    """Whether the cluster itself is asked, and how it is reached."""

    live: Live = False


def load_source(
    paths: Sequence[str] | None,
    source: Source,
    skip_unknown_nodes: bool = False,
    *,
    partial: bool = True,
    configs: Iterable[str | None] = (),
) -> Snapshot:
    """Load a snapshot from files, or from the cluster if none are named; see `stowplan.cli.session.load_snapshot`.

    Raises
    ------
    InputError
        If neither files nor the cluster are named, or both.
    """
    from stowplan.cli.session import annotations_of, checked, load_snapshot
    from stowplan.models.errors import InputError

    plugin = Path(sys.argv[0]).name.startswith(PLUGIN)
    if paths and source.live:
        raise InputError("excludes SNAPSHOT; name files or ask the cluster", field="--live")
    if paths:
        return load_snapshot(paths, skip_unknown_nodes, partial=partial, configs=configs)
    if not (source.live or plugin):
        raise InputError("missing; must be files, - for standard input, or --live to ask the cluster", field="SNAPSHOT")
    return checked(_read_live(source, skip_unknown_nodes, annotations_of(configs)), partial=partial)


def _read_live(source: Source, skip_unknown_nodes: bool, annotations: Sequence[str]) -> Snapshot:
    """Read the cluster as `stowplan snapshot` writes it, so that it is known to be whole."""
    from stowplan.cli.session import warn
    from stowplan.cluster.snapshot import kinds_served, take
    from stowplan.instances.load import load
    from stowplan.models.errors import InputError

    kubectl = source.kubectl()
    kinds = kinds_served(kubectl)
    for remaining in reversed(range(TRIES)):
        taken = take(kubectl, kinds)
        data = io.BytesIO(taken.data)
        data.name = "the cluster"
        try:
            snapshot = load(data, skip_unknown_nodes=skip_unknown_nodes, annotations=annotations)
        except InputError:
            if not remaining:
                raise
            continue  # kinds are read one after the other: a pod may have come to a node that has come since
        for note in taken.notes:
            warn(note)
        return snapshot
    raise AssertionError("unreachable")
