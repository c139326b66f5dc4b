"""Runs notebooks without Jupyter: each cell of code in order, and what it prints.

``python -m tests.support.notebooks`` runs those of ``examples/notebooks`` and writes what they print into them.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
BOLD = re.compile(r"\*\*([^*]*\d[^*]*)\*\*")
"""Figures that the text quotes are bold."""

Notebook = dict[str, Any]


def read(file: Path) -> Notebook:
    """Return a notebook as JSON has it."""
    notebook: Notebook = json.loads(file.read_text(encoding="utf-8"))
    return notebook


def printed(notebook: Notebook) -> list[str]:
    """Run the cells of code in one namespace, and return what each prints."""
    namespace: dict[str, Any] = {"__name__": "notebook"}
    found = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("".join(cell["source"]), "a cell", "exec"), namespace)
            found.append(out.getvalue())
    return found


def kept(notebook: Notebook) -> list[str]:
    """Return what the notebook says that its cells print."""
    return [
        "".join(text for output in cell["outputs"] for text in output["text"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def quoted(notebook: Notebook) -> list[str]:
    """Return the figures that the text quotes."""
    texts = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    return [figure for text in texts for figure in BOLD.findall(text)]


def main() -> None:
    """Run all notebooks, and keep what they print."""
    for file in sorted(FOLDER.glob("*.ipynb")):
        notebook = read(file)
        texts = iter(printed(notebook))
        number = 0
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                lines = next(texts).splitlines(keepends=True)
                cell["execution_count"] = number
                cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
