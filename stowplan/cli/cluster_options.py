"""Options of commands that talk to a live cluster."""

from __future__ import annotations

from typing import Annotated

import typer

CLUSTER, RULES = "Cluster", "Stop rules"

Context = Annotated[
    str | None,
    typer.Option("--context", help="Context of the kubeconfig.", show_default=False, rich_help_panel=CLUSTER),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig", metavar="FILE", help="As kubectl takes it.", show_default=False, rich_help_panel=CLUSTER
    ),
]
RequestTimeout = Annotated[
    float,
    typer.Option("--request-timeout", min=0.1, help="Seconds that one request may take.", rich_help_panel=CLUSTER),
]
ChunkSize = Annotated[
    int,
    typer.Option("--chunk-size", min=0, help="Objects a request; 0 asks for all at once.", rich_help_panel=CLUSTER),
]
SnapshotFile = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write it, as .json or .json.gz; - prints it."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Carry the plan out; without it, nothing is changed.")]
JournalFile = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="Where what is done is kept, to go on from; PLAN-ID.journal in the working directory if not given.",
        show_default=False,
    ),
]
ServerDryRun = Annotated[
    bool,
    typer.Option("--server-dry-run", help="Without --yes: also ask the server whether it would evict the next wave."),
]
ServeURL = Annotated[
    str | None,
    typer.Option(
        "--serve",
        metavar="URL",
        help="Where stowplan serve is told which wave begins, such as http://127.0.0.1:8888/v1.",
        show_default=False,
    ),
]
ServeCA = Annotated[
    str | None,
    typer.Option(
        "--serve-ca",
        metavar="FILE",
        help="Who has signed the certificate of stowplan serve, in PEM.",
        show_default=False,
    ),
]
ServeCertificate = Annotated[
    str | None,
    typer.Option(
        "--serve-cert", metavar="FILE", help="Certificate that is shown to stowplan serve, in PEM.", show_default=False
    ),
]
ServeKey = Annotated[
    str | None, typer.Option("--serve-key", metavar="FILE", help="Its key, in PEM.", show_default=False)
]
WaveTimeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        min=0.1,
        help="Seconds that each wave may take; what the plan says if not given.",
        show_default=False,
        rich_help_panel=RULES,
    ),
]
PendingLimit = Annotated[
    float,
    typer.Option(
        "--pending-limit",
        min=0.0,
        help="Seconds that a replacement may be without a node, or missing.",
        rich_help_panel=RULES,
    ),
]
AllowElsewhere = Annotated[
    int,
    typer.Option(
        "--allow-elsewhere",
        min=0,
        help="How many replacements may come up on another node than planned.",
        rich_help_panel=RULES,
    ),
]
StopAfter = Annotated[
    int | None,
    typer.Option(
        "--stop-after-wave",
        min=1,
        help="Stop when this wave is over.",
        show_default=False,
        rich_help_panel=RULES,
    ),
]
Poll = Annotated[
    float,
    typer.Option("--poll", min=0.01, help="Seconds between two looks at the cluster.", rich_help_panel=CLUSTER),
]
