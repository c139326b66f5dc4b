"""``replay`` as a user runs it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.cli import run
from stowplan.models.objective import PRESETS
from stowplan.models.plan import Plan
from stowplan.models.settings import SettingsDocument
from tests.plans.test_replay import owned
from tests.support.clusters import node
from tests.support.malformed import listed
from tests.support.plans import move, plan


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    pods = [owned("web-a", "n1", cpu="1"), owned("db-a", "n2", cpu="2"), owned("db-b", "n2", cpu="500m")]
    path.write_text(json.dumps(listed(node("n1"), node("n2"), *pods)))
    return str(path)


def written(tmp_path: Path, document: Plan) -> str:
    path = tmp_path / "plan.json"
    path.write_text(document.model_dump_json(by_alias=True))
    return str(path)


@pytest.fixture
def packing(tmp_path: Path) -> str:
    """A plan that kube-scheduler does not carry out by itself."""
    settings = SettingsDocument(objective=PRESETS["pack"], release="1.36", scheduler="default-scheduler")
    return written(tmp_path, plan([move("web-a", "n1", "n2")], settings=settings))


def out(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(["replay", *arguments]) == code
    return capsys.readouterr().out


def test_the_table(packing: str, dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = out(capsys, packing, dump).splitlines()
    assert lines[0].startswith(
        "Without steering: 0 of 1 pod lands as planned, 1 need steering; 0% of the improvement is kept."
    )
    assert any(
        line.split() == ["1", "default/web-a", "n1", "n2", "n1", "needs", "steering", "certain"] for line in lines
    )
    assert any(
        "In 20 runs with chance: 0 come to their end; 0% of the improvement is kept on average, 0% to 0%" in line
        for line in lines
    )
    assert "Landings: 1 certain, 0 equally good, 0 by chance." in lines
    assert "note: the snapshot is not the one the plan was made for" in lines
    steered = out(capsys, packing, dump, "--steer", "extender")
    assert steered.startswith("Steered by the extender: 1 of 1 pod lands as planned; 100% of the improvement is kept.")


def test_every_form_says_the_same(packing: str, dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    document: dict[str, Any] = json.loads(out(capsys, packing, dump, "-o", "json"))
    assert document == yaml.safe_load(out(capsys, packing, dump, "-o", "yaml"))
    assert (document["kind"], document["steer"], document["byItself"]) == ("Replay", "none", False)
    assert document["verdicts"]["needs steering"] == 1
    (landing,) = document["landings"]
    assert (landing["source"], landing["target"], landing["node"]) == ("n1", "n2", "n1")
    nodes = next(tier for tier in document["tiers"] if tier["name"] == "nodes in use")
    assert (nodes["before"], nodes["planned"], nodes["actual"]) == (2, 1, 2)
    assert document["kept"] == 0
    (row,) = csv.DictReader(io.StringIO(out(capsys, packing, dump, "-o", "csv")))
    assert (row["node"], row["verdict"]) == ("n1", "needs steering")


def test_a_plan_of_another_cluster(tmp_path: Path, dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, plan([move("web-x", "n1", "n2")]))
    assert run(["replay", path, dump]) == 1
    said = capsys.readouterr()
    assert said.err == f"stowplan: {path}: Plan plan-7f3a move m-web-x: pod: is not in the snapshot: default/web-x\n"
    assert not said.out


def test_what_is_no_plan(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", dump, dump]) == 1
    assert "kind: is 'List'; must be Plan" in capsys.readouterr().err


def test_another_scheduler_can_be_tried(packing: str, dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(out(capsys, packing, dump, "-o", "json", "--profile", "1.24", "--seed", "3"))
    assert document["seed"] == 3


def test_a_plan_for_nobody_who_steers_comes_true(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", dump, "-q", "-t", "2", "--deterministic", "--objective", "pack", "-o", "json"]
    assert run(asked) == 0
    steered = tmp_path / "steered.json"
    steered.write_text(capsys.readouterr().out)
    assert not json.loads(out(capsys, str(steered), dump, "-o", "json"))["byItself"]
    assert run([*asked, "--steer", "none"]) == 0
    alone = tmp_path / "alone.json"
    alone.write_text(capsys.readouterr().out)
    document = json.loads(alone.read_text())
    assert document["id"].endswith("-alone")
    assert any(note.startswith("kube-scheduler is left alone: ") for note in document["notes"])
    replayed = json.loads(out(capsys, str(alone), dump, "-o", "json"))
    assert replayed["byItself"]
    assert replayed["verdicts"]["lands as planned"] == len(replayed["landings"])
    assert run(["verify", str(alone), dump]) == 0
