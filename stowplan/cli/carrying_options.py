"""Options of the commands that hand a plan to others."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from stowplan.cli.options import OUTPUT


class Target(StrEnum):
    """What a plan is written for."""

    KUBECTL = "kubectl"
    DESCHEDULER = "descheduler"
    KOORDINATOR = "koordinator"
    EXTENDER = "extender"
    PIN = "pin"


class Steering(StrEnum):
    """How firmly a pod is steered to its node."""

    PRIORITIZE = "prioritize"
    FILTER = "filter"


To = Annotated[Target, typer.Option("--to", help="Who carries the plan out.", show_default=False)]
Folder = Annotated[
    str | None,
    typer.Option(
        "--directory",
        "-d",
        metavar="FOLDER",
        help="Write files there instead of printing them.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write over files that are there.", rich_help_panel=OUTPUT)]
PlanSnapshotPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--snapshot",
        metavar="SNAPSHOT",
        help="The dump that the plan was made from, for whole pods (descheduler, koordinator); repeatable.",
        show_default=False,
    ),
]
SearchState = Annotated[
    str | None, typer.Option("--image", help="Container image of the descheduler.", show_default="v0.36.0")
]
JobNamespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Where the descheduler's Jobs run.", show_default="kube-system"),
]
ExtenderURL = Annotated[
    str | None,
    typer.Option("--url", help="Where the scheduler finds stowplan serve.", show_default="http://127.0.0.1:8888/v1"),
]
AddTo = Annotated[
    str | None,
    typer.Option(
        "--config",
        help="A KubeSchedulerConfiguration that the extender is added to.",
        show_default=False,
    ),
]
Bind = Annotated[str, typer.Option("--bind", metavar="HOST:PORT", help="Where to listen; port 0 is any free one.")]
ServingMode = Annotated[
    Steering,
    typer.Option("--mode", help="prioritize: the node is preferred to all others. filter: the pod may have no other."),
]
State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="Where it is kept who holds which token; PLAN-ID.leases in the working directory if not given.",
        show_default=False,
    ),
]
TLSCertificate = Annotated[
    str | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate, in PEM.", show_default=False)
]
TLSKey = Annotated[str | None, typer.Option("--tls-key", metavar="FILE", help="Its key, in PEM.", show_default=False)]
TLSClientCA = Annotated[
    str | None,
    typer.Option(
        "--tls-client-ca",
        metavar="FILE",
        help="Serve only clients whose certificate this authority has signed.",
        show_default=False,
    ),
]
LeaseSeconds = Annotated[
    float,
    typer.Option(
        "--lease",
        min=1.0,
        metavar="SECONDS",
        help="A pod that cannot have its node and is not asked about for so long loses its token.",
    ),
]
Patience = Annotated[
    float,
    typer.Option(
        "--patience",
        min=1.0,
        metavar="SECONDS",
        help="A pod that is held back for its node, and cannot have it for so long, may have any.",
    ),
]
MaxBody = Annotated[
    str,
    typer.Option("--max-body", metavar="QUANTITY", help="A question of more bytes is refused."),
]
