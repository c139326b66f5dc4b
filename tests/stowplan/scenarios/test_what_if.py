"""``what-if``: each scenario by options gives what the dump gives that was edited by hand, solved from scratch."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import pytest

import stowplan
from stowplan.cli import run
from tests.stowplan.scenarios.test_scenarios import given, loaded
from tests.support.clusters import Manifest
from tests.support.edits import CASES, cluster, write_files

QUICK = ("-q", "-t", "1", "--deterministic")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    loaded(tmp_path, cluster())
    monkeypatch.chdir(tmp_path)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> Manifest:
    assert run([*words, *QUICK, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", CASES)
def test_a_scenario_gives_what_the_edited_dump_gives(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, edit = CASES[case]
    found = asked(capsys, "what-if", "dump.json", *shlex.split(words), "--write-snapshot", "written.json")
    loaded(tmp_path, edit(cluster()), "edited.json")
    edited, written = (stowplan.load(name) for name in ("edited.json", "written.json"))
    assert (written.nodes, written.pods) == (edited.nodes, edited.pods)
    unchanged, ours, scratch = found["unchanged"], found["whatIf"], asked(capsys, "solve", "edited.json")
    assert ours["status"] == scratch["status"] == "OPTIMAL"
    assert [tier["value"] for tier in ours["tiers"]] == [tier["value"] for tier in scratch["tiers"]]
    assert _waiting(ours) == _waiting(scratch)
    assert ours["moves"] == scratch["moves"]
    assert ours["snapshot"]["fingerprint"] == scratch["snapshot"]["fingerprint"]
    figures = {one["figure"]: one for one in found["figures"]}
    assert figures["moves"]["change"] == scratch["moves"] - unchanged["moves"]
    assert figures["unscheduled"]["change"] == _unscheduled(scratch) - _unscheduled(unchanged)


def _waiting(solution: Manifest) -> list[str]:
    return [one["name"] for one in solution["placements"] if one["node"] is None]


def _unscheduled(solution: Manifest) -> int:
    outside: int = sum(solution["snapshot"]["pods"]["pendingBecause"].values())
    return len(_waiting(solution)) + outside


def test_the_unchanged_cluster_is_solved_as_alone(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "what-if", "dump.json", "--uncordon", "n4")
    alone = asked(capsys, "solve", "dump.json")
    for field in ("tiers", "placements", "moves", "settings"):
        assert found["unchanged"][field] == alone[field]


def test_weights_are_those_of_an_objective_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The new weights decide, and both answers are measured by the old ones."""
    tiers = [{"name": "imbalance", "variance": {"cpu": 1, "memory": 1}, "moves": 0.5}]
    (tmp_path / "mine.yaml").write_text(json.dumps({"name": "balance", "tiers": tiers}))
    found = asked(capsys, "what-if", "dump.json", "--weight", "imbalance.moves=0.5")
    scratch = asked(capsys, "solve", "dump.json", "-O", "mine.yaml")
    assert [t["value"] for t in found["whatIf"]["tiers"]] == [t["value"] for t in scratch["tiers"]]
    figures = {one["figure"]: one for one in found["figures"]}
    assert figures["tiers.imbalance"]["change"] >= 0
    assert found["whatIf"]["moves"] >= found["unchanged"]["moves"]


def test_money_is_compared_where_prices_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without rules that keep them apart, all pods fit beside one that cannot move; a node costs half a unit."""
    (tmp_path / "prices.yaml").write_text("prices: [{price: 0.5}]")
    words = (
        "--resize-nodes n1:cpu=16,memory=64Gi --drop-rule anti-affinity --drop-rule spread --drop-rule node-affinity"
    )
    found = asked(capsys, "what-if", "dump.json", "--prices", "prices.yaml", "-O", "cost", *words.split())
    figures = {one["figure"]: one for one in found["figures"]}
    for answer in ("unchanged", "whatIf", "change"):
        assert figures["price"][answer] == 0.5 * figures["nodesInUse"][answer]
    assert figures["price"]["change"] < 0


def test_the_table_says_what_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["what-if", "dump.json", *QUICK, "--remove-nodes", "zone=a", "--forbid", "app=db@n2"]) == 0
    text = capsys.readouterr().out
    assert "What if 2 nodes removed (zone=a), 5 pods of them pending (1 pod without a controller" in text
    assert "4 pods more are pending, proven; " in text
    assert "Pending with the scenario only:\n  default/web-0: 0/3 nodes" in text
    assert "unchanged  what if  change" in text


def test_room_to_keep_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["what-if", "dump.json", *QUICK, "--headroom", "default/port:3"]
    assert run(words) == 0
    assert "room for 2 of 3 placeholders, proven; " in capsys.readouterr().out
    found = asked(capsys, *words)
    assert found["headroom"] == {"wanted": 3, "found": 2}
    assert run([*words, "-o", "csv"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["figure", "unit", "unchanged", "what if", "change"]
    placed = [row for row in rows if row[0].startswith("pods.default/port-headroom")]
    assert len(placed) == 2
    assert placed[0][2] == ""


def test_python_gives_the_same(tmp_path: Path) -> None:
    snapshot = stowplan.load("dump.json")
    options = stowplan.Options(time_limit=2, deterministic=True)
    scenario = given("--remove-nodes n2")
    found = stowplan.what_if(snapshot, scenario, options=options)
    alone = stowplan.solve(stowplan.apply_scenario(scenario, snapshot).snapshot, options=options)
    assert found.after.evaluation.values == alone.evaluation.values
    assert repr(found).startswith("<WhatIf 1 node removed (n2), 3 pods of it pending: <Solution OPTIMAL")
    assert "what if" in found._repr_html_()
    (tmp_path / "lost.yaml").write_text("{apiVersion: stowplan/v1, kind: Scenario, removeNodes: [n2]}")
    assert stowplan.what_if(snapshot, "lost.yaml", options=options).changed.effects == found.changed.effects


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "says no change; give one, such as --remove-nodes zone=a"),
        (("--remove-nodes", "n9"), "--remove-nodes: 'n9' is no node of the snapshot"),
        (("--scenario", "absent.yaml"), "absent.yaml: cannot be read: No such file or directory"),
        (("--uncordon", "n4", "--write-snapshot", "no/such/folder.json"), "no/such/folder.json: cannot be written"),
    ],
)
def test_what_cannot_be_asked_gets_one_line(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["what-if", "dump.json", *QUICK, *words]) == 1
    error = capsys.readouterr().err
    assert told in error
    assert len(error.splitlines()) == 1
    with pytest.raises(stowplan.InputError, match="scenario: must be a Scenario"):
        stowplan.what_if(stowplan.load("dump.json"), stowplan.Scenario())
