"""Tables that fit a terminal: names are never broken, and labels wrap at spaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.markup import escape
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from stowplan.models.words import printable
from stowplan.report.limits import SHOWN

ARROW = "→"


class Printable(RenderHook):
    """Writes out the control characters of names and messages; those by which a console colors its output stay."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Return what is to be shown, without them."""
        return [_Printable(one) for one in renderables]


class _Printable:
    def __init__(self, shown: ConsoleRenderable) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._shown, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._shown)


def say(console: Console, line: str | Text, *, style: str | None = None) -> None:
    """Print a line that wraps at spaces alone: a name that is wider than the terminal gets a line of its own.

    What goes on below is indented as the line is. In a file or a pipe it is one line.
    """
    text = Text(line) if isinstance(line, str) else line
    if console.soft_wrap:
        console.print(text, style=style, overflow="ignore", crop=False)
        return
    indent = len(text.plain) - len(text.plain.lstrip(" "))
    body = text[indent:] if indent else text.copy()
    # Text that is asked to ignore what overflows is not wrapped; text that is so itself is, and loses nothing.
    body.overflow = "ignore"
    for part in body.wrap(console, max(1, console.width - indent)):
        shown = Text(" " * indent).append_text(part) if indent else part
        console.print(shown, style=style, overflow="ignore", crop=False)


def bar(share: float, length: int) -> str:
    """Draw a share as a bar of eighths of a character; a full one has so many characters."""
    eighths = round(max(0.0, min(1.0, share)) * length * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def plain_table(*, tight: bool = False) -> Table:
    """Return a table without lines."""
    return Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1 if tight else 2, 0, 0))


def label_column(table: Table, title: str, labels: Iterable[str]) -> None:
    """Add the first column: a label wraps at its spaces where there is no room for it."""
    longest = max((len(word) for label in labels for word in label.split()), default=0)
    table.add_column(escape(title), min_width=longest, overflow="fold")


def show_lines(console: Console, lines: Sequence[str], title: str = "", *, wide: bool = False) -> None:
    """Print lines about single pods, indented, below a title if there is one; only the first ones unless ``wide``."""
    if title and lines:
        console.print()
        console.print(title)
    shown = lines if wide else lines[:SHOWN]
    for line in shown:
        say(console, f"  {line}")
    if len(shown) < len(lines):
        console.print(f"  … and {len(lines) - len(shown)} more; -o wide shows all", style="dim")


def show_names(
    console: Console, titles: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    """Print a table of names; where it is wider than the terminal, each row on lines of its own instead.

    Parameters
    ----------
    right
        Titles of the columns that are aligned to the right.
    """
    table = plain_table()
    for title in titles:
        table.add_column(title, no_wrap=True, justify="right" if title in right else "left")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    if Measurement.get(console, console.options.update(max_width=10_000), table).maximum <= console.width:
        console.print(table)
        return
    for row in rows:
        names = [cell for title, cell in zip(titles, row, strict=True) if cell and title not in right]
        numbers = [cell for title, cell in zip(titles, row, strict=True) if cell and title in right]
        say(console, " ".join([*numbers, names[0]]))
        say(console, "    " + "  ".join(names[1:]))
