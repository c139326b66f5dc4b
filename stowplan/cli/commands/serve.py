"""``stowplan serve``: a scheduler extender that steers replacements."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli.options import PlanPath
from stowplan.serving.mode import Mode

Bind = Annotated[str, typer.Option("--bind", metavar="HOST:PORT", help="Address to listen on; port 0 is any free one.")]
ServingMode = Annotated[
    Mode,
    typer.Option("--mode", help="prioritize: prefer the planned node. filter: allow no other node."),
]
State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="File that records which pod holds which token. Default: PLAN-ID.leases in the working directory.",
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
        help="Accept only clients with a certificate of this authority, in PEM.",
        show_default=False,
    ),
]
LeaseSeconds = Annotated[
    float,
    typer.Option(
        "--lease",
        min=1.0,
        metavar="SECONDS",
        help="Seconds without a request about a pod after which its lease ends.",
    ),
]
Patience = Annotated[
    float,
    typer.Option(
        "--patience",
        min=1.0,
        metavar="SECONDS",
        help="Seconds after which a pod that must wait for its node may use any.",
    ),
]
MaxBody = Annotated[
    str,
    typer.Option("--max-body", metavar="QUANTITY", help="Maximum size of a request."),
]


def serve(
    plan: PlanPath,
    bind: Bind = "127.0.0.1:8888",
    mode: ServingMode = Mode.PRIORITIZE,
    state: State = None,
    certificate: TLSCertificate = None,
    key: TLSKey = None,
    client_ca: TLSClientCA = None,
    lease: LeaseSeconds = 360.0,
    patience: Patience = 300.0,
    max_body: MaxBody = "64Mi",
) -> None:
    """Serve a plan as a scheduler extender that steers replacements to their nodes."""
    from stowplan.documents.plan import read_plan
    from stowplan.serving.run import byte_count, run_server
    from stowplan.serving.server import Serving

    document = read_plan(plan)
    largest = byte_count(max_body, "--max-body")
    serving = Serving(mode, lease, patience, largest)
    run_server(document, bind, serving, state, certificate, key, client_ca)
