"""Every row of the page on the systems of the articles names files and tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.docs.blocks import ROOT

PAGE = ROOT / "docs" / "seeds.md"
TESTS = ROOT / "tests"
WITHOUT = {"backoff, events, metrics, trace, parallelism, bind timeouts"}
"""Parts that have no meaning without a clock, and so no test."""


def rows() -> list[list[str]]:
    """Return the cells of all tables whose last column is a test."""
    found: list[list[str]] = []
    header: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            header = []
        elif not header:
            header = cells
        elif header[-1] == "test" and not set(cells[0]) <= set("- "):
            found.append(cells)
    return found


@cache
def functions(file: str) -> set[str]:
    (path,) = TESTS.rglob(file)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {part.name for part in ast.walk(tree) if isinstance(part, ast.FunctionDef)}


@pytest.mark.parametrize("cells", rows(), ids=lambda cells: cells[0][:40])
def test_each_row_has_a_test_that_exists(cells: list[str]) -> None:
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", cells[-1])
    assert bool(named) != (cells[0] in WITHOUT)
    assert all(name in functions(file) for file, name in named)


def test_the_page_has_its_rows() -> None:
    assert len(rows()) > 60
