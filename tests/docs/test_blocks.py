"""Every code block of the README and the pages is run, parsed, or the text of a file that is run elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from stowplan.cli import run
from stowplan.cli.app import app
from stowplan.cluster.snapshot import KINDS
from stowplan.models.objective import Objective
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K36
from stowplan.scenarios.scenario import ScenarioDocument
from tests.docs.blocks import ALL, PAGES, ROOT, Block, Command, Treatment, commands

QUICK = ("-q", "--deterministic", "-t", "0.5")
SEARCHING = {"compare", "solve", "explain", "plan", "frontier", "drain", "fit", "what-if", "survive"}
"""Commands that search; here for no longer than it takes to see that they do."""
RUN = SEARCHING | {"simulate", "verify", "replay", "emit", "validate", "generate"}
OTHERS = {
    "curl",
    "git",
    "gzip",
    "kubectl",
    "for",  # a loop of the shell
    "make",
    "python",
    "ray",
    "pip",
    "pipx",
    "stowplan",
    "…",
    ".venv/bin/pre-commit",
}
"""Programs that the pages call."""
CALLS = [command for block in ALL if block.treatment is Treatment.COMMANDS for command in commands(block)]


def ours(command: Command) -> tuple[str, ...] | None:
    """Return the arguments of a call of stowplan, also as a plugin of kubectl."""
    words = command.words[1:] if command.words[:2] == ("kubectl", "stowplan") else command.words
    return words[1:] if words[0] == "stowplan" else None


OURS = [command for command in CALLS if ours(command) is not None]


def only(treatment: Treatment, *languages: str) -> list[Block]:
    return [b for b in ALL if b.treatment is treatment and (not languages or b.language in languages)]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the files that the pages speak of, by the names they give them."""
    folder = tmp_path_factory.mktemp("inputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_inputs(folder)
    return folder


def make_inputs(folder: Path) -> None:
    def save(name: str, *arguments: str) -> None:
        with pytest.MonkeyPatch.context() as patch, (folder / name).open("w") as file:
            patch.setattr("sys.stdout", file)
            assert run(arguments) == 0, arguments

    save("generated.json", "generate", "--nodes", "4", "--pods", "14", "--fill", "0.3", "--seed", "3")
    snapshot = json.loads((folder / "generated.json").read_text())
    pods = [item for item in snapshot["items"] if item["kind"] == "Pod"]
    for number, item in enumerate(pods):
        item["metadata"]["uid"] = f"uid-{number}"
        for owner in item["metadata"].get("ownerReferences", ()):
            owner["uid"] = f"uid-{owner['name']}"
    for name in ("dump.json", "newer-dump.json", "cluster.json"):
        (folder / name).write_text(json.dumps(snapshot))
    save("plan.json", "plan", "dump.json", *QUICK, "-o", "json")
    save("solution.json", "solve", "dump.json", *QUICK, "-o", "json")
    waiting = {"metadata": {"name": "waiting", "namespace": "default"}, "spec": {"containers": [{"name": "main"}]}}
    (folder / "pending.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod"} | waiting))
    scheduler = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    for name in ("scheduler.yaml", "my-scheduler.yaml"):
        (folder / name).write_text(yaml.safe_dump(scheduler))
    (folder / "load.yaml").write_text("nodes: {}\n")
    (folder / "dumps").mkdir()
    shutil.copy(folder / "dump.json", folder / "dumps")


