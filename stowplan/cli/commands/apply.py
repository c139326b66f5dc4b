"""``stowplan apply``: carries out a plan in a live cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.applying.options import RULES, ApplyOptions
from stowplan.cli import options as opt
from stowplan.cli.cluster_options import Connection
from stowplan.cli.exit_codes import INTERRUPTED
from stowplan.cli.groups import grouped, only
from stowplan.cli.options import Format
from stowplan.models.settings import Settings

if TYPE_CHECKING:
    from stowplan.applying.apply import Applied
    from stowplan.applying.preview import Preview
    from stowplan.models.plan import Plan


class ReplanMode(StrEnum):
    """What is done with a plan that was made of the rest of another."""

    SHOW = "show"
    AUTO = "auto"


SERVE_MISSING = (
    "is missing: the plan was made to be steered, and without stowplan serve kube-scheduler puts pods on other "
    "nodes; --unsteered carries it out nevertheless, also where something else steers"
)

Yes = Annotated[bool, typer.Option("--yes", help="Carry out the plan; without this option, nothing is changed.")]
JournalFile = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="File that records the steps, to resume from. Default: PLAN-ID.journal in the working directory.",
        show_default=False,
    ),
]
ExpectHash = Annotated[
    str | None,
    typer.Option(
        "--expect-hash",
        metavar="SHA256",
        help="Refuse a plan whose file has another SHA-256 (as sha256sum prints) than the one that was reviewed.",
        show_default=False,
    ),
]
ServerDryRun = Annotated[
    bool,
    typer.Option("--server-dry-run", help="Without --yes: also send the evictions of the next wave as dry runs."),
]
Unassisted = Annotated[
    bool,
    typer.Option(
        "--unsteered",
        help="Carry out a plan that was made to be steered although --serve names no server.",
        rich_help_panel=RULES,
    ),
]
Replan = Annotated[
    ReplanMode | None,
    typer.Option(
        "--replan",
        help="If the rest of the plan does not fit the cluster any more, make it anew within the same limits on moves. "
        "show: print it, write it to a file, and stop; auto: carry it out.",
        show_default=False,
        rich_help_panel=RULES,
    ),
]
ServeCA = Annotated[
    str | None,
    typer.Option(
        "--serve-ca",
        metavar="FILE",
        help="Certificate authority of stowplan serve, in PEM.",
        show_default=False,
    ),
]
ServeCertificate = Annotated[
    str | None,
    typer.Option(
        "--serve-cert", metavar="FILE", help="Client certificate for stowplan serve, in PEM.", show_default=False
    ),
]
ServeKey = Annotated[
    str | None, typer.Option("--serve-key", metavar="FILE", help="Its key, in PEM.", show_default=False)
]


@dataclass(frozen=True, slots=True)
class Trust:
    """How the connection to ``stowplan serve`` is secured."""

    serve_ca: ServeCA = None
    serve_cert: ServeCertificate = None
    serve_key: ServeKey = None

    def secured(self, options: ApplyOptions) -> ApplyOptions:
        """Return options with the connection checked and secured.

        Raises
        ------
        InputError
            If the extender cannot be reached this way.
        """
        from stowplan.applying.extender_client import trust
        from stowplan.models.errors import InputError
        from stowplan.serving.url import read_url

        files = (self.serve_ca, self.serve_cert, self.serve_key)
        if options.serve is None and files != (None, None, None):
            raise InputError("is missing; --serve-ca, --serve-cert, and --serve-key need it", field="--serve")
        url = None if options.serve is None else read_url(options.serve, "--serve")
        return replace(options, serve=url, tls=trust(*files))


@grouped
def apply(
    path: opt.PlanPath,
    *,
    yes: Yes = False,
    journal: JournalFile = None,
    expect_hash: ExpectHash = None,
    server_dry_run: ServerDryRun = False,
    unassisted: Unassisted = False,
    replan: Replan = None,
    partial: opt.PartialPlan = False,
    metrics_file: opt.MetricsFile = None,
    connection: Connection,
    options: ApplyOptions,
    trust: Trust,
    settings: Annotated[Settings, only("config")],
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Carry out a plan in a live cluster, wave by wave; without --yes, print what would be done."""
    from pathlib import Path

    from stowplan.applying.apply import Applied, apply
    from stowplan.applying.dry_run import profile_of
    from stowplan.applying.preview import preview
    from stowplan.cli.session import stoppable, warn
    from stowplan.documents.plan import read_plan, read_reviewed_plan
    from stowplan.models.errors import InputError
    from stowplan.models.messages import log
    from stowplan.run_metrics.record import recorded

    about: dict[str, str] = {}

    def tell(line: str) -> None:
        if not quiet:
            log(line, about=about)

    if metrics_file is not None and not yes:
        raise InputError("needs --yes", field="--metrics-file")
    if yes and server_dry_run:
        raise InputError("excludes --yes", field="--server-dry-run")
    _require_namespace(options.lease_namespace)
    options = trust.secured(options)
    _check_replan(replan, yes, options)
    with recorded(metrics_file, "apply", warn) as metrics:
        plan = read_plan(path) if expect_hash is None else read_reviewed_plan(path, expect_hash)
        about["plan"] = plan.id
        try:
            plan.require_whole(partial)
            plan.require_cluster()
        except InputError as error:
            raise error.in_file(path) from None
        _require_wave(plan, path, options.stop_after)
        if plan.steered and plan.tokens and options.serve is None and not unassisted:
            if yes:
                raise InputError(SERVE_MISSING, field="--serve")
            if not quiet:
                warn(f"--serve {SERVE_MISSING}")
        kubectl = connection.kubectl()
        place = Path(journal if journal is not None else f"{plan.id}.journal")
        result: Applied | Preview
        with stoppable("when the request under way is answered") as stop:
            try:
                profile = profile_of(plan, settings.config)
                if yes and replan is not None:
                    from stowplan.applying.replanning import Replanning, apply_and_replan
                    from stowplan.cli.progress import ready_to_search

                    replanning = Replanning(replan is ReplanMode.AUTO, ready_to_search(), settings.config)
                    result = apply_and_replan(plan, kubectl, place, profile, options, replanning, stop=stop, tell=tell)
                elif yes:
                    result = apply(plan, kubectl, place, profile, options, stop=stop, tell=tell)
                else:
                    result = preview(plan, kubectl, place, profile, options, ask_server=server_dry_run, stop=stop)
            except InputError as error:
                raise error.in_file(path) from None
        if isinstance(result, Applied):
            metrics.applied(result)
        _report(result, output)


