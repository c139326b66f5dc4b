"""Every row of the page on the systems of the articles names files and tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from stowplan.cli import run
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


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what a command of the page prints."""
    files = [str(ROOT / word) if word.startswith("examples/") else word for word in words]
    more = ("-q", "-t", "1", "--deterministic") if words[0] == "explain" else ()
    assert run([*files, *more]) == 0
    return capsys.readouterr().out


def scores(text: str) -> dict[str, dict[str, str]]:
    """Return the scores of a printed table, by plugin and node; plugins go by the letters that stand for them."""
    lines = text[text.index("\nnode ") + 1 :].splitlines()
    columns = lines[0].split()[2:]
    rows = [line.split() for line in lines[1 : next(i for i, line in enumerate(lines) if " ×" in line)]]
    return {column: {row[0]: row[2 + c] for row in rows} for c, column in enumerate(columns)}


def test_the_examples_show_the_numbers_of_the_articles(capsys: pytest.CaptureFixture[str]) -> None:
    racks = ("explain", "default/new", "--from", "examples/racks.yaml")
    found = scores(shown(capsys, *racks, "--profile", "1.20"))
    assert found["NRBA"] == {"n1": "75", "n2": "100", "n3": "100"}
    assert found["NRLA"] == {"n1": "37", "n2": "50", "n3": "50"}
    found = scores(shown(capsys, *racks, "--config", "examples/policy.yaml"))
    assert found["LRP"] == {"n1": "3", "n2": "5", "n3": "5"}
    assert found["BRA"] == {"n1": "7", "n2": "10", "n3": "10"}
    assert found["ILP"] == {"n1": "4", "n2": "10", "n3": "2"}
    assert found["RS"] == {"n1": "14", "n2": "10", "n3": "0"}  # of weight 2
    zones = shown(capsys, "explain", "default/new", "--from", "examples/zones.yaml", "--profile", "1.24")
    assert "0/4 nodes are available: 4 node(s) didn't match pod topology spread constraints." in zones
    platform = ("--from", "examples/platform.yaml", "--config", "examples/platform-scores.yaml")
    text = shown(capsys, "explain", "platform/first", *platform)
    assert "the greedy method takes m2" in text
    assert scores(text) == {
        "LU": {"m1": "43.75", "m2": "43.75", "m3": "43.75"},
        "BS": {"m1": "75", "m2": "93.75", "m3": "62.5"},
    }


def test_isolated_cores_leave_ordinary_ones_to_others(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("simulate", "examples/isolated.yaml")
    text = shown(capsys, *words, "--config", "examples/isolated-cpus.yaml")
    assert re.search(r"default/ordinary +n1", text)
    assert re.search(r"default/late +- +0/2 nodes are available: 2 Insufficient isolated CPUs", text)
    assert re.search(r"default/ordinary +- +0/2 nodes are available: 2 Insufficient cpu", shown(capsys, *words))
