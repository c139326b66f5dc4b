"""``stowplan serve``: a scheduler extender that steers replacements."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli.groups import grouped
from stowplan.cli.options import PlanPath
from stowplan.serving.options import Listening, Serving

State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="File that records which pod holds which token. Default: PLAN-ID.leases in the working directory.",
        show_default=False,
    ),
]


@grouped
def serve(
    plan: PlanPath,
    *,
    listening: Listening,
    serving: Serving,
    state: State = None,
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
    run_server(served, listening, serving, state)
