"""Commands that talk to a live cluster: snapshot, apply."""

from __future__ import annotations

import sys

import typer

from stowplan.cli import cluster_options as on
from stowplan.cli import options as opt
from stowplan.cli.choices import INTERRUPTED
from stowplan.cli.options import Format


def snapshot(
    output: on.SnapshotFile,
    context: on.Context = None,
    kubeconfig: on.Kubeconfig = None,
    request_timeout: on.RequestTimeout = 60.0,
    chunk_size: on.ChunkSize = 500,
    quiet: opt.Quiet = False,
) -> None:
    """Write all that stowplan reads of a live cluster to a file."""
    from pathlib import Path

    from stowplan.cli.session import warn
    from stowplan.cluster.kubectl import Kubectl
    from stowplan.cluster.snapshot import kinds_served, save, take

    kubectl = Kubectl(context, kubeconfig, request_timeout)
    taken = take(kubectl, kinds_served(kubectl), chunk=chunk_size)
    for note in taken.notes:
        warn(note)
    if output == "-":
        sys.stdout.buffer.write(taken.data)
        return
    save(taken.data, Path(output))
    if not quiet:
        told = ", ".join(f"{count} {kind}" for kind, count in taken.counts.most_common())
        print(f"stowplan: {output}: {told}", file=sys.stderr)


def apply(
    plan: opt.PlanPath,
    yes: on.Yes = False,
    journal: on.JournalFile = None,
    server_dry_run: on.ServerDryRun = False,
    serve: on.ServeURL = None,
    serve_ca: on.ServeCA = None,
    serve_cert: on.ServeCertificate = None,
    serve_key: on.ServeKey = None,
    context: on.Context = None,
    kubeconfig: on.Kubeconfig = None,
    request_timeout: on.RequestTimeout = 60.0,
    poll: on.Poll = 2.0,
    timeout: on.WaveTimeout = None,
    pending_limit: on.PendingLimit = 120.0,
    allow_elsewhere: on.AllowElsewhere = 0,
    stop_after_wave: on.StopAfter = None,
    config: opt.Config = None,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Carry a plan out in a live cluster, wave by wave; without --yes, say what would be done."""
    from pathlib import Path

    from stowplan.applying.apply import Applied, apply
    from stowplan.applying.dry_run import profile_of
    from stowplan.applying.extender_client import trust
    from stowplan.applying.options import ApplyOptions
    from stowplan.applying.preview import preview
    from stowplan.cli.session import emit, stoppable
    from stowplan.cluster.kubectl import Kubectl
    from stowplan.documents.application import application_document
    from stowplan.documents.plan import read_plan
    from stowplan.models.errors import InputError
    from stowplan.report.application import application_rows, show_application
    from stowplan.report.figures import plural
    from stowplan.serving.url import read_url

    def tell(line: str) -> None:
        if not quiet:
            print(f"stowplan: {line}", file=sys.stderr, flush=True)

    if yes and server_dry_run:
        raise InputError("says what would be done; leave out --yes", field="--server-dry-run")
    if serve is not None:
        serve = read_url(serve, "--serve")
    elif (serve_ca, serve_cert, serve_key) != (None, None, None):
        raise InputError("is missing; --serve-ca, --serve-cert and --serve-key are for it", field="--serve")
    tls = trust(serve_ca, serve_cert, serve_key)
    document = read_plan(plan)
    if stop_after_wave is not None and stop_after_wave > len(document.waves):
        raise InputError(
            f"is {stop_after_wave}; {plan} has {plural(len(document.waves), 'wave')}", field="--stop-after-wave"
        )
    kubectl = Kubectl(context, kubeconfig, request_timeout)
    place = Path(journal if journal is not None else f"{document.id}.journal")
    options = ApplyOptions(timeout, pending_limit, allow_elsewhere, stop_after_wave, poll, serve, tls)
    with stoppable("when the request under way is answered") as stop:
        try:
            profile = profile_of(document, config)
            result = (
                apply(document, kubectl, place, profile, options, stop=stop, tell=tell)
                if yes
                else preview(document, kubectl, place, profile, ask_server=server_dry_run, stop=stop)
            )
        except InputError as error:
            raise error.in_file(plan) from None
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
