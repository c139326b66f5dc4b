"""Limits on the moves of some pods: of a namespace, of a workload, of those that a selector matches."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stowplan
from stowplan.cli import run
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.result import Status
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.settings.problem import make_problem
from tests.support.cases import manifests
from tests.support.clusters import node, pod, snapshot

SOON = Options(time_limit=5, deterministic=True)


def crowded() -> Snapshot:
    """Eight equal pods on one of two nodes: half of them should leave."""
    web: dict[str, Any] = {"namespace": "shop", "labels": {"app": "web", "pod-template-hash": "5d4f"}}
    return snapshot(
        nodes=[node("n1"), node("n2")],
        pods=[
            *(pod(f"web-{i}", "n1", cpu="400m", owner="ReplicaSet/web-5d4f", **web) for i in range(4)),
            *(pod(f"pay-{i}", "n1", namespace="payments", cpu="400m", owner="ReplicaSet/pay") for i in range(4)),
        ],
    )


def moved(settings: Settings, options: Options = SOON) -> Counter[str]:
    found = stowplan.solve(crowded(), settings, options)
    assert found.status is Status.OPTIMAL
    return Counter(move.pod.namespace for move in found.moves)


@pytest.mark.parametrize("limit", ["ns=shop:1", "workload=shop/web:1", "workload=shop/web-5d4f:1", "app=web:1"])
@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "no-kernels"])
def test_only_so_many_of_some_pods_move(limit: str, kernels: bool) -> None:
    options = replace(SOON, kernels=kernels)
    assert moved(Settings(), options).total() == 4
    assert moved(Settings(max_moves_of=(limit,)), options) == {"shop": 1, "payments": 3}
    assert moved(Settings(max_moves=2, max_moves_of=(limit, "ns=payments:0")), options) == {"shop": 1}


def test_limits_add_up() -> None:
    assert moved(Settings(max_moves_of=("ns=shop:1", "ns=payments:1"))) == {"shop": 1, "payments": 1}
    assert moved(Settings(max_moves_of=("ns=shop:3", "app=web:0"))) == {"payments": 4}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(manifests(crowded())))
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run([*arguments, "-q", "-t", "2", "--deterministic", "-o", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


LIMITS = ("--max-moves", "3", "--max-moves", "ns=payments:0", "--max-moves", "app=web:2")


def test_every_command_keeps_the_limits(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    solved = answer(capsys, "solve", dump, *LIMITS)
    assert sum(one["node"] != one["source"] for one in solved["placements"]) == 2
    assert (solved["settings"]["maxMoves"], solved["settings"]["maxMovesOf"]) == (3, ["ns=payments:0", "app=web:2"])
    assert answer(capsys, "compare", dump, *LIMITS)["placements"]["stowplan"]["moves"] == 2
    plan = answer(capsys, "plan", dump, *LIMITS)
    assert {move["pod"]["namespace"] for wave in plan["waves"] for move in wave["moves"]} == {"shop"}
    assert sum(len(wave["moves"]) for wave in plan["waves"]) == 2
    points = answer(
        capsys, "frontier", dump, "--moves", "1", "--max-moves", "ns=payments:0", "--max-moves", "app=web:2"
    )
    assert [point["moves"] for point in points["points"]] == [1, 2]


def test_a_drain_keeps_the_limits() -> None:
    limited = Settings(max_moves_of=("ns=payments:1",))
    drained = stowplan.drain(crowded(), "n1", limited, SOON)
    assert Counter(move.pod.namespace for w in drained.planned.plan.waves for move in w.moves) == {
        "shop": 4,
        "payments": 1,
    }


def test_a_limit_that_concerns_nothing_is_said() -> None:
    assert make_problem(crowded(), Settings(max_moves_of=("ns=shop:1",))).notes == make_problem(crowded()).notes
    notes = make_problem(crowded(), Settings(max_moves_of=("ns=other:1",))).notes
    assert notes[-1] == "--max-moves ns=other:1 limits nothing: none of its pods may move"


@pytest.mark.parametrize("wrong", ["ns=:1", "ns=a", "ns=a:-1", "workload=web:1", "workload=a/:1", ":3", "a b=:1"])
def test_a_limit_that_is_none_is_refused(wrong: str, dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="must be "):
        Settings(max_moves_of=(wrong,))
    assert run(["solve", dump, "-q", f"--max-moves={wrong}"]) == 1
    assert capsys.readouterr().err.startswith("stowplan: --max-moves: ")


def test_frontier_takes_no_limit_on_all_moves(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["frontier", dump, "--max-moves", "3"]) == 1
    assert "--max-moves: is 3; a limit on all moves is given with --moves" in capsys.readouterr().err
