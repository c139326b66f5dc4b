"""Options of the commands that try things out or run errands: replay, drain, fit, frontier."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from stowplan.cli.options import OUTPUT, PROBLEM


class SteeringMode(StrEnum):
    """Who decides where replacements land."""

    NONE = "none"
    EXTENDER = "extender"


SteerReplay = Annotated[
    SteeringMode,
    typer.Option(
        "--steer",
        help="none: kube-scheduler alone decides. extender: it also asks the extender that prefers the planned nodes.",
        rich_help_panel=PROBLEM,
    ),
]
SteerPlan = Annotated[
    SteeringMode,
    typer.Option(
        "--steer",
        help="none: arrange the plan so that kube-scheduler, left alone, does most of it; takes as long again.",
        rich_help_panel=PROBLEM,
    ),
]
NoCordons = Annotated[
    bool, typer.Option("--no-cordons", help="With --steer none: cordon no nodes.", rich_help_panel=PROBLEM)
]
DrainedNodes = Annotated[list[str], typer.Argument(metavar="NODE", help="Nodes to empty.", show_default=False)]
From = Annotated[
    list[str],
    typer.Option(
        "--from", "-s", metavar="SNAPSHOT", help="The dump: files, directories, or -; repeatable.", show_default=False
    ),
]
PendingFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="Manifests of pods to fit in that the dump does not have, JSON or YAML; repeatable.",
        show_default=False,
    ),
]
WaitingPods = Annotated[
    list[str] | None,
    typer.Option(
        "--pod",
        metavar="NAMESPACE/NAME",
        help="A pod of the dump that waits and is to be fitted in; repeatable.",
        show_default=False,
    ),
]
Limits = Annotated[
    list[int] | None,
    typer.Option(
        "--moves",
        help="A limit on moves to try; repeatable. By default 0, 1, 2, 5, 10, … and none.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Drawing = Annotated[
    str | None,
    typer.Option(
        "--svg", metavar="FILE", help="Also draw the curve to this file.", show_default=False, rich_help_panel=OUTPUT
    ),
]
