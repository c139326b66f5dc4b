"""Benchmarks as a user runs them: rows, totals, the checkers' word, interruptions and processes that die."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from stowplan.bench.answer import refuted
from stowplan.bench.bench import choose, run
from stowplan.bench.jobs import shared
from stowplan.bench.row import FAILED, Row
from stowplan.bench.totals import totals
from stowplan.cli import run as command
from stowplan.documents.bench import BenchmarkDocument
from stowplan.instances.suites.opening import open_suite
from stowplan.instances.suites.packing import PackingProblem
from stowplan.instances.suites.suite import Instance, Kind, Reference, Suite, Verdict
from stowplan.instances.suites.triplets import TripletInstance
from stowplan.models.errors import InputError
from stowplan.models.stop import Stop
from stowplan.optimizer.portfolio import Options
from tests.instances.suites.test_opening import put
from tests.instances.suites.test_roadef import EXAMPLE, INITIAL
from tests.support.processes import ended, workers_of

ROOT = Path(__file__).parent.parent.parent

QUICK = Options(time_limit=5, deterministic=True)
FAST = ("-q", "-t", "5", "--deterministic")


def known(tmp_path: Path) -> str:
    """Write two instances of the challenge's example, one with a table of what is known."""
    table = "instance,initial,lower_bound,final_best,reference_best\nb_1,4200,9,2500,2411\n"
    teams = "team,B1\nINITIAL,4200\nfirst,2500\nlast,4200\n"
    files = {"results.csv": table, "challenge_final_B.csv": teams}
    for name in ("b_01", "toy"):
        files |= {f"B/model_{name}.txt": EXAMPLE, f"B/assignment_{name}.txt": INITIAL}
    return put(tmp_path, files)


def test_the_statements_example_is_solved_written_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    solutions = tmp_path / "solutions"
    assert command(["bench", known(tmp_path), *FAST, "-o", "json", "--solutions", str(solutions)]) == 0
    document = BenchmarkDocument.model_validate_json(capsys.readouterr().out)
    assert document.format == "machine reassignment"
    assert document.complete
    assert document.accepted
    first, second = document.instances
    assert (first.instance, first.status, first.tiers[0].start, first.tiers[0].value) == ("b_01", "OPTIMAL", 4200, 2411)
    assert (first.tiers[0].bound, first.gap, first.excess, first.score) == (2411, 0, 0, 0)
    assert (second.reference.best, second.excess, second.score) == (None, None, None)
    assert (solutions / "b_01.txt").read_text() == "0 2 1\n"
    figures = document.totals[0].figures
    assert figures["proved"] == 2
    assert figures["sum of scores"] == 0
    assert figures["at the best known"] == 1
    assert figures["sum of scores, final run"] == pytest.approx(100 * (2411 - 2500) / 4200)
    assert figures["place in the final run"] == "1 of 3"


