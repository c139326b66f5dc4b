"""One answer to who may move, what it costs, and what a placement is worth, in every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stowplan import Options, Settings
from stowplan.answers.assessment import Assessor
from stowplan.answers.compare import compare
from stowplan.answers.protections import protecting, protections
from stowplan.answers.solve import solve_snapshot
from stowplan.cli import run
from stowplan.models.settings import EXECUTORS
from stowplan.models.snapshot import Snapshot
from stowplan.settings.problem import make_ideal, make_problem
from tests.support.clusters import node, pod, snapshot
from tests.support.malformed import listed

QUICK = ("-q", "-t", "2", "--deterministic")
SOON = Options(time_limit=2, deterministic=True)
SCRATCH: dict[str, Any] = {"volumes": [{"name": "cache", "emptyDir": {}}]}


def manifests() -> list[dict[str, Any]]:
    """One node is crowded with pods of every sort; the other is empty."""
    sorts: list[dict[str, Any]] = [
        {},
        {"owner": "ReplicaSet/web"},
        {"owner": "ReplicaSet/db", **SCRATCH},
        {"owner": "ReplicaSet/db", **SCRATCH},
        {"owner": "InstanceManager/im"},
    ]
    pods = [pod(f"p{i}", "n1", cpu="700m", memory="500Mi", **spec) for i, spec in enumerate(sorts)]
    return [node("n1"), node("n2"), *pods]


def cluster() -> Snapshot:
    found = manifests()
    return snapshot(nodes=found[:2], pods=found[2:])


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(*manifests())))
    return str(path)


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run([*arguments, *QUICK, "-o", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_compare_and_solve_move_what_plan_moves(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = answered(capsys, "plan", dump)
    planned = [move["pod"]["name"] for wave in plan["waves"] for move in wave["moves"]]
    solution = answered(capsys, "solve", dump)
    solved = [one["name"] for one in solution["placements"] if one["node"] != one["source"]]
    compared = answered(capsys, "compare", dump)
    assert planned == solved == ["p1"]
    assert compared["placements"]["stowplan"]["moves"] == 1
    assert {answer["settings"]["executor"] for answer in (plan, solution, compared["solution"])} == {"eviction-api"}
    assert [one["name"] for one in solution["placements"]] == ["p1"]


def test_the_kube_scheduler_column_moves_the_same_pods(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    greedy = answered(capsys, "compare", dump, "--may-move", "local-storage")["placements"]["kube-scheduler"]
    assert greedy["moves"] <= 3


def test_the_ideal_is_a_column_of_its_own(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = answered(capsys, "compare", dump, "--ideal")
    columns = answer["placements"]
    assert list(columns) == ["today", "kube-scheduler", "stowplan", "ideal"]
    assert (columns["stowplan"]["moves"], columns["ideal"]["moves"]) == (1, 2)
    assert columns["ideal"]["tiers"]["imbalance"] < columns["stowplan"]["tiers"]["imbalance"]
    assert any(note.startswith("ideal: if every pod could move") for note in answer["notes"])
    found = {one["reason"]: one for one in answer["protections"]}
    assert {reason: one["pods"] for reason, one in found.items()} == {"local-storage": 2, "owner:InstanceManager": 1}
    assert run(["compare", dump, *QUICK, "--ideal"]) == 0
    told = capsys.readouterr().out
    assert "local-storage keeps 2 pods; with --may-move local-storage: imbalance " in told


def test_without_ideal_there_is_no_such_column(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = answered(capsys, "compare", dump)
    assert "ideal" not in answer["placements"]
    assert answer["protections"] == []


def test_what_a_protection_costs_is_what_waiving_it_brings() -> None:
    found = cluster()
    kept = solve_snapshot(make_problem(found, Settings()), SOON)
    free = solve_snapshot(make_problem(found, Settings(may_move=("local-storage",))), SOON)
    assert dict(protecting(found, Settings())) == {"local-storage": 2, "owner:InstanceManager": 1}
    costs = {one.reason: one for one in protections(found, Settings(), kept.assessment, SOON)}
    tier = kept.outcome.tiers[-1].tier
    gain = tier.shown(kept.evaluation.values[-1]) - tier.shown(free.evaluation.values[-1])
    assert gain > 0
    assert costs["local-storage"].gain == pytest.approx(gain)
    assert (costs["local-storage"].tier, costs["local-storage"].proven) == ("imbalance", True)


def test_a_plan_says_what_its_protections_cost(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = {one["reason"]: one for one in answered(capsys, "plan", dump)["protections"]}
    assert told["local-storage"]["pods"] == 2
    assert told["local-storage"]["gain"] > 0
    assert answered(capsys, "plan", dump, "--no-protection-costs")["protections"] == []


def test_moves_say_what_they_lose(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    waived = ("--may-move", "local-storage")
    answer = answered(capsys, "solve", dump, *waived)
    moved = {one["name"]: one["loses"] for one in answer["placements"] if one["node"] != one["source"]}
    losing = [name for name, loses in moved.items() if loses == ["data in emptyDir cache"]]
    assert losing
    assert all(not one["loses"] for one in answer["placements"] if one["node"] == one["source"])
    assert run(["solve", dump, *QUICK, *waived]) == 0
    told = capsys.readouterr().out
    assert "LOSES" in told
    assert "data in emptyDir cache" in told
    assert run(["compare", dump, *QUICK, *waived, "-o", "wide"]) == 0
    assert "data in emptyDir cache" in capsys.readouterr().out
    assert run(["solve", dump, *QUICK]) == 0
    assert "LOSES" not in capsys.readouterr().out


def test_a_placement_is_worth_the_same_in_every_command(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    worth = set()
    for executor in EXECUTORS:
        compared = answered(capsys, "compare", dump, "--executor", executor)
        worth.add(compared["placements"]["today"]["tiers"]["imbalance"])
        plan = answered(capsys, "plan", dump, "--executor", executor)
        worth.add(plan["tiers"][-1]["before"])
    for compiled in (make_problem(cluster(), Settings(executor=None)), make_ideal(cluster(), Settings())):
        assessor = Assessor(compiled)
        worth.add(compiled.problem.tiers[-1].shown(assessor.today.evaluation.values[-1]))
    assert len(worth) == 1


def test_kube_scheduler_is_not_charged_for_a_limit_that_it_does_not_know() -> None:
    found = snapshot(
        nodes=[node("n1"), node("n2")],
        pods=[pod(f"p{i}", "n1", cpu="500m", owner="ReplicaSet/web") for i in range(6)],
    )
    comparison = compare(make_problem(found, Settings(max_moves=1)), SOON)
    greedy, best = comparison.column("kube-scheduler"), comparison.column("stowplan")
    assert greedy is not None
    assert best is not None
    assert greedy.moves > best.moves == 1
    assert greedy.values[0] == 0
    assert not greedy.violations


def test_the_cost_of_moves_has_a_row_of_its_own(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, column in answered(capsys, "compare", dump)["placements"].items():
        parts = column["tierParts"]["imbalance"]
        assert parts["moves"] == 10 * column["moves"], name
        assert parts["placement"] + parts["moves"] == pytest.approx(column["tiers"]["imbalance"])
    assert run(["compare", dump, *QUICK]) == 0
    told = capsys.readouterr().out.splitlines()
    assert any(line.startswith("  cost of moves") for line in told)
    assert any(line.startswith("  placement") for line in told)
