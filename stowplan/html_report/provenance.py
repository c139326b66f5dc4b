"""How an answer was made: what is needed to make it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version

from stowplan.html_report.page import Cell, Heading, Section, Table
from stowplan.models.options import Options
from stowplan.models.settings import Settings, SettingsDocument
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.problem import settings_document


def provenance(compiled: Compiled, settings: Settings, options: Options) -> Section:
    """Return the section that says how an answer was made."""
    return provenance_of(compiled.snapshot.fingerprint, settings_document(compiled, settings), search_words(options))


def search_words(options: Options) -> str:
    """Return the options of a search in words."""
    words = f"time limit {options.time_limit:g} s, seed {options.seed}"
    return words + (", deterministic" if options.deterministic else "")


def provenance_of(fingerprint: str, settings: SettingsDocument, search: str) -> Section:
    """Return the same from a document's settings.

    Parameters
    ----------
    search
        With which options was searched; empty if there was no search.
    """
    rows = {"snapshot, SHA-256 of its placement": fingerprint}
    rows |= {"search": search} if search else {}
    for name, value in settings.model_dump(by_alias=True, mode="json").items():
        if value not in (None, "", [], {}, False) and name != "prices":
            rows[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return made_with(rows)


def made_with(rows: Mapping[str, str]) -> Section:
    """Return the section from names and values."""
    cells = [[Cell(name), Cell(value)] for name, value in {"stowplan": version("stowplan"), **rows}.items()]
    headings = [Heading("setting"), Heading("value", prose=True)]
    table = Table("What is needed to make it again", headings, cells, sortable=False)
    return Section("settings", "Settings", [table])
