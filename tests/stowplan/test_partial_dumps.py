"""Plans of incomplete dumps are refused unless told otherwise, and then say so."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stowplan.cli import run
from stowplan.instances.load import load
from tests.support.whole_dump import (
    Manifest,
    agents_alone,
    dumped,
    emptied,
    items,
    without,
)

FATAL: dict[str, tuple[Callable[[], str], str]] = {
    "one namespace": (
        lambda: dumped(without(lambda item: item["metadata"].get("namespace") == "kube-system")),
        "2 nodes have neither a DaemonSet pod nor a static pod; all pods are in namespace default: pods are missing",
    ),
    "one namespace with an agent on each node": (
        lambda: dumped(agents_alone("monitoring")),
        "all pods are in namespace monitoring: those of other namespaces are missing",
    ),
    "a namespace with workloads": (
        lambda: dumped(emptied(2)),
        "workloads of 1 namespace have pods, and none of them is in the dump (default): pods are missing",
    ),
    "remaining items": (lambda: dumped(items(), remainingItemCount=7), "not read to its end: 7 objects are missing"),
    "continue": (lambda: dumped(items(), **{"continue": "x"}), "not read to its end: objects are missing"),
    "allocatable": (lambda: dumped(stripped("Node", "allocatable")), "2 nodes without status.allocatable"),
    "phase": (lambda: dumped(stripped("Pod", "phase")), "4 pods without status.phase"),
}


def stripped(kind: str, field: str) -> list[Manifest]:
    found = copy.deepcopy(items())
    for item in found:
        if item["kind"] == kind:
            item["status"].pop(field, None)
    return found


@pytest.mark.parametrize("case", FATAL)
@pytest.mark.parametrize("command", [["plan"], ["drain", "n1", "--from"], ["fit", "--pod", "default/web-1"]])
def test_plans_of_such_dumps_are_refused(
    case: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, said = FATAL[case]
    path = tmp_path / "dump.json"
    path.write_text(make())
    assert run([*command, str(path)]) == 1
    printed = capsys.readouterr()
    assert "the dump is incomplete: " in printed.err
    assert said in printed.err
    assert "--partial plans nevertheless" in printed.err
    assert not printed.out
    assert load(path).notes[0] in printed.err


@pytest.mark.parametrize("command", [["emit", "--to", "kubectl"], ["apply"]])
def test_nobody_carries_out_a_partial_plan(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, plan = tmp_path / "dump.json", tmp_path / "plan.json"
    path.write_text(FATAL["one namespace"][0]())
    assert run(["plan", str(path), "--partial", "-q", "-t", "1", "--deterministic", "-o", "json"]) == 0
    plan.write_text(capsys.readouterr().out)
    written = json.loads(plan.read_text())
    assert list(written)[:4] == ["apiVersion", "kind", "gaps", "partial"]
    assert (written["partial"], written["gaps"][0][:21]) == (True, "2 nodes have neither ")
    assert run([*command, str(plan)]) == 1
    told = capsys.readouterr().err
    assert "was made from an incomplete dump: 2 nodes have neither a DaemonSet pod" in told
    assert "--partial goes on nevertheless" in told
    if command[0] == "emit":
        assert run([*command, str(plan), "--partial"]) == 0
        assert "the dump of the plan is incomplete: 2 nodes have neither" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["compare"], ["solve"], ["plan", "--partial"], ["drain", "n1", "--partial", "--from"]]
)
def test_the_first_line_says_what_is_missing(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "dump.json"
    path.write_text(dumped(without(lambda item: item["kind"] == "PodDisruptionBudget")))
    assert run([*command, str(path), "-q", "-t", "1", "--deterministic"]) in (0, 3)
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(
        "Incomplete dump: no PodDisruptionBudget is in the dump, so it is not known which evictions"
    )


def test_partial_plans_nevertheless_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.json"
    path.write_text(FATAL["one namespace"][0]())
    assert run(["plan", str(path), "--partial", "-q", "-t", "1", "--deterministic", "-o", "json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("stowplan: warning: 2 nodes have neither a DaemonSet pod nor a static pod")
    assert json.loads(printed.out)["notes"][0].startswith("2 nodes have neither")
