"""Pages whose rows and sentences are promises, each held by a test that is named beside it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from pathlib import Path

from tests.docs.blocks import ROOT


def unmatched(rows: Sequence[str], beginnings: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the rows that begin with none of these words, and the words with which no row begins."""
    return (
        [row for row in rows if not any(row.startswith(beginning) for beginning in beginnings)],
        [beginning for beginning in beginnings if not any(row.startswith(beginning) for row in rows)],
    )


def flowing(page: Path) -> str:
    """Return a page as one line."""
    return " ".join(page.read_text().split())


def is_there(test: str) -> bool:
    """Return whether there is a test, by its path and name as pytest writes them."""
    path, _, name = test.partition("::")
    parsed = ast.parse((ROOT / path).read_text())
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in parsed.body)
