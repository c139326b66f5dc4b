"""plan and verify on the command line: what they print, what they refuse, and the schema that is published."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.cli import run
from stowplan.documents.plan import read_plan
from stowplan.documents.schemas import FOLDER, schemas
from stowplan.models.plan import Plan
from tests.plans.test_drift import owned
from tests.support.clusters import labels, node, pod
from tests.support.malformed import listed
from tests.support.restless import READY

QUICK = ("-q", "-t", "1", "--deterministic")


def cluster() -> dict[str, Any]:
    """Build a dump: seven pods on one node, of which a budget lets two leave at a time, and an idle node."""
    items = [{"kind": "Node", **node("a")}, {"kind": "Node", **node("b")}]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": True}
    for i in range(8):
        made = pod(f"web-{i}", "a", cpu="400m", memory="512Mi", labels={"app": "web", "pod-template-hash": "h1"})
        made["metadata"] |= {"uid": f"uid-web-{i}", "ownerReferences": [owner]}
        made["status"]["conditions"] = READY
        items.append({"kind": "Pod", **made})
    meta = {"name": "web", "namespace": "default", "uid": "uid-web"}
    items.append({"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": meta, "spec": {"replicas": 8}})
    spec = {"selector": labels(app="web"), "maxUnavailable": 2}
    budget = {"metadata": {"name": "pdb", "namespace": "default"}, "spec": spec}
    items.append({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", **budget})
    return {"kind": "List", "apiVersion": "v1", "items": items}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(cluster()), encoding="utf-8")
    return str(path)


def out(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(list(arguments)) == code, capsys.readouterr().err
    return capsys.readouterr().out


def planned(capsys: pytest.CaptureFixture[str], dump: str, *more: str) -> Plan:
    return Plan.model_validate_json(out(capsys, "plan", dump, *QUICK, "-o", "json", *more))


def test_a_plan_comes_in_waves_within_budgets(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(capsys, dump)
    assert [len(wave.moves) for wave in plan.waves] == [2, 2]
    assert plan.least_waves == 2
    assert (plan.executor, plan.limits.per_owner) == ("eviction-api", "25%")
    move = plan.moves[0]
    assert move.owner is not None
    assert (move.owner.uid, move.template_hash, move.budgets) == ("uid-web", "h1", ("pdb",))
    assert (move.source, move.target, move.requests) == ("a", "b", {"cpu": "400m", "memory": "512Mi"})
    assert [(t.wave, t.owner_uid, t.pod, t.target, t.count) for t in plan.tokens] == [
        (1, "uid-web", None, "b", 2),
        (2, "uid-web", None, "b", 2),
    ]
    assert plan.waves[0].peak["b"]["cpu"] == 0.2
    tier = plan.tiers[-1]
    assert tier.before > plan.waves[0].tiers[-1] > plan.waves[1].tiers[-1] == tier.after


def test_the_same_plan_has_the_same_id(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = planned(capsys, dump), planned(capsys, dump)
    assert first.id == second.id
    assert planned(capsys, dump, "--max-per-wave", "1").id != first.id


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        (("--max-per-owner", "1"), [1, 1, 1, 1]),
        (("--max-per-wave", "1"), [1, 1, 1, 1]),
        (("--max-per-node", "1"), [1, 1, 1, 1]),
        (("--max-per-namespace", "1"), [1, 1, 1, 1]),
        (("--max-per-owner", "any"), [2, 2]),
        (("--max-moves", "1"), [1]),
        (("--freeze", "default"), []),
    ],
)
def test_limits_and_freezes(
    dump: str, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], sizes: list[int]
) -> None:
    assert [len(wave.moves) for wave in planned(capsys, dump, *options).waves] == sizes


def test_the_text_says_what_each_wave_brings(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "plan", dump, *QUICK)
    assert "Plan: 4 moves in 2 waves: imbalance" in text
    assert "Wave 1 of 2, 2 moves: imbalance" in text
    assert re.search(
        r"^  ~ default/web-\d  a → b  # cpu 80% on a, 0% on b; PodDisruptionBudget pdb$", text, re.MULTILINE
    )
    assert "minimum number of waves (proven)" in text


def test_all_forms_hold_the_same_moves(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(capsys, dump)
    content = yaml.safe_load(out(capsys, "plan", dump, *QUICK, "-o", "yaml"))
    assert [m["id"] for wave in content["waves"] for m in wave["moves"]] == [m.id for m in plan.moves]
    rows = list(csv.DictReader(io.StringIO(out(capsys, "plan", dump, *QUICK, "-o", "csv"))))
    assert [(row["id"], row["name"], row["target"]) for row in rows] == [
        (m.id, m.pod.name, m.target) for m in plan.moves
    ]


def test_an_empty_plan_is_a_good_answer(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "plan", dump, *QUICK, "--max-moves", "0", "--detailed-exitcode")
    assert "Nothing to do" in text
    out(capsys, "plan", dump, *QUICK, "--detailed-exitcode", code=2)


def test_a_plan_is_verified(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(out(capsys, "plan", dump, *QUICK, "-o", "json"), encoding="utf-8")
    assert "Verified: 0 of 4 moves done" in out(capsys, "verify", str(path), dump)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["waves"][0]["moves"] += content["waves"].pop()["moves"]
    content["tokens"][1]["wave"] = 1
    path.write_text(json.dumps(content), encoding="utf-8")
    assert run(["verify", str(path), dump]) == 1
    capsys.readouterr()
    found = json.loads(out(capsys, "verify", str(path), dump, "-o", "json", code=1))
    assert found["kind"] == "PlanVerification"
    assert not found["holds"]


def test_a_solution_is_put_in_order(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "solution.json"
    path.write_text(out(capsys, "solve", dump, *QUICK, "-o", "json"), encoding="utf-8")
    assert "Verified" in out(capsys, "verify", str(path), dump)
    plan = planned(capsys, dump, "--solution", str(path))
    assert [len(wave.moves) for wave in plan.waves] == [2, 2]
    assert plan.status == "OPTIMAL"


def test_a_solution_of_another_cluster_is_refused(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "solution.json"
    path.write_text(out(capsys, "solve", dump, *QUICK, "-o", "json"), encoding="utf-8")
    content = cluster()
    del content["items"][3]
    Path(dump).write_text(json.dumps(content), encoding="utf-8")
    assert run(["plan", dump, "--solution", str(path), "-q"]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert "does not fit the snapshot: Pod default/web-1: is not in the snapshot" in said.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--expires-in", "soon"), "--expires-in: 'soon' is not a duration"),
        (("--expires-in", "0s"), "--expires-in: '0s' is not a duration"),
        (("--max-per-owner", "110%"), "--max-per-owner: '110%' is neither a number"),
        (("--max-per-owner", "0"), "--max-per-owner: '0' is neither a number"),
    ],
)
def test_what_makes_no_sense_is_refused(
    dump: str, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], problem: str
) -> None:
    assert run(["plan", dump, *QUICK, *options]) == 1
    said = capsys.readouterr()
    assert problem in said.err
    assert not said.out


def test_the_published_schema_is_up_to_date() -> None:
    for name, text in schemas().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "run python -m stowplan.documents.schemas"


def test_a_printed_plan_can_be_read(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("json", "yaml"):
        path = tmp_path / f"plan.{form}"
        path.write_text(out(capsys, "plan", dump, *QUICK, "-o", form), encoding="utf-8")
        assert len(read_plan(str(path)).waves) == 2


def test_an_interrupt_yields_a_plan_of_the_best_so_far() -> None:
    """The demonstration has minutes of search left in it; what is found first becomes the plan."""
    from stowplan.instances.demo import demo_path

    code = "from stowplan.cli import main; main()"
    arguments = ["plan", str(demo_path()), "-t", "300", "-o", "json"]
    started = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert started.stderr is not None
    assert any("annealing" in line for line in started.stderr)
    started.send_signal(signal.SIGINT)
    text, _ = started.communicate(timeout=60)
    assert started.returncode == 0
    assert Plan.model_validate_json(text).waves


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (("--max-moves", "1"), "--max-moves"),
        (("--objective", "balance"), "--objective"),
        (("--freeze", "default"), "--freeze"),
        (("--equal-moves",), "--equal-moves"),
        (("--preemption", "never"), "--preemption"),
    ],
)
def test_options_that_the_solution_decides_are_refused(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], option: str
) -> None:
    path = tmp_path / "solution.json"
    path.write_text(out(capsys, "solve", dump, *QUICK, "-o", "json"), encoding="utf-8")
    assert run(["plan", dump, "--solution", str(path), *QUICK, *options]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert said.err == f"stowplan: {option}: excludes --solution, which decides it\n"


def test_no_cordons_is_for_plans_that_nobody_steers(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", dump, *QUICK, "--no-cordons"]) == 1
    assert "--no-cordons: needs --steer none" in capsys.readouterr().err
    assert run(["plan", dump, *QUICK, "--no-cordons", "--steer", "none"]) == 0


def test_a_plan_that_mends_nothing_does_not_say_that_nothing_is_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"kind": "List", "apiVersion": "v1", "items": []}
    content["items"] = [{"kind": "Node", **node("a", cpu="1")}, {"kind": "Pod", **owned("web-0", "a", cpu="2")}]
    path = tmp_path / "full.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert ": 1 violated constraint remains." in out(capsys, "plan", str(path), *QUICK)
    content["items"][1] = {"kind": "Pod", **owned("web-0", "", cpu="2")}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert ": 1 pod stays unscheduled." in out(capsys, "plan", str(path), *QUICK)


def test_a_wave_to_stop_after_is_one_of_the_plan(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(out(capsys, "plan", dump, *QUICK, "-o", "json"), encoding="utf-8")
    assert run(["apply", str(path), "--stop-after-wave", "77"]) == 1
    assert f"--stop-after-wave: is 77; {path} has 2 waves" in capsys.readouterr().err


@pytest.mark.parametrize("packed", [False, True])
def test_apply_refuses_bytes_that_were_not_reviewed(
    packed: bool, dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = out(capsys, "plan", dump, *QUICK, "-o", "json").encode()
    path = tmp_path / "plan.json"
    path.write_bytes(gzip.compress(text) if packed else text)
    reviewed = hashlib.sha256(path.read_bytes()).hexdigest()
    # The plan is read: the next check, of its waves, refuses it.
    assert run(["apply", str(path), "--expect-hash", reviewed.upper(), "--stop-after-wave", "77"]) == 1
    assert "--stop-after-wave: is 77" in capsys.readouterr().err
    path.write_bytes(gzip.compress(text + b" ") if packed else text + b" ")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert run(["apply", str(path), "--expect-hash", reviewed, "--stop-after-wave", "77"]) == 1
    assert f"{path}: has the SHA-256 {found}; --expect-hash says {reviewed}\n" in capsys.readouterr().err


def test_an_expected_hash_is_a_sha256(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["apply", str(tmp_path / "plan.json"), "--expect-hash", "abc"]) == 1
    assert "--expect-hash: is 'abc'; must be 64 hexadecimal digits" in capsys.readouterr().err
    assert run(["apply", str(tmp_path / "plan.json"), "--expect-hash", "0" * 64]) == 1
    assert "plan.json: no such file" in capsys.readouterr().err


def test_a_name_of_a_plan_is_explained_in_words(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    content = json.loads(out(capsys, "plan", dump, *QUICK, "-o", "json")) | {"id": "My Plan"}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert run(["verify", str(path), dump]) == 1
    assert "id: is 'My Plan'; must be a name of at most 52 lower-case letters" in capsys.readouterr().err


def test_what_was_made_with_a_configuration_needs_it(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("solve", "plan"):
        made = json.loads(out(capsys, command, dump, *QUICK, "-o", "json"))
        made["settings"]["config"] = "mine.yaml"
        (tmp_path / command).write_text(json.dumps(made))
    solution, plan = str(tmp_path / "solve"), str(tmp_path / "plan")
    for asked, document in (
        (["verify", solution, dump], solution),
        (["plan", dump, "--solution", solution], solution),
        (["verify", plan, dump], plan),
        (["replay", plan, dump], plan),
    ):
        assert run(asked) == 1
        said = f"stowplan: {document}: settings.config: was made with mine.yaml; give it with --config\n"
        assert capsys.readouterr().err == said


def test_a_plan_says_how_many_of_its_moves_bring_most(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One large pod and several small ones on one node: the first moves bring nearly all, in table and JSON."""
    pods = [owned(f"web{i}-x", "a", cpu=f"{100 + 10 * i}m") for i in range(8)]
    path = tmp_path / "crowd.json"
    path.write_text(json.dumps(listed(node("a"), node("b"), node("c"), owned("big-x", "a", cpu="1500m"), *pods)))
    lines = out(capsys, "plan", str(path), *QUICK).splitlines()
    told = lines[lines.index(next(line for line in lines if line.startswith("Plan: "))) + 1]
    assert " of the improvement in imbalance. Recommended: --max-moves " in told
    document = json.loads(out(capsys, "plan", str(path), *QUICK, "-o", "json"))
    assert document["notes"][0] == told
