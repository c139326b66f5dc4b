"""The notebooks print what they say that they print, and their text quotes what they print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.plugins_compat.registry import registry
from tests.support.notebooks import FOLDER, kept, printed, quoted, read

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture(autouse=True)
def _no_plugins_stay() -> Iterator[None]:
    """Forget what a notebook adds to the registry of its process."""
    yield
    registry.cache_clear()


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_prints_what_it_keeps(file: Path) -> None:
    notebook = read(file)
    assert printed(notebook) == kept(notebook), "run python -m tests.support.notebooks, and read the text again"


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_every_figure_of_the_text_is_printed(file: Path) -> None:
    notebook = read(file)
    texts = "".join(kept(notebook))
    figures = quoted(notebook)
    assert figures
    assert [figure for figure in figures if figure not in texts] == []
