"""--log-format json: every line on stderr is an object, and the answer on stdout stays what it is."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from stowplan.cli import run
from stowplan.cli.app import COMMANDS
from stowplan.models.messages import LOG_FORMAT, LogFormat
from tests.stowplan.serving.test_server import web_plan
from tests.stowplan.test_plan_command import cluster
from tests.support.applying import scene
from tests.support.extender import COMMAND
from tests.support.kubectl import needs_kubectl

ROOT = Path(__file__).parents[2]
QUICK = ("-t", "1", "--deterministic")


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(cluster()))
    return str(path)


def lines(text: str) -> list[dict[str, Any]]:
    """Parse lines, and check what all of them have."""
    found: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    for line in found:
        assert datetime.fromisoformat(line["time"]).tzinfo is not None
        assert line["level"] in {"info", "warning", "error"}
        assert line["message"]
        assert not line["message"].startswith("stowplan: ")
    return found


def test_progress_and_warnings(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", dump, *QUICK, "--freeze", "app=none", "-o", "csv"]) == 0
    text = capsys.readouterr()
    assert run(["solve", dump, *QUICK, "--freeze", "app=none", "-o", "csv", "--log-format", "json"]) == 0
    told = capsys.readouterr()
    assert told.out == text.out
    found = lines(told.err)
    assert len(found) == len(text.err.splitlines()) > 1
    assert (found[0]["level"], found[0]["message"]) == ("warning", "--freeze app=none matches no pod")
    assert found[1]["message"].startswith("start ")
    assert found[1]["seconds"] >= 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "missing.json"], "missing.json: no such file"),
        (["plan", "missing.json", "--time-limit", "never"], "Invalid value for"),
        (["plan", "missing.json", "--max-moves", "x"], "--max-moves"),
        (["show", "missing.json"], "missing.json: no such file"),
        (["apply", "missing.json"], "missing.json: no such file"),
        (["snapshot", "-o", "x.json", "--kubeconfig", "missing"], ""),
    ],
)
def test_errors(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*arguments, "--log-format", "json"]) == 1
    told = capsys.readouterr()
    (line,) = lines(told.err)
    assert line["level"] == "error"
    assert message in line["message"]
    assert told.out == ""
    assert LOG_FORMAT.get() is LogFormat.TEXT


def test_nothing_of_a_name_breaks_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = str(tmp_path / 'a"b\x1b[31m{}\u2028')
    assert run(["show", name, "--log-format", "json"]) == 1
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert told.count("\n") == len(told.splitlines()) == 1
    assert '"b' in lines(told)[0]["message"]


def test_a_format_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "x", "--log-format", "xml"]) == 1
    assert "is 'xml'; must be one of 'text', 'json'" in capsys.readouterr().err


@needs_kubectl
def test_apply(tmp_path: Path) -> None:
    with scene(tmp_path) as shop:
        seen = shop.command("apply", "plan.json", "--log-format", "json")
        (warning,) = lines(seen.stderr)
        assert warning["level"] == "warning"
        assert warning["message"].startswith("--serve is missing: ")
        done = shop.command("apply", "plan.json", "--yes", "--unsteered", "--log-format", "json", "-o", "json")
        assert done.returncode == 0
        found = lines(done.stderr)
        assert {line["plan"] for line in found} == {shop.plan.id}
        assert "wave 2 of 2 is over" in [line["message"] for line in found]
        assert json.loads(done.stdout)["complete"]


def test_serve(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(web_plan().model_dump_json(by_alias=True))
    command = [*COMMAND, "serve", "plan.json", "--bind", "127.0.0.1:0", "--log-format", "json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = [process.stderr.readline()]
        while "serving http" not in said[-1]:
            said.append(process.stderr.readline())
            assert said[-1], said
        process.terminate()
        said += process.stderr.readlines()
    assert lines("".join(said))[-1]["message"] == "ending"


def test_every_command_has_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    for commands in COMMANDS.values():
        for command in commands:
            assert run([command.__name__.replace("_", "-"), "--help"]) == 0
            assert "--log-format" in capsys.readouterr().out


def test_no_other_module_writes_lines_of_its_own() -> None:
    """A line that is printed past the format would break what reads the log."""
    allowed = {"models/messages.py", "stowplan/cli/__init__.py", "stowplan/cli/progress.py", "optimizer/warm.py"}
    found = set()
    for folder in ("models", "instances", "optimizer", "plans", "plugins_compat", "stowplan"):
        for file in (ROOT / folder).rglob("*.py"):
            calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
            if any(word.arg == "file" and "stderr" in ast.unparse(word) for call in calls for word in call.keywords):
                found.add(str(file.relative_to(ROOT)))
    assert found == allowed
