"""The commands as a user runs them: every output form, every option that changes the answer, signals and pipes."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.cli import run
from tests.support.clusters import node, pod
from tests.support.malformed import listed

STOWPLAN = Path(sys.executable).with_name("stowplan")
QUICK = ("-q", "-t", "5", "--deterministic")
"""Counts work instead of seconds: what is proven in five of them is so on a busy machine too."""


def cluster() -> dict[str, Any]:
    """Two nodes, one of them full: balancing moves a pod, and the pending one fits."""
    pods = [pod(f"web-{i}", "n1", cpu="1", labels={"app": "web"}, owner="ReplicaSet/web") for i in range(4)]
    tool = pod("tool", "n1", cpu="500m", namespace="tools", owner="ReplicaSet/tool")
    return listed(node("n1", cpu="6"), node("n2", cpu="6", pods=5), *pods, tool, pod("new", cpu="1"))


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(cluster()))
    return str(path)


def out(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(arguments) == code
    return capsys.readouterr().out


# -- output forms ---------------------------------------------------------------------------------------------


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "stowplan", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == version("stowplan")


def test_compare_answers_first_then_shows_the_table(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = out(capsys, "compare", dump, *QUICK).splitlines()
    assert lines[0] == "2 nodes, 6 pods = 5 placed + 1 pending + 0 fixed + 0 finished"
    assert lines[2].startswith("Move 2 pods and schedule 1 pending pod: ")
    assert lines[2].endswith("proven optimal.")
    header = next(line for line in lines if "kube-scheduler" in line and "bound" in line)
    assert header.split()[-2:] == ["stowplan", "bound"]
    assert any(line.startswith("pods scheduled") for line in lines)


def test_compare_in_every_form_says_the_same(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    as_json = json.loads(out(capsys, "compare", dump, *QUICK, "-o", "json"))
    as_yaml = yaml.safe_load(out(capsys, "compare", dump, *QUICK, "-o", "yaml"))
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(out(capsys, "compare", dump, *QUICK, "-o", "csv")))}
    assert as_json["kind"] == "Comparison"
    best = as_json["placements"]["stowplan"]
    assert best == as_yaml["placements"]["stowplan"]
    column = rows["figure"].index("stowplan")
    assert int(rows["scheduled"][column]) == best["scheduled"] == 6
    assert float(rows["tiers.imbalance"][column]) == best["tiers"]["imbalance"]
    assert float(rows["tiers.imbalance"][-1]) == as_json["solution"]["tiers"][-1]["bound"]


def test_solve_lists_moves(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "solve", dump, *QUICK)
    assert "default/new" in text
    assert "(pending)" in text
    rows = list(csv.DictReader(io.StringIO(out(capsys, "solve", dump, *QUICK, "-o", "csv"))))
    assert len(rows) == 6
    assert sum(row["source"] != row["node"] for row in rows) == 3


def test_wide_shows_every_move_and_table_a_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods = [pod(f"p-{i:02d}", cpu="100m", memory="64Mi") for i in range(40)]
    path = tmp_path / "many.json"
    path.write_text(json.dumps(listed(node("n1"), node("n2"), *pods)))
    text = out(capsys, "solve", str(path), *QUICK)
    assert "… and 20 more; -o wide shows all" in text
    wide = out(capsys, "solve", str(path), *QUICK, "-o", "wide")
    assert sum("(pending)" in line for line in wide.splitlines()) == 40


# -- options that change the answer ---------------------------------------------------------------------------


def moved(document: str) -> dict[str, tuple[str | None, str | None]]:
    placements = json.loads(document)["placements"]
    return {p["name"]: (p["source"], p["node"]) for p in placements if p["source"] != p["node"]}


def test_max_moves(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(moved(out(capsys, "solve", dump, *QUICK, "-o", "json"))) == 3
    assert len(moved(out(capsys, "solve", dump, *QUICK, "-o", "json", "--max-moves", "1"))) == 2
    assert set(moved(out(capsys, "solve", dump, *QUICK, "-o", "json", "--max-moves", "0"))) == {"new"}


def test_freeze_by_namespace_by_selector_and_bare(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(moved(out(capsys, "solve", dump, *QUICK, "-o", "json", "--freeze", "app=web"))) == {"tool", "new"}
    frozen = json.loads(out(capsys, "solve", dump, *QUICK, "-o", "json", "--freeze", "tools"))
    assert frozen["snapshot"]["pods"]["fixedBecause"] == {"frozen namespace tools": 1}
    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps(listed(node("n1"), pod("a", "n1"))))
    bare = json.loads(out(capsys, "solve", str(alone), *QUICK, "-o", "json", "--freeze-bare"))
    assert bare["snapshot"]["pods"]["fixedBecause"] == {"frozen: no controller": 1}


def test_a_freeze_that_matches_nobody_is_said(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", dump, *QUICK, "--freeze", "app=wbe"]) == 0
    assert "--freeze app=wbe matches no pod" in capsys.readouterr().err


def test_detailed_exit_code(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out(capsys, "solve", dump, *QUICK, "--detailed-exitcode", code=2)
    out(capsys, "compare", dump, *QUICK, "--detailed-exitcode", code=2)
    calm = tmp_path / "calm.json"
    calm.write_text(json.dumps(listed(node("n1"), pod("a", "n1"))))
    text = out(capsys, "solve", str(calm), *QUICK, "--detailed-exitcode")
    assert "Nothing to do: today's placement is proven optimal." in text


def test_an_objective_file(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "objective.yaml"
    path.write_text("name: mine\ntiers:\n- {name: cpu only, variance: {cpu: 1}}\n")
    document = json.loads(out(capsys, "solve", dump, *QUICK, "-o", "json", "--objective", str(path)))
    assert document["settings"]["objective"]["name"] == "mine"
    assert document["tiers"][-1]["name"] == "cpu only"
    assert document["tiers"][-1]["status"] == "OPTIMAL"


@pytest.mark.parametrize("preset", ["balance", "pack", "spread", "repair", "kube"])
def test_every_preset_answers(preset: str, dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(out(capsys, "solve", dump, *QUICK, "-o", "json", "--objective", preset))
    assert document["status"] == "OPTIMAL"
    assert all(placement["node"] for placement in document["placements"])


def test_a_scheduler_configuration(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """MostAllocated packs where the default spreads."""
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated, "
        "resources: [{name: cpu, weight: 1}]}}\n"
        "  plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]}}\n"
    )
    plain = json.loads(out(capsys, "simulate", dump, "-o", "json"))
    packed = json.loads(out(capsys, "simulate", dump, "-o", "json", "--config", str(path)))
    assert [d["node"] for d in plain["decisions"]] == ["n2"]
    assert [d["node"] for d in packed["decisions"]] == ["n1"]


@pytest.mark.parametrize("release", ["1.24", "1.36"])
def test_simulate_all_places_every_free_pod_anew(release: str, dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(out(capsys, "simulate", dump, "--all", "--profile", release, "-o", "json"))
    assert document["fromEmpty"] is True
    assert document["scheduled"] == 6
    assert {d["node"] for d in document["decisions"]} == {"n1", "n2"}


# -- preemption -----------------------------------------------------------------------------------------------


@pytest.fixture
def full(tmp_path: Path) -> str:
    """A node that is full, a small one that is not, and a pod that is more important than what stands there."""
    pods = [
        pod("owned", "n1", cpu="2", priority=5, owner="ReplicaSet/r"),
        pod("tool", "n1", cpu="2", priority=0, owner="ReplicaSet/s"),
        pod("agent", "n2", cpu="500m", priority=0, owner="DaemonSet/agent"),
    ]
    new = pod("new", cpu="4", priority=100, creationTimestamp="2026-01-01T00:00:00Z")
    path = tmp_path / "full.json"
    path.write_text(json.dumps(listed(node("n1", cpu="4"), node("n2", cpu="3"), *pods, new)))
    return str(path)


def test_simulate_says_who_was_preempted_by_whom(full: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "simulate", full)
    assert "2 of 3 pods scheduled, 1 unscheduled, 2 preempted." in text
    assert "  default/owned on n1 by default/new, now on n2" in text
    assert "  default/tool on n1 by default/new, now unscheduled" in text
    document = json.loads(out(capsys, "simulate", full, "-o", "json"))
    assert (document["scheduled"], document["unscheduled"]) == (2, 1)
    assert document["decisions"][0]["preempts"] == ["default/owned", "default/tool"]
    assert document["preemptions"][0] == {
        "victim": "default/owned",
        "preemptor": "default/new",
        "node": "n1",
        "target": "n2",
    }
    rows = list(csv.DictReader(io.StringIO(out(capsys, "simulate", full, "-o", "csv"))))
    assert rows[0]["preempts"] == "default/owned default/tool"
    assert {row["name"]: row["preempted by"] for row in rows} == {
        "new": "",
        "owned": "default/new",
        "tool": "default/new",
    }


def test_a_profile_without_the_plugin_preempts_nobody(
    full: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}\n"
    )
    document = json.loads(out(capsys, "simulate", full, "-o", "json", "--config", str(path)))
    assert (document["scheduled"], document["unscheduled"], document["preemptions"]) == (0, 1, [])


@pytest.mark.parametrize("preemption", ["never", "by-priority"])
def test_compare_accounts_for_every_victim(preemption: str, full: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(out(capsys, "compare", full, *QUICK, "--preemption", preemption, "-o", "json"))
    figures = document["placements"]
    assert all(column["scheduled"] + column["unscheduled"] == 4 for column in figures.values())
    assert figures["today"]["scheduled"] == 3
    greedy = figures["kube-scheduler, pending only"]
    assert (greedy["scheduled"], greedy["refused"], greedy["violations"]) == (3, 0, 0)
    assert greedy["tiers"]["pending (priority 100)"] == 0
    assert "kube-scheduler, pending only: 2 pods preempted, 1 of them unscheduled in the end" in document["notes"]
    kept = figures["stowplan"]["scheduled"]
    assert kept >= 3
    if preemption == "never":
        placements = document["solution"]["placements"]
        assert all(p["node"] for p in placements if p["source"])


def test_standard_input(dump: str) -> None:
    text = Path(dump).read_bytes()
    done = subprocess.run([STOWPLAN, "solve", "-", *QUICK], input=text, capture_output=True, check=True)
    assert b"Move 2 pods" in done.stdout


# -- verify ---------------------------------------------------------------------------------------------------


@pytest.fixture
def solution(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return json.loads(out(capsys, "solve", dump, *QUICK, "-o", "json"))  # type: ignore[no-any-return]


def check(solution: Any, dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: int) -> str:
    path = tmp_path / "solution.json"
    path.write_text(json.dumps(solution))
    return out(capsys, "verify", str(path), dump, code=code)


def test_verify_accepts_what_solve_and_compare_print(
    dump: str, solution: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Verified: 2 moves" in check(solution, dump, tmp_path, capsys, 0)
    comparison = json.loads(out(capsys, "compare", dump, *QUICK, "-o", "json"))
    assert "Verified: 2 moves" in check(comparison, dump, tmp_path, capsys, 0)


def placement(solution: dict[str, Any], name: str) -> dict[str, Any]:
    return next(p for p in solution["placements"] if p["name"] == name)


def _overfill(solution: dict[str, Any]) -> None:
    for p in solution["placements"]:
        p["node"] = "n2"


def _overclaim(solution: dict[str, Any]) -> None:
    solution["tiers"][-1]["value"] -= 1


def _unknown_node(solution: dict[str, Any]) -> None:
    placement(solution, "new")["node"] = "n3"


def _forget(solution: dict[str, Any]) -> None:
    solution["placements"].pop()


def _twice(solution: dict[str, Any]) -> None:
    solution["placements"].append(solution["placements"][0])


def _stranger(solution: dict[str, Any]) -> None:
    placement(solution, "new")["name"] = "nobody"


def _no_moves(solution: dict[str, Any]) -> None:
    solution["moves"] = 0


def _bound_above(solution: dict[str, Any]) -> None:
    solution["tiers"][-1]["bound"] = solution["tiers"][-1]["value"] + 1


def _false_proof(solution: dict[str, Any]) -> None:
    solution["tiers"][-1]["bound"] = 0
    solution["status"] = "OPTIMAL"


def _no_tiers(solution: dict[str, Any]) -> None:
    solution["tiers"] = []


def _other_source(solution: dict[str, Any]) -> None:
    placement(solution, "web-0")["source"] = "n2"


def _evicted(solution: dict[str, Any]) -> None:
    placement(solution, "web-0")["node"] = None


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (_overfill, "refused by the filters: "),
        (_overclaim, "tier imbalance: the solution claims"),
        (_unknown_node, "Pod default/new: node n3 is not in the snapshot"),
        (_forget, "is not in the solution"),
        (_twice, "is placed twice"),
        (_stranger, "Pod default/nobody: is not in the snapshot"),
        (_no_moves, "the solution claims 0 moves"),
        (_bound_above, "is above the value"),
        (_false_proof, "claims to be optimal"),
        (_no_tiers, "the solution has tiers none"),
        (_other_source, "the solution says it is on n2"),
        (_evicted, "Pod default/web-0: has a node today and none in the solution"),
    ],
)
def test_verify_refuses_a_tampered_solution(
    tamper: Any, said: str, solution: dict[str, Any], dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(solution)
    text = check(solution, dump, tmp_path, capsys, 1)
    assert text.startswith("Not usable: ")
    assert said in text


def test_verify_against_a_newer_snapshot_says_what_drifted(
    solution: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = cluster()
    newer["items"] = [item for item in newer["items"] if item["metadata"]["name"] != "web-0"]
    newer["items"].append(
        listed(pod("web-9", "n2", cpu="1", labels={"app": "web"}, owner="ReplicaSet/web"))["items"][0]
    )
    path = tmp_path / "newer.json"
    path.write_text(json.dumps(newer))
    text = check(solution, str(path), tmp_path, capsys, 1)
    assert "Pod default/web-0: is not in the snapshot" in text
    assert "Pod default/web-9: is not in the solution" in text
    assert "the snapshot is not the one the solution was made for" in text


# -- the process ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cluster that takes longer than the test waits."""
    path = tmp_path_factory.mktemp("large") / "large.json"
    with path.open("w") as file, redirect_stdout(file):
        assert run(["generate", "--nodes", "60", "--pods", "600"]) == 0
    return str(path)


