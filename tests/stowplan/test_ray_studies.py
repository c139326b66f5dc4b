"""Whole solves as jobs of a Ray cluster: instances of a suite, and comparisons for several objectives."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import stowplan
from stowplan.answers.variants import compare_in_cluster
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.stop import Stop
from stowplan.settings.problem import make_problem
from tests.support.ray_clusters import NodesOnOneMachine, nodes_on_one_machine
from tests.support.ray_solves import STOWPLAN

pytest.importorskip("ray", reason="Ray is not installed")
# Ray leaves files and sockets to its end.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.first]


@pytest.fixture(scope="module")
def nodes() -> Iterator[NodesOnOneMachine]:
    with nodes_on_one_machine(2) as running:
        yield running


def run(*words: str) -> str:
    done = subprocess.run([STOWPLAN, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_suite_is_answered_as_on_this_machine(nodes: NodesOnOneMachine) -> None:
    words = ["bench", "triplets", "--count", "3", "-t", "0.2", "--deterministic", "-o", "json", "-q"]
    here, there = (json.loads(run(*words, "--backend", to)) for to in ("local", f"ray:{nodes.address}"))
    assert nodes.await_no_workers()
    assert len(here["instances"]) == 3
    for mine, theirs in zip(here["instances"], there["instances"], strict=True):
        assert {**mine, "seconds": 0} == {**theirs, "seconds": 0}


def test_several_objectives_are_compared_side_by_side(nodes: NodesOnOneMachine, tmp_path: Path) -> None:
    dump = tmp_path / "cluster.json"
    dump.write_text(run("generate", "--nodes", "8", "--pods", "60"))
    words = ["compare", str(dump), "--objective", "balance", "--objective", "pack", "-t", "0.3", "--deterministic"]
    here, there = (run(*words, "-o", "csv", "-q", "--backend", to) for to in ("local", f"ray:{nodes.address}"))
    assert nodes.await_no_workers()
    assert here == there


def test_a_comparison_that_fails_costs_no_other(nodes: NodesOnOneMachine) -> None:
    snapshot = stowplan.synthetic_snapshot(6, 30, seed=1)
    good, bad = (make_problem(snapshot, Settings(objective=name)) for name in ("balance", "pack"))
    object.__setattr__(bad, "problem", None)
    options = Options(0.2, deterministic=True, backend=f"ray:{nodes.address}")
    found, failed = compare_in_cluster([good, bad], options, Stop())
    assert not isinstance(found, str)
    assert found.solution.evaluation.legal
    assert isinstance(failed, str)
    assert failed


def test_what_was_stopped_says_so(nodes: NodesOnOneMachine) -> None:
    problem = make_problem(stowplan.synthetic_snapshot(6, 30, seed=1), Settings())
    stop = Stop()
    stop.set()
    made = compare_in_cluster([problem] * 6, Options(60.0, backend=f"ray:{nodes.address}"), stop)
    assert "was stopped before it began" in made
