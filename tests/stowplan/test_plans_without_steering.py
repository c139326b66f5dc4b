"""``plan --steer none`` as a user runs it: what the operator accepts, and what its notes say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stowplan.cli import run
from stowplan.models.plan import Plan
from stowplan.planning import unassisted
from stowplan.plans.unassisted import Unassisted, UnassistedLimits
from tests.plans.test_replay import owned
from tests.support.clusters import node
from tests.support.malformed import listed


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """Three nodes, one of which is in use for a pod that kube-scheduler would send back there."""
    pods = [owned("web-a", "n1"), owned("db-a", "n2", cpu="2"), owned("db-b", "n3", cpu="1500m")]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(*(node(name) for name in ("n1", "n2", "n3")), *pods)))
    return str(path)


def planned(capsys: pytest.CaptureFixture[str], dump: str, *more: str) -> Plan:
    asked = ["plan", dump, "-q", "-t", "10", "--deterministic", "--objective", "pack", "--steer", "none", "-o", "json"]
    assert run([*asked, *more]) == 0
    return Plan.model_validate_json(capsys.readouterr().out)


def test_a_cordon_is_used_as_far_as_it_is_accepted(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = planned(capsys, dump)
    assert [(wave.cordon, [move.pod.name for move in wave.moves]) for wave in found.waves] == [(("n1",), ["web-a"])]
    assert found.notes[-1] == "cordon of n1 in wave 1: buys 100% of the gain"
    without = planned(capsys, dump, "--max-cordons", "0")
    assert not without.waves
    assert without.notes[-1] == (
        "steering is worth it: it keeps the other 100%; plan without --steer none, and use serve"
    )


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ([], UnassistedLimits(10, 20)),
        (["--max-cordons", "3", "--max-waves", "4"], UnassistedLimits(3, 4)),
        (["--no-cordons"], UnassistedLimits(0, 20)),
    ],
)
def test_limits_are_those_of_the_options(
    dump: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    limits: UnassistedLimits,
) -> None:
    kept: list[UnassistedLimits] = []
    arrange = unassisted.arrange_unassisted

    def arranged(*args: Any, **more: Any) -> Unassisted:
        kept.append(more["limits"])
        return arrange(*args, **more)

    monkeypatch.setattr(unassisted, "arrange_unassisted", arranged)
    planned(capsys, dump, *options)
    assert kept == [limits]
