"""Reports of a question that was asked again."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from stowplan.bundles.rerun import Rerun
from stowplan.models.words import plural
from stowplan.report.rows import Row
from stowplan.report.tables import say
from stowplan.report.words import figure


def show_rerun(console: Console, found: Rerun) -> None:
    """Print whether the answer is the same, and how it differs."""
    document = found.then
    made = f"{document.command} by stowplan {document.stowplan}, Python {document.python}, {document.platform}"
    if found.same:
        console.print(Text("The same answer.", style="bold green"))
    else:
        console.print(Text(f"Another answer: {plural(len(found.differences), 'difference')}.", style="bold red"))
        for line in found.differences:
            say(console, f"  {line}")
    say(console, f"The bundle: {made}{', anonymized' if document.anonymized else ''}.")
    for tier in found.now.tiers:
        say(console, f"{tier.name}: {figure(tier.value)}, lower bound {figure(tier.bound)}")
    for remark in found.remarks:
        say(console, f"note: {remark}", style="dim")


def rerun_rows(found: Rerun) -> Iterator[Row]:
    """Yield one row for every difference."""
    yield ["difference"]
    for line in found.differences:
        yield [line]
