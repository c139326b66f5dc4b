"""``stowplan validate``: repeats recorded decisions of kube-scheduler."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.exit_codes import INTERRUPTED
from stowplan.cli.groups import grouped, only
from stowplan.cli.options import OUTPUT, Format
from stowplan.models.messages import log
from stowplan.models.settings import Settings

if TYPE_CHECKING:
    from stowplan.answers.validate import FileCounts
    from stowplan.plugins_compat.framework.profile import Profile

Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE",
        help="Recorded decisions: .jsonl or .jsonl.gz files, folders, or patterns.",
        show_default=False,
    ),
]
Show = Annotated[
    int, typer.Option("--show", min=0, help="Maximum number of differences to show.", rich_help_panel=OUTPUT)
]


@grouped
def validate(
    traces: Traces,
    *,
    release: opt.OtherRelease = None,
    config: opt.OtherConfig = None,
    settings: Annotated[Settings, only("scheduler")],
    record: opt.Record = None,
    show: Show = 20,
    output: opt.Output = Format.TABLE,
    quiet: opt.Quiet = False,
) -> None:
    """Repeat recorded scheduler decisions in the framework; exit 1 if any of them differs."""
    from pathlib import Path

    from stowplan.answers.validate import validate
    from stowplan.cli.session import emit, stoppable
    from stowplan.documents.validation import validation_document
    from stowplan.instances.traces import TraceWriter, trace_files
    from stowplan.models.errors import InputError
    from stowplan.plugins_compat.profiles import led_by, read_configuration
    from stowplan.report.rows import validation_rows
    from stowplan.report.text import show_validation

    def tell(counts: FileCounts) -> None:
        if not quiet:
            log(f"{counts.file}: {counts.pods} decisions, {counts.different} different")

    files = trace_files(traces)
    profile = _other_profile(release, config, settings.scheduler)
    content = led_by(read_configuration(config), profile.scheduler_name) if config and profile else None
    writer = TraceWriter(Path(record)) if record is not None else None
    with stoppable("with what was compared so far") as stop:
        validation = validate(
            files, profile=profile, config=content, record=writer, keep=show, stop=stop, progress=tell
        )
    if writer is not None and validation.complete:
        writer.close()
    if not validation.pods:
        raise InputError("contains no decision", field="TRACE")
    emit(
        output,
        lambda console: show_validation(console, validation),
        lambda: validation_document(validation),
        lambda: validation_rows(validation),
    )
    if not validation.complete:
        raise typer.Exit(INTERRUPTED)
    if not validation.holds:
        raise typer.Exit(1)


def _other_profile(release: str | None, config: str | None, scheduler: str | None) -> Profile | None:
    """Return the profile to use instead of the recorded one, if any."""
    from stowplan.models.settings import LATEST
    from stowplan.settings.problem import make_profile

    if (release, config, scheduler) == (None, None, None):
        return None
    settings = Settings(release=release or LATEST, config=config, scheduler=scheduler)
    return replace(make_profile(settings), tie_break="first")
