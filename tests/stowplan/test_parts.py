"""What a tier is made of adds up to its value, today and in the answer, for every preset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stowplan.answers.solve import solve_snapshot
from stowplan.cli import run
from stowplan.documents.solution import solution_document
from stowplan.instances.synthetic import generate, synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.settings.problem import make_problem
from tests.support.cases import cases, count
from tests.support.random_clusters import Setup, clusters, setups

QUICK = Options(time_limit=1, deterministic=True, kernels=False)


@cases(20, at_least={"several": 5, "changed": 8}, cluster=clusters(), setup=setups())
def test_parts_add_up(cluster: Snapshot, setup: Setup) -> None:
    solution = solve_snapshot(setup.compile(cluster), QUICK)
    for parts, before, after in zip(solution.parts, solution.before.values, solution.evaluation.values, strict=True):
        assert sum(part.before for part in parts) == before
        assert sum(part.after for part in parts) == after
        assert [abs(part.change) for part in parts] == sorted((abs(p.change) for p in parts), reverse=True)
        count("several", len(parts) > 1)
        count("changed", any(part.change for part in parts))


def test_the_document_names_plugins_and_settings() -> None:
    snapshot, settings = synthetic_snapshot(5, 20, 2), Settings(objective="global")
    document = solution_document(solve_snapshot(make_problem(snapshot, settings), QUICK), settings)
    tier = document.tiers[-1]
    assert {"PodTopologySpread", "NodeResourcesFit", "variance (cpu)"} <= {part.name for part in tier.parts}
    assert sum(part.value for part in tier.parts) == pytest.approx(tier.value)


def test_the_table_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(generate(5, 20, 2)), encoding="utf-8")
    run(["solve", str(dump), "-O", "kube", "-q", "-t", "1"])
    shown = capsys.readouterr().out
    assert "PodTopologySpread" in shown
    assert "change" in shown
