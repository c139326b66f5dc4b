"""Names that no API server accepts, and a file may hold all the same: nothing takes them for more than names."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.cli import run
from stowplan.models.words import printable, printable_json
from stowplan.report.rows import write_csv
from tests.support.clusters import node, pod
from tests.support.malformed import listed
from tests.support.plans import move, plan

TITLE = "\x1b]0;owned\x07"
COLOR = "\x9b31m"
TURNED = "\u202egnp.exe"
FORMULA = '=HYPERLINK("http://evil.example","click")'
MARKUP = "[red]bold[/red]"
HTML = "<img src=x onerror=alert(1)>"

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys, besides the ends of lines and tabs."""


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cluster whose namespaces, pods, nodes, labels, taints, and controllers have such names."""
    monkeypatch.chdir(tmp_path)
    nodes = [node(f"n1{TITLE}{HTML}"), node(f"=n2{COLOR}{MARKUP}"), node(f"@n3{TURNED}")]
    nodes[2]["spec"] = {"taints": [{"key": f"k{TITLE}", "value": f"v{COLOR}", "effect": "NoSchedule"}]}
    pods = [pod(f"{FORMULA}{TITLE}{i}", nodes[0]["metadata"]["name"], cpu="1") for i in range(4)]
    pods += [pod(f"+new{HTML}{COLOR}{i}", cpu="1") for i in range(2)]
    pods += [pod(f"bound{TURNED}", nodes[0]["metadata"]["name"], namespace=f"-ns{TITLE}")]
    for i, one in enumerate(pods):
        reference = {"kind": f"Replica{COLOR}Set", "name": f"web{TITLE}", "uid": "u-web", "controller": True}
        if i < 4:
            reference["kind"] = "ReplicaSet"
        labels = {"app": f"a{TITLE}", "pod-template-hash": "h"}
        one["metadata"] |= {"uid": f"u-{i}", "labels": labels, "ownerReferences": [reference]}
    Path("dump.json").write_text(json.dumps(listed(*nodes, *pods)))
    return "dump.json"


COMMANDS = [
    "compare dump.json -t 1 --map",
    "solve dump.json -t 1",
    "plan dump.json -t 1 --partial",
    "simulate dump.json --all",
    "frontier dump.json -t 1",
]


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "csv"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_form_of_an_answer_holds_what_a_terminal_obeys(
    dump: str, command: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = command.split()
    if form != "table":
        arguments = [one for one in arguments if one != "--map"]
    assert run([*arguments, "-o", form]) == 0
    printed = capsys.readouterr()
    assert not OBEYED.search(printed.err), printed.err
    # YAML writes all of them as escapes but those that turn the direction, which quotes keep inside.
    assert not OBEYED.search(re.sub("\u202e", "", printed.out) if form == "yaml" else printed.out)
    match form:
        case "json":
            whole = json.dumps(json.loads(printed.out))
            assert "frontier" in command or json.dumps(FORMULA + TITLE)[1:-1] in whole
        case "yaml":
            yaml.safe_load(printed.out)
        case "csv":
            rows = list(csv.reader(io.StringIO(printed.out)))
            wrong = [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
            assert not [cell for cell in wrong if not _is_number(cell)]
        case _:
            assert "bold[/red]" not in printed.out or "[red]bold[/red]" in printed.out


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_a_terminal_gets_its_own_colors_and_nothing_of_names(dump: str) -> None:
    """Through a pseudo-terminal, where tables have colors."""
    seen = bytearray()

    def read(handle: int) -> bytes:
        data = os.read(handle, 65536)
        seen.extend(data)
        return data

    code = "from stowplan.cli import main; main()"
    # What is read is written to our own output too, which pytest keeps.
    pty.spawn([sys.executable, "-c", code, "solve", dump, "-t", "1"], read)
    text = seen.decode()
    assert "\x1b" in text  # progress and colors
    assert "\\x1b]0;owned" in text
    assert "\x1b]0;" not in text
    assert "\x07" not in text
    assert "\x9b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("command", ["solve", "plan", "verify", "emit", "serve", "apply"])
def test_an_error_about_such_a_file_is_one_plain_line(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"evil{TITLE}\n{COLOR}.json"
    Path(name).write_text(json.dumps({"kind": f"Pod{TITLE}", "metadata": {"name": f"x{TITLE}"}, f"{COLOR}": 1}))
    arguments = [command, name, *(["dump.json"] if command == "verify" else [])]
    assert run(arguments) == 1
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.count("\n") == 1
    assert not OBEYED.search(printed.err)


def test_scripts_and_manifests_hold_no_such_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    for evil in (TITLE, COLOR, "$(reboot)", "`reboot`", "'; reboot; '", FORMULA, "\nreboot", HTML, "{{ 1 }}", "*a"):
        for change in (
            {"pod": f"shop/web-{evil}"},
            {"source": f"n1{evil}"},
            {"target": f"n2{evil}"},
        ):
            words: dict[str, Any] = {"pod": "shop/web-a", "source": "n1", "target": "n2", **change}
            made = plan([move(words["pod"], words["source"], words["target"])])
            path.write_text(made.model_dump_json(by_alias=True))
            for target in ("kubectl", "descheduler", "koordinator", "pin"):
                assert run(["emit", str(path), "--to", target, "-o", str(tmp_path / "out")]) == 1, (evil, target)
            printed = capsys.readouterr()
            assert not printed.out
            assert not OBEYED.search(printed.err)
    assert not (tmp_path / "out").exists()


def test_a_page_about_a_plan_holds_no_such_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    evil = f"shop/{HTML}{TITLE}|[x](javascript:1){COLOR}"
    path.write_text(plan([move(evil, "n1", f"n2{TITLE}")]).model_dump_json(by_alias=True))
    for form in ("table", "wide", "markdown", "json"):
        assert run(["show", str(path), "-o", form]) == 0
        printed = capsys.readouterr()
        assert not OBEYED.search(printed.out + printed.err), form
        if form == "markdown":
            assert HTML not in printed.out
            assert "[x](javascript" not in printed.out


def test_what_is_written_out_says_what_it_was() -> None:
    assert printable(f"a{TITLE}{COLOR}\u202e\n\t") == "a\\x1b]0;owned\\x07\\x9b31m\\u202e\n\t"
    document = json.dumps({"a": f"{COLOR}\u202e\x7f"}, ensure_ascii=False)
    assert json.loads(printable_json(document)) == json.loads(document)
    assert not OBEYED.search(printable_json(document))


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-2+3", "'-2+3"),
        ("@sum", "'@sum"),
        ("\t=1", "'\t=1"),
        ("-1.5", "-1.5"),
        ("1e-3", "1e-3"),
        (-2, "-2"),
        ("web=1", "web=1"),
        ("", ""),
    ],
)
def test_a_cell_is_no_formula(cell: Any, written: str) -> None:
    assert next(csv.reader(io.StringIO(write_csv(iter([[cell, "x"]]))))) == [written, "x"]