@pytest.fixture
def workplace(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the files, and go there."""
    folder = tmp_path / "workplace"
    shutil.copytree(inputs, folder)
    monkeypatch.chdir(folder)
    return folder


# -- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", only(Treatment.IS_A_FILE), ids=str)
def test_a_block_that_stands_for_a_file_is_that_file(block: Block) -> None:
    assert block.source is not None
    assert block.source.is_relative_to(ROOT / "examples")
    text = block.source.read_text(encoding="utf-8")
    assert block.text == text, "python -m tests.docs.blocks writes the page anew"


@pytest.mark.parametrize("block", only(Treatment.IS_PART_OF_A_FILE), ids=str)
def test_a_block_that_stands_for_a_part_of_a_file_is_in_it(block: Block) -> None:
    assert block.source is not None
    assert block.text in block.source.read_text(encoding="utf-8")


# -- Python, and documents ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", only(Treatment.RUN), ids=str)
def test_python_runs(block: Block, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = compile("\n" * block.line + block.text, str(block.page), "exec")
    exec(code, {"__name__": "__main__"})
    if "print(" in block.text:
        assert capsys.readouterr().out


@pytest.mark.parametrize("block", only(Treatment.PARSED), ids=str)
def test_a_document_is_what_it_seems_to_be(block: Block, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parse: Any = {"json": json.loads, "yaml": yaml.safe_load, "toml": tomllib.loads}[block.language]
    document = parse(block.text)
    assert isinstance(document, dict)
    if document.get("kind") == "KubeSchedulerConfiguration":
        assert make_profiles(document, K36)
    elif document.get("kind") == "Scenario":
        assert not ScenarioDocument.model_validate(document).is_empty
    elif "tiers" in document:
        assert Objective.model_validate(document).tiers
    elif "expect" in document:
        (workplace / "trace.jsonl").write_text(json.dumps(document) + "\n")
        assert run(["validate", "-q", "trace.jsonl"]) == 0
        assert "all reproduced" in capsys.readouterr().out


# -- commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", OURS, ids=str)
def test_a_call_has_a_command_and_options_that_exist(command: Command) -> None:
    arguments = list(ours(command) or ())
    assert arguments
    root: Any = typer.main.get_command(app)
    subcommand = root.commands[arguments[0]]
    subcommand.make_context(arguments[0], arguments[1:]).close()


def inputs_of(arguments: tuple[str, ...]) -> list[str]:
    """Return what an answer would be read from."""
    return [word for word in arguments if re.search(r"\.(json|yaml|csv)(\.gz)?$|\.jsonl\.gz$|/$|://|^-$", word)]


def can_run(command: Command) -> bool:
    """Whether it is cheap and needs nothing but the files that are there."""
    name, *rest = ours(command) or ("",)
    made = {"dump.json", "newer-dump.json", "dump.json.gz", "plan.json", "solution.json", "pending.yaml"}
    made |= {str(file.relative_to(ROOT)) for file in (ROOT / "examples").glob("*.yaml")}
    made |= {"scheduler.yaml", "my-scheduler.yaml", "dumps/", "load.yaml"}
    golden = {str(file.relative_to(ROOT)) for file in (ROOT / "tests" / "golden").rglob("*.gz")}
    live = "--live" in rest or command.words[0] == "kubectl"
    return (
        name in RUN and not (command.piped or live) and set(inputs_of(tuple(rest))) <= made | golden | {rest_url(rest)}
    )


def rest_url(arguments: list[str]) -> str:
    """Return the address that a scheduler configuration is to name; nobody is asked there."""
    return arguments[arguments.index("--url") + 1] if "--url" in arguments else ""


RUNNABLE = list({command.words: command for command in OURS if can_run(command)}.values())
"""What is run, once however often pages say it."""


@pytest.mark.parametrize("command", RUNNABLE, ids=str)
def test_a_call_answers(command: Command, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, *rest = ours(command) or ("",)
    if "dump.json.gz" in rest:
        rest = ["dump.json" if word == "dump.json.gz" else word for word in rest]
    if name == "drain":  # nodes have the names of the page's cluster
        nodes = [item for item in json.loads(Path("dump.json").read_text())["items"] if item["kind"] == "Node"]
        rest = [nodes[0]["metadata"]["name"], *rest[rest.index("--from") :]]
    rest = [str(ROOT / word) if word.startswith(("tests/", "examples/")) else word for word in rest]
    more = QUICK if name in SEARCHING else ()
    code, printed = run([name, *rest, *more]), capsys.readouterr()
    assert code == 0, printed.err
    assert printed.out or any(Path("out").iterdir())


def test_programs_are_known() -> None:
    programs = {command.words[0] for command in CALLS}
    written_by_us = {program for program in programs if re.search(r"plan-7f3a-[\w-]+\.sh$", program)}
    assert programs - written_by_us == OTHERS


@pytest.mark.parametrize("command", [c for c in CALLS if c.words[0] == "make"], ids=str)
def test_make_has_the_target(command: Command) -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{re.escape(target)}:", makefile, flags=re.M) for target in command.words[1:])


def test_lists_of_kinds_to_dump_are_the_ones_that_are_read() -> None:
    wanted = Counter(kind.partition(".")[0] for kind in KINDS)
    lists = [c.words[2].split(",") for c in CALLS if c.words[:2] == ("kubectl", "get") and "-A" in c.words]
    whole = [kinds for kinds in lists if len(kinds) == len(wanted)]
    assert len(whole) >= 2
    assert all(Counter(kinds) == wanted for kinds in whole)
    assert all(set(kinds) <= wanted.keys() | {"…"} for kinds in lists)


@pytest.mark.parametrize("command", [c for c in CALLS if c.words[0].endswith(".sh")], ids=str)
def test_scripts_that_we_write_have_the_option(command: Command) -> None:
    shell = "".join(file.read_text() for file in (ROOT / "stowplan" / "emitters" / "shell").glob("*.sh"))
    options = {word for word in command.words[1:] if word.startswith("--")}
    assert all(re.search(rf"^ *([^ ]* \| )*{option}( \| [^ ]*)*\)", shell, flags=re.M) for option in options), options


# -- all of them --------------------------------------------------------------------------------------------------


def test_nothing_is_left_out() -> None:
    """Blocks with a language are treated by it; without one, they are text, and say so."""
    assert not [str(block) for block in ALL if block.treatment is Treatment.TEXT and block.language not in ("", "text")]
    fences = sum(len(re.findall(r"^ *```", page.read_text(encoding="utf-8"), flags=re.M)) for page in PAGES)
    assert fences == 2 * len(ALL)
    assert len(only(Treatment.IS_A_FILE)) >= 25
    assert len(only(Treatment.RUN)) >= 2
    assert len(OURS) >= 60
    assert len(RUNNABLE) >= 30