def _check_replan(replan: ReplanMode | None, yes: bool, options: ApplyOptions) -> None:
    """Refuse combinations in which a new plan could not be what the user expects."""
    from stowplan.models.errors import InputError

    if replan is not None and not yes:
        raise InputError("needs --yes", field="--replan")
    if replan is ReplanMode.AUTO and options.serve is not None:
        raise InputError("auto excludes --serve, which steers one plan; show writes the new one", field="--replan")
    if replan is ReplanMode.AUTO and options.stop_after is not None:
        raise InputError("auto excludes --stop-after-wave, since a new plan has other waves", field="--replan")


def _require_namespace(name: str) -> None:
    from stowplan.applying.apply import NAME
    from stowplan.models.errors import InputError

    if not NAME.fullmatch(name):
        raise InputError(f"{name!r} is not the name of a namespace", field="--lease-namespace")


def _require_wave(plan: Plan, path: str, number: int | None) -> None:
    from stowplan.models.errors import InputError
    from stowplan.models.words import plural

    if number is not None and number > len(plan.waves):
        raise InputError(f"is {number}; {path} has {plural(len(plan.waves), 'wave')}", field="--stop-after-wave")


def _report(result: Applied | Preview, output: Format) -> None:
    """Print the result, and exit with its exit code."""
    from stowplan.applying.apply import Applied
    from stowplan.cli.session import emit
    from stowplan.documents.application import application_document
    from stowplan.report.application import application_rows, show_application

    found = application_document(result)
    emit(
        output,
        lambda console: show_application(console, found, wide=output is Format.WIDE),
        lambda: found,
        lambda: application_rows(found),
    )
    if isinstance(result, Applied) and result.interrupted:
        raise typer.Exit(INTERRUPTED)
    would_refuse = not isinstance(result, Applied) and bool(result.refusals)
    if found.stopped or would_refuse or any(move.stage == "refused" for move in found.moves):
        raise typer.Exit(1)
