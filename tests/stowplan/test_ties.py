"""Where several nodes have the highest score, any may be taken, and it is said which."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from stowplan.cli import run
from tests.support.clusters import node, pod
from tests.support.malformed import listed


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """A pod that waits, two nodes that are alike, and one that is smaller."""
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(node("n1"), node("n2"), node("n3", cpu="2"), pod("new"))))
    return str(path)


def out(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["simulate", *arguments]) == 0
    return capsys.readouterr().out


def test_simulate_marks_a_tie_and_names_the_others_on_request(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = "For 1 pod, other nodes have the same score and may be taken instead"
    assert f"{said}; -o wide names them." in out(capsys, dump)
    wide = out(capsys, dump, "-o", "wide")
    assert f"{said}." in wide
    (row,) = (line.split() for line in wide.splitlines() if line.startswith("default/new "))
    assert sorted(row[1:]) == ["n1", "n2"]
    assert "TIED WITH" in wide


def test_every_form_names_the_others(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = json.loads(out(capsys, dump, "-o", "json"))["decisions"]
    assert sorted([found["node"], *found["tied"]]) == ["n1", "n2"]
    (row,) = csv.DictReader(io.StringIO(out(capsys, dump, "-o", "csv")))
    assert (row["node"], row["tied"]) == (found["node"], found["tied"][0])
