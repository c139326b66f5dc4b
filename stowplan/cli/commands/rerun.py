"""``stowplan rerun``: asks the question of a bundle again, and says whether the answer is the same."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.groups import grouped
from stowplan.cli.options import Format

BundlePath = Annotated[
    str, typer.Argument(metavar="BUNDLE", help="What --bundle or rerun has written.", show_default=False)
]


@grouped
def rerun(bundle: BundlePath, output: opt.Output = Format.TABLE, quiet: opt.Quiet = False) -> None:
    """Ask the question of a bundle again; exit 1 if the answer is another one."""
    import tempfile
    from pathlib import Path

    from stowplan.bundles.bundle import read_bundle
    from stowplan.bundles.making import restored
    from stowplan.bundles.rerun import problem_of
    from stowplan.bundles.rerun import rerun as ask_again
    from stowplan.cli.progress import ready, reported
    from stowplan.cli.session import emit, stoppable, warn
    from stowplan.documents.rerun import rerun_document
    from stowplan.models.errors import InputError
    from stowplan.report.rerun import rerun_rows, show_rerun

    read = read_bundle(bundle)
    with tempfile.TemporaryDirectory(prefix="stowplan-") as folder, stoppable() as stop:
        try:
            question = restored(read, Path(folder))
            compiled = problem_of(question)
        except InputError as error:
            raise error.in_file(bundle) from None
        for gap in question.snapshot.gaps:
            warn(gap)
        options = ready(compiled.problem, question.options, quiet, stop)
        with reported(compiled.problem.tiers, quiet, options=options) as progress:
            found = ask_again(read.document, question, compiled, options, stop=stop, progress=progress)
    emit(output, lambda console: show_rerun(console, found), lambda: rerun_document(found), lambda: rerun_rows(found))
    if not found.same:
        raise typer.Exit(1)