def test_every_form_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = ["bench", known(tmp_path), *FAST, "--instances", "b_*"]
    assert command([*suite, "-o", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["instance"], row["value"], row["best known"], row["accepted"]) == ("b_01", "2411", "2411", "True")
    assert command(suite) == 0
    lines = capsys.readouterr().out.splitlines()
    name = Path(suite[1]).name
    assert lines[0] == f"{name}: 1 instance, 1 answer accepted, 1 proved optimal"
    assert lines[2].split()[:4] == ["INSTANCE", "VALUE", "BOUND", "GAP"]
    assert lines[3].split()[:5] == ["b_01", "2,411", "2,411", "0.000%", "OPTIMAL"]


def test_progress_is_a_line_for_each_instance(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["bench", "triplets:6_2", "--count", "2", "-t", "5", "--deterministic"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(", OPTIMAL")[0] for line in lines] == [
        "stowplan: 1/2 6_2_0: 2, bound 2",
        "stowplan: 2/2 6_2_1: 2, bound 2",
    ]
    assert all(line.endswith(" s, accepted") for line in lines)


def test_clusters_are_compared_with_the_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "priority-matters:nodes2_pods8_prio2_util100", "--count", "4", *FAST, "-o", "json"]
    assert command(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    for instance in document["instances"]:
        values, greedy = ([tier[key] for tier in instance["tiers"]] for key in ("value", "greedy"))
        assert values <= greedy
    figures = document["totals"][0]["figures"]
    assert figures["better than greedy"] + figures["as greedy"] == 4
    assert figures["worse"] == 0
    assert figures["published, %"] is None


def test_a_refused_solution_ends_with_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PackingProblem, "write", lambda self, placement: "0 1 2 3 4 5\n")
    assert command(["bench", "triplets:6_2", "--count", "1", *FAST]) == 1
    out = capsys.readouterr().out
    assert "0 answers accepted, 0 proved optimal" in out
    assert "6_2_0: bin 0: 2000 exceeds its capacity 1000 in dimension 0" in out
    assert "refused" in out


def test_a_value_that_the_file_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check = TripletInstance.check
    monkeypatch.setattr(TripletInstance, "check", lambda *a: Verdict((check(*a).values[0] + 1,)))
    suite = open_suite("triplets:6_2", count=1)
    (row,) = run(suite, suite.instances, QUICK).rows
    assert not row.accepted
    assert not row.proved
    assert row.complaints == ("is worth (3,), not (2,) as claimed",)


def test_a_bound_above_what_others_reached_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TripletInstance, "reference", Reference(best=1, best_by="a dream"))
    suite = open_suite("triplets:6_2", count=1)
    (row,) = run(suite, suite.instances, QUICK).rows
    assert row.complaints == ("the bound 2 is above 1, which others reached (a dream)",)


@pytest.mark.parametrize(
    ("values", "bounds", "scheduled", "complaint"),
    [
        ((0, 2), (0, 2), (0, 3), None),
        ((0, 2), (0, 4), (0, 3), "the bound 4 is above 3, which kube-scheduler reached"),
        ((0, 2), (0, 4), (1, 3), None),
        ((1, 2), (1, 2), (0, 3), "the bound 1 is above 0, which kube-scheduler reached"),
    ],
)
def test_bounds_are_held_against_the_scheduler_as_long_as_it_reached_the_same(
    values: tuple[int, ...], bounds: tuple[int, ...], scheduled: tuple[int, ...], complaint: str | None
) -> None:
    """The bound of a tier speaks of placements that have our values of the tiers before it."""
    assert list(refuted(values, bounds, Reference(), scheduled)) == ([complaint] if complaint else [])


def test_where_solutions_cannot_be_written_nothing_is_solved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stowplan.bench.answer.solve", lambda *a, **k: pytest.fail("solved"))
    file = tmp_path / "file"
    file.write_text("kept")
    assert command(["bench", "triplets:6_2", "--count", "1", *FAST, "--solutions", str(file)]) == 1
    assert f"{file}: cannot store solutions: File exists" in capsys.readouterr().err
    assert file.read_text() == "kept"


def test_a_solution_that_cannot_be_written_keeps_its_value(tmp_path: Path) -> None:
    suite = open_suite("triplets:6_2", count=1)
    (instance,) = suite.instances
    (tmp_path / (instance.name + instance.suffix)).mkdir()
    (row,) = run(suite, suite.instances, QUICK, solutions=tmp_path).rows
    assert row.values == (2,)
    assert not row.accepted
    assert "cannot be written: Is a directory" in row.complaints[0]


def test_a_damaged_file_beside_good_ones_is_not_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(tmp_path, {"a.vbp": "1\n5\n1\n4 1\n"})
    whole = gzip.compress(bytes(range(256)) * 40)
    (tmp_path / "b.jsonl.gz").write_bytes(whole[:100])
    assert command(["bench", folder, *FAST]) == 1
    assert "b.jsonl.gz: is a damaged gzip file" in capsys.readouterr().err


