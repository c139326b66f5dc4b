"""Pages in a real browser: they are rendered, their script runs, and they ask for nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.cli import run
from stowplan.html_report.page import Cell, Heading, Page, Section, long_table, pair, share_pair
from stowplan.html_report.render import SHOWN, render
from tests.stowplan.html_report.test_pages import EVIL, QUICK, cluster
from tests.support.browser import Browser, find_browser

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

LARGE = 2_000
MOST_BYTES = 3_000_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert BROWSER is not None
    with Browser(BROWSER) as running:
        yield running


def large_page() -> Page:
    """Return a page with 2,000 nodes, moves, and workloads."""
    numeric = Heading("pods", numeric=True)
    nodes = [
        [Cell(f"node-{i:04}.eu-central-1.compute.internal"), pair(i % 30, i % 17)]
        + [share_pair(i % 97 / 97, (i + r) % 89 / 89) for r in range(3)]
        for i in range(LARGE)
    ]
    moves = [
        [
            *(Cell(f"payments/checkout-7d9c5b6f8d-{i:05}"), Cell(f"node-{i:04}"), Cell(f"node-{i + 1:04}")),
            Cell(f"cpu 98% on node-{i:04}, 40% on node-{i + 1:04}"),
        ]
        for i in range(LARGE)
    ]
    headings = [Heading("node"), numeric, Heading("cpu"), Heading("memory"), Heading("gpu")]
    of_moves = [Heading("pod"), Heading("from"), Heading("to"), Heading("for", prose=True)]
    sections = [
        Section("nodes", "Nodes", [long_table("2,000 nodes", headings, nodes, "")]),
        Section("moves", "Moves", [long_table("2,000 moves", of_moves, moves, "")]),
        Section("workloads", "Workloads", [long_table("2,000 workloads", of_moves, moves, "")]),
    ]
    return Page("stowplan compare", "Move 2,000 pods.", sections)


def first_cells(box: str, column: int) -> str:
    """Return a script for the texts of the rows of a section that are shown."""
    return (
        f"[...document.querySelectorAll('#{box} tbody tr')].filter(row => !row.hidden)"
        f".map(row => row.cells[{column}].textContent)"
    )


def test_a_page_of_2000_nodes_opens_sorts_and_searches(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "large.html"
    file.write_text(render(large_page()), encoding="utf-8")
    assert file.stat().st_size < MOST_BYTES
    tab = browser.tab()
    tab.open(file)
    assert len(tab.run(first_cells("nodes", 0))) == SHOWN
    tab.run("document.querySelectorAll('#nodes thead button')[2].click()")  # cpu: the first click sorts upwards
    shares = [float(text.split("→")[-1].strip(" %")) for text in tab.run(first_cells("nodes", 2))]
    assert shares == sorted(shares)
    assert shares[0] == 0
    tab.run("document.querySelectorAll('#nodes thead button')[1].click()")  # pods: numbers begin with the largest
    assert tab.run(first_cells("nodes", 1))[0].endswith("16")
    assert tab.run("document.querySelectorAll('#nodes th')[1].ariaSort") == "descending"
    search = "const field = document.querySelector('#nodes input'); field.value = ' NODE-0042 ';"
    tab.run(f"{{ {search} field.dispatchEvent(new Event('input')); }}")
    assert tab.run(first_cells("nodes", 0)) == ["node-0042.eu-central-1.compute.internal"]
    assert tab.run("document.querySelector('#nodes .found').textContent") == "1 of 2,000 rows"
    tab.run("document.querySelector('#moves > .table > button').click()")
    assert len(tab.run(first_cells("moves", 0))) == LARGE
    assert tab.complaints == []
    assert tab.requests == [file.resolve().as_uri()]


def test_a_comparison_is_read_and_used_with_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    path, file = tmp_path / "dump.json", tmp_path / "report.html"
    path.write_text(json.dumps(cluster(EVIL)).replace("n0", json.dumps(f"n0{EVIL}")[1:-1]), encoding="utf-8")
    assert run(["compare", str(path), *QUICK, "--report", str(file)]) == 0
    tab = browser.tab()
    tab.open(file)
    assert tab.run("document.querySelector('h1').textContent").startswith("Move ")
    assert tab.run("typeof window.injected") == "undefined"
    assert tab.run("[...document.querySelectorAll('svg')].every(svg => svg.getBoundingClientRect().width > 200)")
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    tab.run("document.querySelector('#nodes thead button').focus()")
    tab.press("Enter")
    assert tab.run("document.querySelector('#nodes th').ariaSort") == "ascending"
    tab.press("Tab")
    tab.press("Enter")
    assert tab.run("document.querySelectorAll('#nodes th')[1].ariaSort") == "ascending"
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.run("document.getElementById('theme').click()")
    dark, light = (tab.picture(height=600, dark=dark) for dark in (True, False))
    assert dark[:4] == light[:4] == b"\x89PNG"
    assert tab.complaints == []
    assert tab.requests == [file.resolve().as_uri()]


def test_colors_of_drawings_follow_the_theme(browser: Browser, tmp_path: Path) -> None:
    path, file = tmp_path / "dump.json", tmp_path / "report.html"
    path.write_text(json.dumps(cluster()), encoding="utf-8")
    assert run(["compare", str(path), *QUICK, "--report", str(file)]) == 0
    tab = browser.tab()
    tab.open(file)
    script = (
        "getComputedStyle(document.querySelector('svg text')).fill + getComputedStyle(document.body).backgroundColor"
    )
    tab.picture(height=300, dark=False)
    assert tab.run(script) == "rgb(22, 24, 29)rgb(255, 255, 255)"
    tab.picture(height=300, dark=True)
    assert tab.run(script) == "rgb(232, 234, 238)rgb(20, 22, 26)"
    tab.run("document.getElementById('theme').click()")
    assert tab.run(script) == "rgb(22, 24, 29)rgb(255, 255, 255)"
