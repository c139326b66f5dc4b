"""What a page consists of: a headline, and sections with tables, drawings, and lines. It knows nothing of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_ROWS = 2_000
"""Most rows of a table of a page; a page with all moves of a large cluster would open slowly."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    text
        What is read in it.
    order
        What its column is sorted by, if not by the text.
    shares
        Fractions of a whole, today and in the answer, which are drawn as a bar with a mark.
    best
        Whether it is the best of its row.
    """

    text: str
    order: float | None = None
    shares: tuple[float, float] | None = None
    best: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a column.

    Parameters
    ----------
    hint
        Says more about it.
    numeric
        Whether its cells are numbers, which are aligned to the right.
    prose
        Whether its cells are sentences, which may wrap; others stay on one line.
    """

    text: str
    hint: str = ""
    numeric: bool = False
    prose: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column names the rows.

    Parameters
    ----------
    caption
        What its rows are.
    left_out
        Number of further rows, and ``source`` says where they are found.
    """

    caption: str
    headings: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]
    left_out: int = 0
    source: str = ""
    sortable: bool = True


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing: the text of an SVG file, and a sentence on how to read it.

    Parameters
    ----------
    wide
        Whether it needs the whole width of the page; others may be side by side.
    """

    svg: str
    caption: str
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Sentences, one below the other."""

    lines: Sequence[str]


Block = Table | Drawing | Lines


@dataclass(frozen=True, slots=True)
class Section:
    """A section; ``anchor`` is its place in the address of the page."""

    anchor: str
    title: str
    blocks: Sequence[Block]
    intro: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Parameters
    ----------
    title
        Shown by the browser.
    headline
        The answer, in one sentence.
    lines
        What belongs to the answer.
    warnings
        What has to be known before anything else, such as what is missing in the input.
    sections
        Sections without blocks are left out.
    """

    title: str
    headline: str
    sections: Sequence[Section]
    lines: Sequence[str] = ()
    warnings: Sequence[str] = field(default=())


def long_table(caption: str, headings: Sequence[Heading], rows: Sequence[Sequence[Cell]], source: str) -> Table:
    """Return a table with as many rows as a page holds; ``source`` says where the others are found."""
    return Table(caption, headings, rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS), source)


def counts(number: int) -> Cell:
    """Return a cell with a number."""
    return Cell(f"{number:,}", number)


def pair(before: int, after: int) -> Cell:
    """Return a cell with a number today and in the answer; it is sorted by the latter."""
    return Cell(f"{before:,} → {after:,}" if before != after else f"{after:,}", after)


def share_pair(before: float | None, after: float | None) -> Cell:
    """Return a cell with a share today and in the answer, drawn as a bar."""
    if before is None or after is None:
        return Cell("–", -1)
    text = f"{before:.0%} → {after:.0%}" if f"{before:.0%}" != f"{after:.0%}" else f"{after:.0%}"
    return Cell(text, round(after, 4), (before, after))
