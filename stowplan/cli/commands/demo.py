"""``stowplan demo``: `compare` on a bundled cluster."""

from __future__ import annotations

from typing import Annotated

from stowplan.cli import options as opt
from stowplan.cli.commands.compare import NodeMap, compared
from stowplan.cli.groups import grouped, only
from stowplan.cli.options import Format
from stowplan.models.messages import log
from stowplan.models.options import Options
from stowplan.models.settings import Settings


@grouped
def demo(
    options: Annotated[Options, only("time_limit", "backend", time_limit=15.0)],
    node_map: NodeMap = False,
    report: opt.Report = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Compare placements of a bundled cluster."""
    from stowplan.cli.session import load_snapshot
    from stowplan.instances.demo import demo_path

    if not quiet:
        log(f"stowplan compare {demo_path()}")
    compared(load_snapshot([str(demo_path())]), Settings(), options, output, quiet, report=report, node_map=node_map)
