"""Values as notebooks and interactive sessions show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, rows: Iterable[Sequence[object]], header: Sequence[object] = ()) -> str:
    """Return a table as HTML; every text is escaped, and the first cell of a row is its heading."""
    head = f"<thead>{_row(header, 'th')}</thead>" if header else ""
    body = "".join(_row(row, "td") for row in rows)
    return f"<table><caption>{escape(title)}</caption>{head}<tbody>{body}</tbody></table>"


def number(value: float | None) -> str:
    """Write a number for a reader; nothing for ``None``."""
    return "" if value is None else f"{value:,.6g}" if abs(value) < 1_000_000 else f"{value:,.0f}"


def _row(cells: Sequence[object], tag: str) -> str:
    first, *others = (escape(str(cell)) for cell in cells)
    return f"<tr><th>{first}</th>{''.join(f'<{tag}>{cell}</{tag}>' for cell in others)}</tr>"
