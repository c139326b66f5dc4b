"""What pages say in passing exists: options, files, modules, links."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from stowplan.cli.app import app
from tests.docs.blocks import PAGES, ROOT

FOLDERS = "models|plugins_compat|optimizer|instances|plans|stowplan|tests|benchmarks|examples|docs"
OF_OTHERS = {"--dry-run", "--evict-taint", "--feature-gates", "--for", "--output-directory"}
"""Options of kubectl and of control planes."""
ENTRY_POINTS = {"stowplan.plugins"}
"""Groups of entry points, which look like modules."""


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
