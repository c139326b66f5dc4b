"""``stowplan anonymize``: writes a cluster with other names, so that it can be attached to a report of a defect."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.groups import grouped

ListFile = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="File to write, .json or .json.gz; - prints it."),
]


@grouped
def anonymize(
    paths: opt.Paths,
    *,
    output: ListFile = "-",
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
) -> None:
    """Write what is read of a cluster, with other names; quantities and structure stay."""
    from pathlib import Path

    from stowplan.cli.session import load_snapshot
    from stowplan.cluster.snapshot import save
    from stowplan.instances.anonymize import Pseudonyms
    from stowplan.instances.manifest_list import manifest_list, written

    snapshot = load_snapshot(paths, skip_unknown_nodes)
    data = written(Pseudonyms(manifest_list(snapshot)).cluster())
    if output == "-":
        sys.stdout.buffer.write(data)
    else:
        save(data, Path(output))
