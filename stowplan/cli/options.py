"""Arguments and options that several commands share, besides fields of settings."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from stowplan.models.command_line import PROBLEM
from stowplan.models.settings import RELEASES

OUTPUT = "Output"


class Format(StrEnum):
    """Format of printed answers."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


class SteeringMode(StrEnum):
    """Whether replays steer replacements."""

    NONE = "none"
    EXTENDER = "extender"


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="SNAPSHOT",
        help="Output of kubectl get nodes,pods,… -A -o json: files, directories, or - for standard input.",
        show_default=False,
    ),
]
From = Annotated[
    list[str],
    typer.Option(
        "--from",
        "-s",
        metavar="SNAPSHOT",
        help="The snapshot: files, directories, or -; repeatable.",
        show_default=False,
    ),
]
PlanPath = Annotated[
    str,
    typer.Argument(metavar="PLAN", help="Output of plan -o json: a file, or - for standard input.", show_default=False),
]
SkipUnknownNodes = Annotated[
    bool,
    typer.Option(
        "--skip-unknown-nodes", help="Ignore pods on nodes that are missing from the snapshot.", rich_help_panel=PROBLEM
    ),
]
Partial = Annotated[
    bool,
    typer.Option("--partial", help="Plan although pods of the cluster are missing.", rich_help_panel=PROBLEM),
]
PartialPlan = Annotated[
    bool,
    typer.Option("--partial", help="Go on although the plan was made from an incomplete dump."),
]
OtherRelease = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help=f"Decide as this release, {', '.join(RELEASES[:-1])} or {RELEASES[-1]}, instead of the recorded one.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
OtherConfig = Annotated[
    str | None,
    typer.Option(
        "--config",
        help="Decide with this KubeSchedulerConfiguration instead of the recorded one.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Record = Annotated[
    str | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Also write the decisions as a trace, .jsonl or .jsonl.gz; ties go to the first node, no preemption.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="Output format.", rich_help_panel=OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.", rich_help_panel=OUTPUT)]
DetailedExit = Annotated[
    bool,
    typer.Option("--detailed-exitcode", help="Exit 2 if the answer differs from today.", rich_help_panel=OUTPUT),
]
MetricsFile = Annotated[
    str | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE",
        help="Also write metrics of this run, and counts of all, to this file, for Prometheus' textfile collector.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Report = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Also write a report to this file: one HTML page, which needs no network.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