def test_a_malformed_instance_is_a_row_and_the_others_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(tmp_path, {"a.vbp": "1\n5\n1\n9 1\n", "b.vbp": "1\n5\n2\n3 1\n4 1\n"})
    assert command(["bench", folder, *FAST, "-o", "json"]) == 1
    first, second = json.loads(capsys.readouterr().out)["instances"]
    assert (first["status"], first["tiers"]) == (FAILED, [])
    assert first["complaints"] == [f"{folder}/a.vbp: item 0: is 9 in dimension 0; must be at most the bin's 5"]
    assert (second["status"], second["accepted"]) == ("OPTIMAL", True)
    assert command(["bench", folder, *FAST]) == 1
    assert command(["bench", folder, *FAST, "-o", "csv"]) == 1


def test_a_defect_of_ours_fails_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    state = TripletInstance.state
    monkeypatch.setattr(TripletInstance, "state", lambda self: state(self) if self.name.endswith("1") else 1 // 0)
    suite = open_suite("triplets:6_2", count=2)
    good, bad = sorted(run(suite, suite.instances, QUICK).rows, key=lambda row: row.complaints)
    assert good.accepted
    assert bad.complaints == ("internal error: ZeroDivisionError: integer division or modulo by zero",)


def test_an_interruption_leaves_what_there_is() -> None:
    suite, stop = open_suite("triplets:6_2", count=3), Stop()
    told: list[str] = []

    def tell(number: int, row: Row) -> None:
        told.append(row.instance)
        stop.set()

    bench = run(suite, suite.instances, QUICK, stop=stop, progress=tell)
    assert [row.instance for row in bench.rows] == told == ["6_2_0"]
    assert bench.accepted
    assert not bench.complete
    assert (bench.asked, len(bench.rows)) == (3, 1)


def test_instances_are_chosen_by_pattern_and_number() -> None:
    suite = open_suite("priority-matters:nodes2_pods4_prio1_util100", count=4)
    seeds = [Path(instance.name).name for instance in suite.instances]
    assert len(choose(suite)) == 4
    assert [i.name for i in choose(suite, [seeds[2], seeds[1]])] == [suite.instances[k].name for k in (1, 2)]
    assert choose(suite, ["nodes2*"], first=3) == list(suite.instances[:3])
    with pytest.raises(InputError, match=r"--instances x\*: matches no instance of"):
        choose(suite, ["x*"])


@dataclass(frozen=True)
class Deadly(Instance):
    """An instance whose process dies."""

    name: str
    group: str

    def state(self) -> PackingProblem:
        os._exit(9)

    def check(self, file: str, data: bytes) -> Verdict:
        raise NotImplementedError


def test_processes_work_side_by_side_and_one_that_dies_takes_no_other_along() -> None:
    healthy = open_suite("triplets:6_2", count=2).instances
    suite = Suite(Kind.PACKING, "mixed", (healthy[0], Deadly("deadly", "x"), healthy[1]))
    bench = run(suite, suite.instances, Options(time_limit=5, deterministic=True, workers=1), jobs=2)
    assert [row.instance for row in bench.rows] == ["6_2_0", "deadly", "6_2_1"]
    first, deadly, second = bench.rows
    assert (deadly.status, deadly.complaints) == (FAILED, ("its process died, perhaps for want of memory",))
    assert first.values == second.values == (2,)
    assert first.accepted
    assert second.accepted
    assert not bench.accepted


def test_a_script_without_a_guard_gets_every_answer(tmp_path: Path) -> None:
    """New processes must not run the caller's script again: it would begin the suite once more, and die of it."""
    script = (
        "from stowplan.bench.bench import run\n"
        "from stowplan.instances.suites.opening import open_suite\n"
        "from stowplan.optimizer.portfolio import Options\n"
        "suite = open_suite('triplets:6_2', count=2)\n"
        "options = Options(time_limit=5, deterministic=True, workers=1)\n"
        "print([row.values for row in run(suite, suite.instances, options, jobs=2).rows])\n"
    )
    for arguments, text in (["-"], script), ([str(tmp_path / "script.py")], None):
        (tmp_path / "script.py").write_text(script)
        done = subprocess.run(
            [sys.executable, *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.stdout == "[(2,), (2,)]\n"


def test_no_process_outlives_the_one_that_began_them(tmp_path: Path) -> None:
    script = (
        "import threading, time\n"
        "from stowplan.bench import jobs\n"
        "from stowplan.models.stop import Stop\n"
        "from tests.stowplan.test_bench import Endless\n"
        "from stowplan.optimizer.portfolio import Options\n"
        "from pathlib import Path\n"
        "both = [Endless('a', 'x'), Endless('b', 'x')]\n"
        "list(jobs.answers(both, Options(), Path('.'), 2, Stop()))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) as parent:
        until = time.monotonic() + 60
        while len(processes := workers_of(parent.pid)) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        assert len(processes) == 2
        parent.kill()
    assert ended(processes)


@dataclass(frozen=True)
class Endless(Instance):
    """An instance that is never read to its end."""

    name: str
    group: str

    def state(self) -> PackingProblem:
        time.sleep(600)
        raise AssertionError

    def check(self, file: str, data: bytes) -> Verdict:
        raise NotImplementedError


def test_instances_that_are_solved_at_once_share_the_machine() -> None:
    options = Options(memory=8 * 2**30)
    assert shared(options, 1) is options
    half = shared(options, 2)
    assert half.memory == 4 * 2**30
    assert half.workers == half.processes == max(1, (os.cpu_count() or 1) // 2)
    assert shared(options, 64).processes == 1
    assert shared(options, 2, 3).workers == 3
    free = shared(Options(), 2).memory
    assert free is None or free > 0


def row(values: tuple[int, ...], **more: object) -> Row:
    fields = {"bounds": (0,) * len(values), "start": values, "status": "FEASIBLE", "accepted": True, "group": "g"}
    return Row(**{"instance": "i", "reference": Reference(), "values": values, **fields, **more})  # type: ignore[arg-type]


def test_totals_of_packings() -> None:
    optimum = Reference(best=10, bound=10, others={"greedy": 12})
    rows = [
        row((10,), reference=optimum, bounds=(10,), status="OPTIMAL"),
        row((11,), reference=optimum),
        row((9,), reference=Reference(best=10, bound=8, others={"greedy": 10})),
        row((5,), reference=Reference(best=4, bound=4, others={"greedy": 4}), accepted=False),
    ]
    (total,) = totals(Kind.PACKING, rows, {})
    figures = total.figures
    assert (figures["instances"], figures["accepted"], figures["proved"]) == (4, 3, 1)
    assert (figures["optimum known"], figures["optimum reached"]) == (2, 1)
    assert (figures["mean excess, %"], figures["greedy's, %"]) == (pytest.approx(5), pytest.approx(20))
    assert (figures["better than greedy"], figures["as greedy"], figures["worse"]) == (3, 0, 0)
    assert figures["better than any known"] == 1


def test_totals_of_clusters() -> None:
    cell = "nodes8_pods32_prio4_util100"
    proved = {"group": cell, "status": "OPTIMAL"}
    rows = [
        row((0, 2), greedy=(0, 3), **proved),
        row((1, 0), greedy=(1, 0), **proved),
        row((0, 5), greedy=(1, 0), group=cell),
        row((1, 0), greedy=(0, 9), group=cell),
    ]
    (total,) = totals(Kind.PRIORITIES, rows, {})
    figures = total.figures
    assert (figures["proved, %"], figures["published, %"]) == (50, 94)
    assert (figures["better than greedy"], figures["as greedy"], figures["worse"]) == (2, 1, 1)
    assert (figures["pods unscheduled"], figures["greedy's"]) == (9, 14)


def test_the_gap_is_that_of_the_first_tier_that_is_open() -> None:
    assert row((0, 5, 7), bounds=(0, 4, 0)).gap == pytest.approx(0.2)
    assert row((0, 5), bounds=(0, 5)).gap == 0
    assert row(()).gap is None
