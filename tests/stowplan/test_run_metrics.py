"""plan and apply leave metrics in a file: every series from the first run on, counted over runs, never half a file."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from stowplan.cli import run
from stowplan.models.plan import Plan, PlanTier
from stowplan.run_metrics.record import gap
from tests.stowplan.test_plan_command import cluster
from tests.support.api_server import refuse
from tests.support.api_server.errors import ApiError
from tests.support.applying import scene
from tests.support.kubectl import needs_kubectl
from tests.support.plans import move, plan

QUICK = ("-q", "-t", "1", "--deterministic", "--no-protection-costs")
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")

Samples = dict[tuple[str, str], float]


def read(file: Path) -> Samples:
    """Return every sample by name and value of its first label."""
    families = text_string_to_metric_families(file.read_text())
    return {(s.name, next(iter(s.labels.values()), "")): s.value for family in families for s in family.samples}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(cluster()))
    return str(path)


def planned(dump: str, file: Path, *more: str, code: int = 0) -> Samples:
    assert run(["plan", dump, *QUICK, "--metrics-file", str(file), *more]) == code
    return read(file)


@needs_promtool
def test_promtool_takes_them(dump: str, tmp_path: Path) -> None:
    planned(dump, tmp_path / "plan.prom")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=(tmp_path / "plan.prom").read_bytes(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_without_a_file_its_client_is_not_imported(dump: str) -> None:
    arguments = ["plan", dump, *QUICK, "-o", "json"]
    code = f"import sys\nfrom stowplan.cli import run\nrun({arguments!r})\nprint('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_plan_is_measured(dump: str, tmp_path: Path) -> None:
    found = planned(dump, tmp_path / "plan.prom")
    runs = {
        outcome: found["stowplan_plan_runs_total", outcome] for outcome in ("changes", "empty", "interrupted", "error")
    }
    assert runs == {"changes": 1, "empty": 0, "interrupted": 0, "error": 0}
    moves = {kind: found["stowplan_plan_moves", kind] for kind in ("evict", "place", "remove")}
    assert moves == {"evict": 4, "place": 0, "remove": 0}
    assert found["stowplan_plan_waves", ""] == 2
    assert 0 < found["stowplan_plan_duration_seconds", ""] < 60
    assert (
        found["stowplan_plan_last_success_timestamp_seconds", ""]
        == found["stowplan_plan_last_run_timestamp_seconds", ""]
    )
    text = (tmp_path / "plan.prom").read_text()
    assert 'stowplan_build_info{command="plan",version="0.1.0"} 1.0' in text
    assert stat.S_IMODE((tmp_path / "plan.prom").stat().st_mode) == 0o644
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "plan.prom"]


def test_runs_are_counted_and_the_last_success_stays(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.prom"
    first = planned(dump, file)
    assert planned(dump, file, "--max-moves", "0")["stowplan_plan_runs_total", "empty"] == 1
    success = read(file)["stowplan_plan_last_success_timestamp_seconds", ""]
    assert success > first["stowplan_plan_last_success_timestamp_seconds", ""]
    capsys.readouterr()
    failed = planned(str(tmp_path / "missing.json"), file, code=1)
    assert capsys.readouterr().err.endswith("missing.json: no such file\n")
    assert failed["stowplan_plan_runs_total", "error"] == 1
    assert failed["stowplan_plan_runs_total", "changes"] == 1
    assert failed["stowplan_plan_last_success_timestamp_seconds", ""] == success
    assert failed["stowplan_plan_last_run_timestamp_seconds", ""] > success


def test_a_first_run_that_fails_has_every_series(tmp_path: Path) -> None:
    found = planned(str(tmp_path / "missing.json"), tmp_path / "plan.prom", code=1)
    assert found["stowplan_plan_runs_total", "error"] == 1
    assert found["stowplan_plan_runs_total", "changes"] == 0
    assert found["stowplan_plan_last_success_timestamp_seconds", ""] == 0
    assert found["stowplan_plan_moves", "evict"] == 0


@pytest.mark.parametrize("content", ["{}", "nonsense here\n", 'stowplan_build_info{command="apply"} 1\n', "\xff"])
def test_no_other_file_is_overwritten(
    content: str, dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "precious.json"
    other.write_bytes(content.encode("latin-1"))
    assert run(["plan", dump, *QUICK, "--metrics-file", str(other)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"stowplan: {other}: is another file; must hold metrics of stowplan plan")
    assert other.read_bytes() == content.encode("latin-1")


def test_a_place_that_cannot_be_written_is_told_before_the_search(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nowhere" / "plan.prom"
    assert run(["plan", dump, *QUICK, "--metrics-file", str(file)]) == 1
    assert capsys.readouterr() == ("", f"stowplan: {file}: cannot be written: No such file or directory\n")


def test_a_file_that_cannot_be_written_afterwards_costs_no_answer(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stowplan.models.whole_file.os.fsync", full)
    file = tmp_path / "plan.prom"
    assert run(["plan", dump, *QUICK, "--metrics-file", str(file), "-o", "json"]) == 0
    told = capsys.readouterr()
    assert Plan.model_validate_json(told.out).waves
    assert told.err == f"stowplan: warning: {file}: cannot be written: No space left on device\n"
    assert not file.exists()


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ([], 0.0),
        ([(10, 10), (4, 4)], 0.0),
        ([(10, 9), (4, 3)], 0.25),
        ([(10, 0)], 1.0),
        ([(0, 0)], 0.0),
    ],
)
def test_the_gap_is_the_largest_of_the_objectives(tiers: list[tuple[float, float]], expected: float) -> None:
    made = tuple(PlanTier(name="t", unit="", before=20, after=a, bound=b, bound_by="x") for a, b in tiers)
    assert gap(plan([move("web-1", "a", "b")]).model_copy(update={"tiers": made})) == expected


def test_no_series_depends_on_what_happened(dump: str, tmp_path: Path) -> None:
    """A series that came with its first event would hide that event from increase()."""
    names = set(planned(str(tmp_path / "missing.json"), tmp_path / "failed.prom", code=1))
    assert set(planned(dump, tmp_path / "plan.prom")) == names


@needs_kubectl
def test_apply_is_measured(tmp_path: Path) -> None:
    with scene(tmp_path) as shop:
        file = tmp_path / "apply.prom"
        always = ("apply", "plan.json", "--yes", "--unsteered", "--poll", "0.25", "--metrics-file", "apply.prom", "-q")
        assert shop.command(*always, "--stop-after-wave", "1").returncode == 0
        paused = read(file)
        assert (paused["stowplan_apply_runs_total", "paused"], paused["stowplan_apply_waves_over", ""]) == (1, 1)
        assert (paused["stowplan_apply_moves", "landed"], paused["stowplan_apply_moves", "waiting"]) == (2, 3)
        assert paused["stowplan_apply_moves", "refused"] == 0
        refusal = refuse(ApiError(403, "Forbidden", "webhook says no"))
        shop.server.faults.on("evict", refusal, matching="web")
        assert shop.command(*always).returncode == 1
        stopped = read(file)
        assert stopped["stowplan_apply_runs_total", "stopped"] == 1
        assert stopped["stowplan_apply_moves", "refused"] == 1
        success = ("stowplan_apply_last_success_timestamp_seconds", "")
        assert stopped[success] == paused[success] < stopped["stowplan_apply_last_run_timestamp_seconds", ""]
        done = shop.command("apply", "plan.json", "--metrics-file", "apply.prom")
        assert done.stderr == "stowplan: --metrics-file: needs --yes\n"
        assert read(file) == stopped
