"""Options of commands that access a live cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.models.command_line import CLUSTER

if TYPE_CHECKING:
    from stowplan.cluster.kubectl import Kubectl


Context = Annotated[
    str | None,
    typer.Option("--context", help="Context in the kubeconfig file.", show_default=False, rich_help_panel=CLUSTER),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Path of the kubeconfig file, as for kubectl.",
        show_default=False,
        rich_help_panel=CLUSTER,
    ),
]
RequestTimeout = Annotated[
    float,
    typer.Option("--request-timeout", min=0.1, help="Maximum seconds for one request.", rich_help_panel=CLUSTER),
]


@dataclass(frozen=True, slots=True)
class Connection:
    """Connection to the cluster."""

    context: Context = None
    kubeconfig: Kubeconfig = None
    request_timeout: RequestTimeout = 60.0

    def kubectl(self) -> Kubectl:
        """Return kubectl with these options."""
        from stowplan.cluster.kubectl import Kubectl

        return Kubectl(self.context, self.kubeconfig, self.request_timeout)
