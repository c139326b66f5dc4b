"""``stowplan serve``: a scheduler extender that steers replacements."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli.groups import grouped
from stowplan.cli.options import PlanPath
from stowplan.serving.options import Serving

Bind = Annotated[str, typer.Option("--bind", metavar="HOST:PORT", help="Address to listen on; port 0 is any free one.")]
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


@grouped
def serve(
    plan: PlanPath,
    *,
    bind: Bind = "127.0.0.1:8888",
    serving: Serving,
    state: State = None,
    certificate: TLSCertificate = None,
    key: TLSKey = None,
    client_ca: TLSClientCA = None,
) -> None:
    """Serve a plan as a scheduler extender that steers replacements to their nodes."""
    from stowplan.documents.plan import read_plan
    from stowplan.models.errors import InputError
    from stowplan.serving.run import run_server

    served = read_plan(plan)
    try:
        served.require_cluster()
    except InputError as error:
        raise error.in_file(plan) from None
    run_server(served, bind, serving, state, certificate, key, client_ca)
