"""What pages say in passing exists: options, files, modules, links."""

from __future__ import annotations

import functools
import importlib
import re
import tokenize
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from stowplan.cli.app import app
from tests.docs.blocks import PAGES, ROOT

FOLDERS = "models|plugins_compat|optimizer|instances|plans|stowplan|tests|benchmarks|examples|docs"
CODE_PAGES = ("architecture", "contributing")
OF_OTHERS = {"--dry-run", "--evict-taint", "--for", "--output-directory", "--policy"}
"""Options of kubectl, of control planes, and of conftest."""
ENTRY_POINTS = {"stowplan.plugins"}
"""Groups of entry points, which look like modules."""
ABOUT_CODE = [*sorted((ROOT / "docs" / "how-to").glob("*.md")), *(ROOT / "docs" / f"{name}.md" for name in CODE_PAGES)]
"""Pages whose names between backticks are those of the code, unless they look like something else."""
NOT_OURS = {
    "models.py": "a module of a user's, which ours must not hide",
    "multiPoint": "a field of KubeSchedulerConfiguration",
    "STOWPLAN_DATA": "a variable of the environment",
    "STOWPLAN_SEEDS": "a variable of the environment",
    "mypy": "the type checker",
}
"""Words between backticks on these pages that look like names of the code."""


def prose(page: Path) -> str:
    """Return a page without its blocks."""
    return re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def code(page: Path) -> list[str]:
    """Return what stands between backticks in the text of a page."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def options() -> set[str]:
    root: Any = typer.main.get_command(app)
    commands = [root, *root.commands.values()]
    return {name for command in commands for param in command.params for name in (*param.opts, *param.secondary_opts)}


def names(page: Path) -> str:
    return str(page.relative_to(ROOT))


# The page of what bad input gets has options misspelled on purpose.
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "bad-input.md"], ids=names)
def test_options_exist(page: Path) -> None:
    programs = [*(ROOT / "stowplan" / "emitters" / "shell").glob("*.sh"), *(ROOT / "benchmarks").glob("*.py")]
    programs += (ROOT / "tests" / "support").rglob("*.py")
    ours = options() | {word for file in programs for word in re.findall(r"--[a-z][-a-z]+", file.read_text())}
    named = {word for text in code(page) for word in re.findall(r"(?<![\w-])--[a-z][-a-z]+", text)}
    unknown = named - ours - OF_OTHERS
    assert not unknown


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_files_exist(page: Path) -> None:
    paths = {
        text
        for text in code(page)
        if re.fullmatch(rf"(?:{FOLDERS})/[\w./*-]*", text) and not re.fullmatch(r"\w+/v\d", text)
    }
    new = set(re.findall(r"examples/[\w-]+", page.read_text(encoding="utf-8")))  # what examples add to the checkout
    roots = [ROOT, *(ROOT / folder for folder in new)]
    assert not {path for path in paths if not any(list(root.glob(path.rstrip("/"))) for root in roots)}


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_modules_and_their_members_exist(page: Path) -> None:
    for text in code(page):
        if re.fullmatch(r"stowplan(\.\w+)+", text) and text not in ENTRY_POINTS:
            assert exists(text), text


@functools.cache
def identifiers_of(file: Path) -> frozenset[str]:
    """Return the names in a Python file."""
    with tokenize.open(file) as stream:
        return frozenset(
            token.string for token in tokenize.generate_tokens(stream.readline) if token.type == tokenize.NAME
        )


@functools.cache
def identifiers() -> frozenset[str]:
    """Return the names in the source, the tests, and the examples, and the names of files and folders."""
    folders = [ROOT / folder for folder in FOLDERS.split("|")]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    parts = {part.removesuffix(".py") for file in files for part in file.relative_to(ROOT).parts}
    words = {
        word
        for file in (ROOT / "examples").rglob("*.diff")
        for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))
    }
    return frozenset(parts | words).union(*map(identifiers_of, files))


@pytest.mark.parametrize("page", ABOUT_CODE, ids=names)
def test_names_of_the_code_exist(page: Path) -> None:
    """A name, dotted or not, called or not, is one of the code; a file without a folder is somewhere."""
    files = {file.name for folder in FOLDERS.split("|") for file in (ROOT / folder).rglob("*.py")}
    named = [re.fullmatch(r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:\(.*\))?", text) for text in code(page)]
    texts = {found[1] for found in named if found and not re.search(r"\.(py|sh|toml|json|yaml|yml|md)$", found[1])}
    assert texts
    unknown = {text for text in texts if not identifiers().issuperset(text.split("."))}
    unknown |= {text for text in code(page) if re.fullmatch(r"\w+\.py", text) and text not in files}
    assert not unknown - NOT_OURS.keys()


@pytest.mark.parametrize("page", ABOUT_CODE, ids=names)
def test_names_are_in_the_file_that_the_page_says(page: Path) -> None:
    """What a page finds "in" or "of" a Python file occurs in it: `` `a`, `b`, and `c` in `models/x.py` ``."""
    name = r"`[\w.]+(?:\(\))?`"
    file = rf"`((?:{FOLDERS})/[\w/-]+\.py)`"
    listed = re.finditer(rf"({name}(?:,? (?:and |or )?{name})*) (?:in|of) {file}", re.sub(r"\s+", " ", prose(page)))
    for found in listed:
        path = ROOT / found[2]
        said = re.findall(r"`([\w.]+?)(?:\(\))?`", found[1])
        known = identifiers_of(path) if path.exists() else identifiers()  # files of examples are not in the checkout
        assert not [text for text in said if not known.issuperset(text.split("."))], found[0]


def exists(dotted: str) -> bool:
    module, rest = dotted, []
    while module:
        try:
            thing = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
            continue
        for name in rest:
            if not hasattr(thing, name):
                return False
            thing = getattr(thing, name)
        return True
    return False


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=names)
def test_links_from_outside_the_site_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", prose(page))
    assert links
    assert not {link for link in links if not (page.parent / link).exists()}


def test_every_option_is_in_the_page_of_the_command_line() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert not {name for name in options() if name.startswith("--") and name not in text}


def test_citation_and_changelog_name_the_version() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), flags=re.M)
    assert version is not None
    assert f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{version[1]}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_every_public_name_has_a_place_in_the_reference() -> None:
    reference = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    named = re.findall(r"^::: (\S+)", reference, flags=re.M)
    assert "stowplan" in named
    assert all(exists(name) for name in named)


def test_dependencies_have_their_reasons() -> None:
    """Each package of pyproject.toml has a row with its limits, and each row is a package of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+) \|", text, flags=re.M)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(named) == sorted([*project["dependencies"], *extras["dev"], *extras["docs"]])
