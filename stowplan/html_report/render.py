"""A page as HTML: one file with its style sheet and script inside, and a policy that forbids everything else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from stowplan.html_report.page import Block, Drawing, Lines, Page, Table
from stowplan.models.errors import InputError

FILTERED = 12
"""Rows from which a table has a field to search it."""

SHOWN = 25
"""Rows of a table that are shown before the reader asks for the rest."""


def write_page(page: Page, file: str) -> None:
    """Write a page as one HTML file.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        Path(file).write_text(render(page), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=file) from None


def require_writable(file: str) -> None:
    """Make sure that a file can be written, before a long search whose answer it is to hold.

    Raises
    ------
    InputError
        If it cannot be.
    """
    path = Path(file)
    existed = path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=file) from None


def render(page: Page) -> str:
    """Return a page as HTML. Every text of it is escaped; drawings escape theirs themselves."""
    template, style, script = _parts()
    return template.render(
        page=page,
        sections=[section for section in page.sections if section.blocks],
        policy=_policy(script),
        style=Markup(style),
        script=Markup(script),
        filtered=FILTERED,
        shown=SHOWN,
    )


@cache
def _parts() -> tuple[Template, str, str]:
    """Return the template, the style sheet, and the script."""
    folder = files("stowplan.html_report")
    template, style, script = (
        folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")
    )
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters |= {"kind": _kind, "drawn": lambda drawing: Markup(drawing.svg), "bar": _bar}
    return environment.from_string(template), style, script


def _policy(script: str) -> str:
    """Return the content security policy: this script and no other, styles inside the page, and no request at all."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"


def _kind(block: Block) -> str:
    match block:
        case Table():
            return "table"
        case Drawing():
            return "drawing"
        case Lines():
            return "lines"


def _bar(shares: tuple[float, float]) -> str:
    """Return the two shares of a bar as values of the style sheet, at most the whole."""
    before, after = (f"{100 * min(max(share, 0.0), 1.0):.0f}%" for share in shares)
    return f"--a:{before};--b:{after}"
