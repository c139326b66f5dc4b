"""What a docstring lists as a parameter is one: of the function, or a field of the class."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import stowplan

ROOT = Path(__file__).parents[2]
PACKAGES = ("models", "plugins_compat", "optimizer", "instances", "plans", "stowplan")
UNLISTED = {"Backend", "Status", "Stop"}
"""A protocol, an enumeration, and a signal: they have no parameters that callers give."""
PUBLIC = [name for name in stowplan.__all__ if callable(getattr(stowplan, name)) and name not in UNLISTED]
Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def documented(package: str) -> Iterator[tuple[str, Documented, list[str]]]:
    """Iterate over classes and functions whose docstring has a section of parameters, with the names in it."""
    for file in sorted((ROOT / package).rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, Documented) and (section := _section(ast.get_docstring(node) or "")):
                names = [name for line in section for name in re.split(r",\s*", line)]
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", node, names


def _section(docstring: str) -> list[str]:
    """Return the lines of a section of parameters that are not indented."""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}$|\Z)", docstring, flags=re.M | re.S)
    return [line.partition(" :")[0] for line in found[1].splitlines() if line[:1].strip()] if found else []


@cache
def classes() -> dict[str, ast.ClassDef]:
    """Return every class of ours by its name."""
    trees = [ast.parse(file.read_text(encoding="utf-8")) for name in PACKAGES for file in (ROOT / name).rglob("*.py")]
    return {node.name: node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def members(node: Documented) -> set[str]:
    """Return the names of parameters; of a class, those of its constructor and its fields, inherited ones included."""
    if not isinstance(node, ast.ClassDef):
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        return {arg.arg for arg in every if arg is not None}
    bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id != node.name]
    found = set().union(*(members(classes()[base]) for base in bases if base in classes()))
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            found.add(part.target.id)
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            found |= members(part)
    return found


def declared(node: Documented) -> set[str]:
    """Return the names of parameters, or of the fields and parameters that a class declares itself."""
    if not isinstance(node, ast.ClassDef):
        return members(node) - {"self"}
    fields = (part for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name))
    found = {part.target.id for part in fields if isinstance(part.target, ast.Name)}
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            found |= members(part) - {"self", "data"}
    return {name for name in found if not name.startswith("_")} - CONSTANT


CONSTANT = {"api_version", "kind"}
"""Fields of documents that always have the same value."""


@pytest.mark.parametrize("name", PUBLIC)
def test_all_parameters_of_the_public_interface_are_documented(name: str) -> None:
    thing = getattr(stowplan, name)
    (module,) = (home for home, names in stowplan._HOMES.items() if name in names)
    tree = ast.parse(Path(sys.modules[module].__file__ or "").read_text(encoding="utf-8"))
    (node,) = (node for node in tree.body if isinstance(node, Documented) and node.name == thing.__name__)
    listed = {name for line in _section(ast.get_docstring(node) or "") for name in re.split(r",\s*", line)}
    assert not declared(node) - listed


@pytest.mark.parametrize("package", PACKAGES)
def test_documented_parameters_exist(package: str) -> None:
    listed = list(documented(package))
    assert listed
    wrong = {where: [name for name in names if name.lstrip("*") not in members(node)] for where, node, names in listed}
    assert not {where: names for where, names in wrong.items() if names}
