"""A Markdown table has a header, a rule, and one row for each row of the answer."""

import json
from pathlib import Path

import pytest

from stowplan.cli import run
from tests.support.clusters import node, pod
from tests.support.malformed import listed


def test_markdown_is_a_table_with_one_row_a_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(listed(node("n1"), node("n2"), pod("a", "n1", owner="ReplicaSet/a"), pod("b"))))
    assert run(["solve", str(dump), "-q", "-t", "5", "--deterministic", "-o", "markdown"]) == 0
    header, rule, *rows = capsys.readouterr().out.splitlines()
    assert header == "| namespace | name | uid | source | node | loses |"
    assert rule == "| --- | --- | --- | --- | --- | --- |"
    assert [row.split(" | ")[:2] for row in rows] == [["| default", "a"], ["| default", "b"]]


def test_every_command_with_rows_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "-q", "tests/golden/k36/ports.jsonl.gz", "-o", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("| ")
