"""``stowplan snapshot``: writes everything that is read of a live cluster to a file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.cluster_options import Connection
from stowplan.cli.groups import grouped, only
from stowplan.models.command_line import CLUSTER
from stowplan.models.messages import log
from stowplan.models.settings import Settings

SnapshotFile = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="File to write, .json or .json.gz; - prints it."),
]
ChunkSize = Annotated[
    int,
    typer.Option(
        "--chunk-size", min=0, help="Number of objects in each request; 0 for all at once.", rich_help_panel=CLUSTER
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full",
        help="Keep what no command reads too: environment and arguments of containers, all annotations, managedFields.",
    ),
]


@grouped
def snapshot(
    output: SnapshotFile,
    *,
    full: Full = False,
    settings: Annotated[Settings, only("config")],
    connection: Connection,
    chunk_size: ChunkSize = 500,
    quiet: opt.Quiet = False,
) -> None:
    """Write everything that stowplan reads from a live cluster to a file."""
    from pathlib import Path

    from stowplan.cli.session import annotations_of, warn
    from stowplan.cluster.snapshot import kinds_served, save, take
    from stowplan.instances.pruning import pruned

    keys = annotations_of([settings.config])
    kubectl = connection.kubectl()
    taken = take(kubectl, kinds_served(kubectl), chunk=chunk_size)
    for note in taken.notes:
        warn(note)
    data = taken.data if full else pruned(taken.data, keys)
    if output == "-":
        sys.stdout.buffer.write(data)
        return
    save(data, Path(output))
    if not quiet:
        told = ", ".join(f"{count} {kind}" for kind, count in taken.counts.most_common())
        log(f"{output}: {told}")
