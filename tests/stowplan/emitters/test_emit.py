"""The command: what is read, what is written and where."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from stowplan.cli import run
from stowplan.documents.plan import read_plan
from stowplan.emitters.registry import EMITTERS
from stowplan.emitters.target import Target
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from tests.support.carrying import cluster, two_waves
from tests.support.plans import move, plan, shop


def written(path: Path, made: Plan) -> str:
    path.write_text(made.model_dump_json(by_alias=True))
    return str(path)


def content(**changed: Any) -> dict[str, Any]:
    whole: dict[str, Any] = shop().model_dump(by_alias=True, mode="json")
    return {**whole, **changed}


def test_a_plan_is_read_in_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shop().model_dump_json(by_alias=True)
    forms = {
        "plan.json": text.encode(),
        "plan.json.gz": gzip.compress(text.encode()),
        "plan.yaml": yaml.safe_dump(json.loads(text)).encode(),
    }
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
        assert read_plan(str(tmp_path / name)) == shop()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert read_plan("-") == shop()


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("kind", "Solution", "kind: is 'Solution'; must be Plan"),
        ("kind", ..., "kind: is missing; must be Plan"),
        ("apiVersion", "stowplan/v2", "apiVersion: is 'stowplan/v2'; must be stowplan/v1"),
        ("apiVersion", ..., "apiVersion: is None; must be stowplan/v1"),
        ("waves", ..., "waves: is missing"),
        ("surprise", 1, "surprise: is an unknown field"),
        ("id", "Not A Label", "id: is 'Not A Label'; must"),
        ("expiresAt", "tomorrow", "expiresAt: 'tomorrow' is not a time such as 2026-01-31T12:00:00Z"),
        ("createdAt", "2026-01-31T12:00:00", "createdAt: '2026-01-31T12:00:00' is not a time"),
        ("waves/1/number", 3, "waves[1].number: is 3; must be 2"),
        ("waves/1/moves/0/id", "m0001", "waves[1].moves[0].id: 'm0001' appears twice"),
        ("waves/1/moves/0/follows", "m0006", "waves[1].moves[0].follows: 'm0006' is not a move of an earlier wave"),
        ("waves/0/moves/0/target", None, "waves[0].moves[0].target: must be set exactly for pods that get a node"),
        ("waves/0/moves/3/source", "n1", "waves[0].moves[3].source: must be set exactly for pods that have a node"),
        ("waves/0/moves/0/kind", "swap", "waves[0].moves[0].kind: is 'swap'; must be one of"),
        ("tokens/0/wave", 9, "tokens[0].wave: is 9; there are 2 waves"),
        ("tokens/0/ownerUid", "", "tokens[0]: names neither an owner nor a pod"),
        ("tokens/0/count", 0, "tokens[0].count: is 0; must be"),
    ],
)
def test_a_plan_that_cannot_be_used_gets_one_line(path: str, value: Any, said: str, tmp_path: Path) -> None:
    whole = content()
    place: Any = whole
    *way, last = path.split("/")
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(whole))
    with pytest.raises(InputError) as caught:
        read_plan(str(file))
    assert str(caught.value).startswith(f"{file}: {said}"), str(caught.value)


def test_the_command_knows_every_emitter() -> None:
    assert set(Target) == set(EMITTERS)


@pytest.mark.parametrize("target", sorted(EMITTERS))
def test_a_folder_is_written_once(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "plan.json", plan([move("shop/web-a", "n1", "n2", id="m0001")]))
    command = ["emit", file, "--to", target, "-d", str(tmp_path / "deep" / "out")]
    assert run(command) == 0
    names = capsys.readouterr().out.split()
    assert names
    made = {name: Path(name).read_bytes() for name in names}
    for name in names:
        assert bool(Path(name).stat().st_mode & 0o100) == name.endswith(".sh")
    Path(names[-1]).write_text("mine")
    if len(names) > 1:
        Path(names[0]).unlink()
    assert run(command) == 1
    captured = capsys.readouterr()
    assert captured.err.endswith("exists; give another folder with -d, or overwrite it with --force\n")
    assert captured.out == ""
    assert Path(names[-1]).read_text() == "mine"
    if len(names) > 1:
        assert not Path(names[0]).exists()  # not even what was free to be written
    assert run([*command, "--force"]) == 0
    assert {name: Path(name).read_bytes() for name in names} == made


def test_one_file_or_manifests_go_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "plan.json", plan([move("shop/web-a", "n1", "n2", id="m0001")]))
    assert run(["emit", file, "--to", "kubectl"]) == 0
    assert capsys.readouterr().out.startswith("#!/bin/sh\n")
    assert run(["emit", file, "--to", "koordinator"]) == 0
    out = capsys.readouterr().out
    assert [m["kind"] for m in yaml.safe_load_all(out)] == ["Reservation", "PodMigrationJob"]
    assert run(["emit", file, "--to", "descheduler"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "stowplan: -d: there are 3 files; give a folder for them\n"
    assert captured.out == ""


def test_a_plan_without_moves_can_be_emitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "plan.json", plan())
    for target in sorted(EMITTERS):
        assert run(["emit", file, "--to", target, "-d", str(tmp_path / target)]) == 0, capsys.readouterr().err


def told(plan: Plan, target: str, folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """Emit, and return what is said on standard error."""
    file = written(folder / "plan.json", plan)
    assert run(["emit", file, "--to", target, "-d", str(folder / "out"), "--force", *more]) == 0
    return capsys.readouterr().err


def test_an_expired_plan_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "expired" not in told(shop(), "kubectl", tmp_path, capsys)
    late = shop(expires_at="2026-01-01T00:00:00Z")
    assert "warning: the plan expired at 2026-01-01T00:00:00Z" in told(late, "kubectl", tmp_path, capsys)


def test_a_plan_that_nobody_steers_is_not_told_to_be_steered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for target in ("kubectl", "descheduler"):
        assert "run stowplan serve" in told(shop(), target, tmp_path, capsys)
        assert "stowplan serve" not in told(shop(steered=False), target, tmp_path, capsys)
    assert "made with --steer none" in told(shop(steered=False), "pin", tmp_path, capsys)


def test_a_plan_for_another_executor_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "the plan was made for eviction-api, which can move other pods than the descheduler"
    assert said in told(shop(), "descheduler", tmp_path, capsys)
    assert said not in told(shop(executor="descheduler"), "descheduler", tmp_path, capsys)


def test_a_snapshot_that_is_not_the_plans_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifests = cluster()
    made = two_waves(manifests)
    dump = tmp_path / "dump.json"
    more = ["--snapshot", str(dump)]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    assert "--snapshot" not in told(made, "descheduler", tmp_path, capsys, *more)
    db = next(m for m in manifests if m["metadata"]["name"] == "db-0")
    db["status"] = {**db["status"], "phase": "Pending"}
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    assert "passes over pods that do not run: shop/db-0" in told(made, "descheduler", tmp_path, capsys, *more)
    db["metadata"] = {**db["metadata"], "uid": "of-another"}
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    said = "--snapshot is not what the plan was made for: 1 of 3 pods are not in it (shop/db-0)"
    assert said in told(made, "descheduler", tmp_path, capsys, *more)
