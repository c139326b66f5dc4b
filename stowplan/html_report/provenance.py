"""How an answer was made: what is needed to make it again."""

from __future__ import annotations

import json
from importlib.metadata import version

from stowplan.html_report.page import Cell, Heading, Section, Table
from stowplan.models.options import Options
from stowplan.models.settings import Settings, SettingsDocument
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.problem import settings_document


def provenance(compiled: Compiled, settings: Settings, options: Options) -> Section:
    """Return the section that says how an answer was made."""
    searched = f"time limit {options.time_limit:g} s, seed {options.seed}"
    searched += ", deterministic" if options.deterministic else ""
    return provenance_of(compiled.snapshot.fingerprint, settings_document(compiled, settings), searched)


def provenance_of(fingerprint: str, settings: SettingsDocument, search: str) -> Section:
    """Return the same from a document's settings.

    Parameters
    ----------
    search
        With which options was searched; empty if there was no search.
    """
    rows = {"stowplan": version("stowplan"), "snapshot, SHA-256 of its placement": fingerprint}
    rows |= {"search": search} if search else {}
    for name, value in settings.model_dump(by_alias=True, mode="json").items():
        if value not in (None, "", [], {}, False) and name != "prices":
            rows[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    cells = [[Cell(name), Cell(value)] for name, value in rows.items()]
    table = Table("What is needed to make it again", [Heading("setting"), Heading("value")], cells, sortable=False)
    return Section("made", "How this was made", [table])