@pytest.mark.parametrize(
    ("number", "stage", "options"),
    [
        (signal.SIGINT, "start", ("-t", "300")),
        (signal.SIGTERM, "rearranging walk", ("-t", "60")),
        # After the bound, CP-SAT works on sub-problems; work is counted, so that some is left on any machine.
        (signal.SIGINT, "Lagrangian relaxation", ("-t", "0.5", "--deterministic")),
    ],
)
def test_a_signal_gives_the_best_answer_so_far(
    number: signal.Signals,
    stage: str,
    options: tuple[str, ...],
    large: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    solution = tmp_path / "solution.json"
    with (
        solution.open("w") as target,
        subprocess.Popen(
            [STOWPLAN, "solve", large, *options, "-o", "json"], stdout=target, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr is not None
        assert any(stage in line for line in process.stderr)
        sent = time.monotonic()
        process.send_signal(number)
        assert process.wait(60) == 0
        assert time.monotonic() - sent < 20
    assert json.loads(solution.read_text())["interrupted"] is True
    out(capsys, "verify", str(solution), large)


def test_a_second_signal_ends_the_process(large: str) -> None:
    with subprocess.Popen(
        [STOWPLAN, "solve", large, "-t", "300"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline()
        process.send_signal(signal.SIGINT)
        while "once more" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)


def test_a_gap_ends_the_solve_when_it_is_proven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A solve that may end with a gap does so as soon as bounds show it, and says no more than they do."""
    cluster = tmp_path / "cluster.json"
    cluster.write_text(out(capsys, "generate", "--nodes", "24", "--pods", "200", "--seed", "1"))
    command = ["solve", str(cluster), "--deterministic", "-t", "4", "--gap", "0.2", "-q", "-o", "json"]
    early = json.loads(out(capsys, *command))
    last = early["tiers"][-1]
    assert last["bound"] < last["value"] <= last["bound"] / 0.8
    assert last["status"] == "FEASIBLE"


def test_a_time_limit_of_a_tenth_of_a_second_still_answers(
    large: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = subprocess.run([STOWPLAN, "solve", large, "-t", "0.1", "-q", "-o", "json"], capture_output=True, check=True)
    path = tmp_path / "solution.json"
    path.write_bytes(done.stdout)
    out(capsys, "verify", str(path), large)


def test_a_reader_that_goes_away_is_no_crash(large: str) -> None:
    command = f"{STOWPLAN} solve {large} -t 0.2 -q -o json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert done.stderr == b""


def test_deterministic_answers_do_not_depend_on_the_process(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    with cluster.open("w") as file, redirect_stdout(file):
        assert run(["generate", "--nodes", "5", "--pods", "25"]) == 0
    answers = set()
    for hash_seed in ("0", "1"):
        done = subprocess.run(
            [STOWPLAN, "solve", str(cluster), "--deterministic", "-t", "0.1", "-q", "-o", "csv"],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        answers.add(done.stdout)
    assert len(answers) == 1


def test_the_command_works_where_a_file_has_the_name_of_a_package(dump: str, tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text("raise SystemExit('the wrong models')")
    done = subprocess.run([STOWPLAN, "solve", dump, *QUICK], cwd=tmp_path, capture_output=True, check=True)
    assert b"Move 2 pods" in done.stdout


def test_the_python_interface_names_what_it_has() -> None:
    import stowplan

    assert {name for name in stowplan.__all__ if getattr(stowplan, name, None) is None} == set()
    assert set(stowplan.__all__) <= set(dir(stowplan))
    with pytest.raises(AttributeError):
        _ = stowplan.nothing_of_the_kind


@pytest.mark.parametrize("module", ["typer", "stowplan.models.errors", "stowplan.instances.load", "numpy"])
def test_ctrl_c_while_modules_are_imported_is_one_line(module: str, dump: str) -> None:
    code = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from stowplan.cli import main\n"
        f"sys.argv = ['stowplan', 'solve', {dump!r}]\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.strip() == "stowplan: interrupted"
