"""A change to stowplan as a pytest plugin: new modules and patched ones take the place of those of the checkout.

``pytest -p tests.docs.overlay --overlay FOLDER``: every module of the folder is found under the name that its path says
(``instances/table.py`` is ``stowplan.instances.table``), and every ``*.diff`` is applied to the files it names. Nothing
is written to the checkout, and modules that are not changed stay where their compiled kernels are kept.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


class NotApplicable(Exception):
    """A hunk whose old lines are not in the file, or in several places."""


def apply(diff: str, text: str) -> str:
    """Apply the hunks of one unified diff. What counts are their lines: numbers of lines change with every edit."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.M)[1:]:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        if text.count(old) != 1:
            raise NotApplicable(f"{text.count(old)} places look like this:\n{old}")
        text = text.replace(old, new)
    return text


def changed(folder: Path) -> dict[str, str]:
    """Return the text of every file that a folder adds or changes, by its path in the checkout."""
    files = {}
    for file in folder.rglob("*.py"):
        if file.parent != folder:
            files[file.relative_to(folder).as_posix()] = file.read_text(encoding="utf-8")
    for diff in sorted(folder.glob("*.diff")):
        text = diff.read_text(encoding="utf-8")
        (name,) = re.findall(r"^\+\+\+ b/(\S+)$", text, flags=re.M)
        try:
            files[name] = apply(text, files.get(name) or (ROOT / name).read_text(encoding="utf-8"))
        except NotApplicable as error:
            raise NotApplicable(f"{diff.relative_to(ROOT)} does not fit {name}: {error}") from None
    return files


class Overlay(MetaPathFinder):
    """Finds modules of stowplan in a folder first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is, if the folder has it."""
        *parents, name = fullname.split(".")
        if not parents or parents[0] != "stowplan":
            return None
        inside = self.folder.joinpath(*parents, f"{name}.py")
        beside = self.folder.joinpath(*parents[1:], f"{name}.py")
        file = next((f for f in (inside, beside) if f.is_file()), None)
        return spec_from_file_location(fullname, file) if file else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--overlay", type=Path, required=True)


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Take the place of the checkout's modules before anything imports them."""
    loaded = {name for name in sys.modules if name.partition(".")[0] == "stowplan"}
    assert not loaded, f"imported too early: {loaded}"
    folder = Path(tempfile.mkdtemp(prefix="overlay-"))
    for name, text in changed(early_config.known_args_namespace.overlay.resolve()).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    sys.meta_path.insert(0, Overlay(folder))
