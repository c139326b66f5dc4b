"""``stowplan generate``: a synthetic cluster."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from stowplan.cli.groups import grouped, only
from stowplan.models.options import Options

Nodes = Annotated[int, typer.Option("--nodes", min=1, max=100_000, help="Number of nodes.")]
Pods = Annotated[int, typer.Option("--pods", min=0, max=1_000_000, help="Number of pods, not counting DaemonSets.")]
Fill = Annotated[
    float,
    typer.Option("--fill", min=0.01, max=2.0, help="Approximate share of the CPU (memory) that the pods request."),
]
Resource = Annotated[
    Literal["cpu", "memory"], typer.Option("--scarce", help="Resource that pods request that share of.")
]


@grouped
def generate(
    *,
    nodes: Nodes = 100,
    pods: Pods = 1000,
    options: Annotated[Options, only("seed")],
    fill: Fill = 0.65,
    scarce: Resource = "cpu",
) -> None:
    """Print a synthetic cluster as kubectl would print a real one."""
    import json

    from stowplan.instances.synthetic import generate

    print(json.dumps(generate(nodes, pods, options.seed, fill=fill, scarce=scarce)))
