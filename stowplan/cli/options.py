"""Options that commands share, each defined once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


class Preemption(StrEnum):
    """Whether a pod may lose its node."""

    NEVER = "never"
    BY_PRIORITY = "by-priority"


class ExecutorName(StrEnum):
    """Who evicts."""

    EVICTION_API = "eviction-api"
    DESCHEDULER = "descheduler"
    KOORDINATOR = "koordinator"


PROBLEM, SEARCH, OUTPUT = "Problem", "Search", "Output"

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="SNAPSHOT",
        help="What kubectl get nodes,pods,… -A -o json printed: files, directories, or - for standard input.",
        show_default=False,
    ),
]
Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        "-O",
        help="balance, pack, spread, repair, kube, or an objective file.",
        rich_help_panel=PROBLEM,
    ),
]
Release = Annotated[
    str, typer.Option("--profile", help="kube-scheduler release: 1.24 or 1.36.", rich_help_panel=PROBLEM)
]
Config = Annotated[
    str | None,
    typer.Option("--config", help="A KubeSchedulerConfiguration file.", show_default=False, rich_help_panel=PROBLEM),
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help="Which profile of --config; default the first.", rich_help_panel=PROBLEM),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        help="Measured load, for load-aware plugins: a file, or the URL of a load-watcher or Prometheus server.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Freeze = Annotated[
    list[str] | None,
    typer.Option(
        "--freeze",
        help="Namespace or label selector of pods that stay where they are; repeatable.",
        rich_help_panel=PROBLEM,
    ),
]
FreezeBare = Annotated[
    bool, typer.Option("--freeze-bare", help="Pods without a controller stay where they are.", rich_help_panel=PROBLEM)
]
MaxMoves = Annotated[
    int | None,
    typer.Option("--max-moves", min=0, help="At most so many pods leave their node.", rich_help_panel=PROBLEM),
]
PreemptionOption = Annotated[
    Preemption | None,
    typer.Option(
        "--preemption",
        help="Whether a pod may lose its node to place more pods of its own or a higher priority.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
Executor = Annotated[
    ExecutorName | None,
    typer.Option(
        "--executor",
        help="Who will evict; pods that it cannot move stay where they are.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
MayMove = Annotated[
    list[str] | None,
    typer.Option(
        "--may-move",
        metavar="REASON",
        help="A kind of reason for staying that shall not count, such as local-storage; repeatable.",
        rich_help_panel=PROBLEM,
    ),
]
EqualMoves = Annotated[
    bool,
    typer.Option("--equal-moves", help="Every move costs the same, whatever annotations say.", rich_help_panel=PROBLEM),
]
SampleNodes = Annotated[
    bool,
    typer.Option(
        "--sample-nodes",
        help="kube-scheduler looks for as many feasible nodes as percentageOfNodesToScore says, not for all.",
        rich_help_panel=PROBLEM,
    ),
]
SkipUnknownNodes = Annotated[
    bool,
    typer.Option(
        "--skip-unknown-nodes", help="Leave out pods on nodes that the snapshot lacks.", rich_help_panel=PROBLEM
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit",
        "-t",
        min=0.1,
        help="Seconds to search and prove; reading, playing kube-scheduler through and checking come on top.",
        rich_help_panel=SEARCH,
    ),
]
Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic",
        help="Same input and seed, same answer, on any machine; the time limit then counts work, not seconds.",
        rich_help_panel=SEARCH,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of everything random.", rich_help_panel=SEARCH)
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Threads of the solver.", show_default=False, rich_help_panel=SEARCH),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="QUANTITY",
        help="Memory that may be used, such as 2Gi; most of what is free if not given.",
        show_default=False,
        rich_help_panel=SEARCH,
    ),
]
Gap = Annotated[
    float,
    typer.Option(
        "--gap",
        min=0.0,
        max=0.99,
        help="End once every tier is proven to be at most this share of its value above the best, such as 0.01.",
        rich_help_panel=SEARCH,
    ),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="Form of the answer.", rich_help_panel=OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.", rich_help_panel=OUTPUT)]
DetailedExit = Annotated[
    bool,
    typer.Option("--detailed-exitcode", help="Exit 2 if the answer differs from today.", rich_help_panel=OUTPUT),
]
Everything = Annotated[
    bool, typer.Option("--all", help="Place every free pod anew, from an empty cluster.", rich_help_panel=PROBLEM)
]
VerifiedPath = Annotated[
    str,
    typer.Argument(
        metavar="DOCUMENT",
        help="What solve, compare, plan, drain or fit printed with -o json: a file, or - for standard input.",
        show_default=False,
    ),
]
Nodes = Annotated[int, typer.Option("--nodes", min=1, max=100_000, help="Number of nodes.")]
Pods = Annotated[int, typer.Option("--pods", min=0, max=1_000_000, help="Number of pods, DaemonSets not counted.")]
Fill = Annotated[
    float, typer.Option("--fill", min=0.01, max=2.0, help="Share of the CPU that the pods request, about.")
]
Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE",
        help="Recorded decisions: .jsonl or .jsonl.gz files, folders, or patterns.",
        show_default=False,
    ),
]
OtherRelease = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help="Decide as this release, 1.24 or 1.36, instead of the recorded one.",
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
        help="Also write our decisions as a trace, .jsonl or .jsonl.gz; ties go to the first node, nobody preempts.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Show = Annotated[int, typer.Option("--show", min=0, help="How many differences to show.", rich_help_panel=OUTPUT)]
SuiteName = Annotated[
    str,
    typer.Argument(
        metavar="SUITE",
        help="A folder, file or tar.gz of ROADEF/EURO 2012, vector bin packing (.vbp), Priority-Matters (.jsonl) or "
        "openb instances; or generated ones: triplets[:60_3], priority-matters[:nodes4_pods16_prio4_util100].",
        show_default=False,
    ),
]
Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instances",
        metavar="PATTERN",
        help="Only instances with such a name, such as 'b_*'; repeatable.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
First = Annotated[
    int | None,
    typer.Option("--first", min=1, help="Only so many of each group.", show_default=False, rich_help_panel=PROBLEM),
]
Count = Annotated[
    int, typer.Option("--count", min=1, max=100_000, help="How many instances to generate.", rich_help_panel=PROBLEM)
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=1, max=64, help="Instances solved at once.", rich_help_panel=SEARCH)
]
Solutions = Annotated[
    str | None,
    typer.Option(
        "--solutions",
        metavar="FOLDER",
        help="Keep the solutions there, in the format of the benchmark.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
WAVES = "Waves"
MaxPerOwner = Annotated[
    str,
    typer.Option(
        "--max-per-owner",
        metavar="NUMBER|PERCENT",
        help="Evictions of one owner's pods in a wave: a number, a share of its pods such as 25%, or any.",
        rich_help_panel=WAVES,
    ),
]
MaxPerNode = Annotated[
    int | None,
    typer.Option(
        "--max-per-node",
        min=1,
        help="Evictions from one node in a wave.",
        show_default=False,
        rich_help_panel=WAVES,
    ),
]
MaxPerNamespace = Annotated[
    int | None,
    typer.Option(
        "--max-per-namespace",
        min=1,
        help="Evictions in one namespace in a wave.",
        show_default=False,
        rich_help_panel=WAVES,
    ),
]
MaxPerWave = Annotated[
    int | None,
    typer.Option("--max-per-wave", min=1, help="Evictions in a wave.", show_default=False, rich_help_panel=WAVES),
]
ExpiresIn = Annotated[
    str,
    typer.Option(
        "--expires-in",
        metavar="DURATION",
        help="How long the plan may be begun, such as 30m, 2h, 1d.",
        rich_help_panel=WAVES,
    ),
]
WaveTimeout = Annotated[
    str,
    typer.Option(
        "--wave-timeout",
        metavar="DURATION",
        help="How long a wave may take; more, where pods may take long to end.",
        rich_help_panel=WAVES,
    ),
]
SolutionFile = Annotated[
    str | None,
    typer.Option(
        "--solution",
        metavar="FILE",
        help="The way to this solution, which solve -o json printed, instead of solving.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]
PlanPath = Annotated[
    str,
    typer.Argument(
        metavar="PLAN", help="What plan -o json printed: a file, or - for standard input.", show_default=False
    ),
]
