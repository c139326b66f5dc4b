"""Dumps from which something was removed at random: it is named, and planning ends in words.

``python -m tests.support.mutilated`` does the same with dumps of real clusters.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import strategies as st

from stowplan.instances.demo import demo_path
from tests.support.cases import cases
from tests.support.mutilated import main, mutilated, objects, planned, unnamed
from tests.support.whole_dump import items

DEMO = objects(demo_path())


@cases(150, seed=st.integers(0, 10**6))
def test_what_is_removed_is_named(seed: int) -> None:
    dump, removals = mutilated(items(), random.Random(seed))
    assert unnamed(dump, removals) == []


@cases(15, seed=st.integers(0, 10**6))
def test_what_is_removed_from_a_larger_cluster_is_named(seed: int) -> None:
    dump, removals = mutilated(DEMO, random.Random(seed))
    assert unnamed(dump, removals) == []


@pytest.mark.parametrize("seed", range(6))
def test_a_mutilated_dump_is_planned_with_a_warning_or_refused(seed: int, tmp_path: Path) -> None:
    dump, removals = mutilated(items(), random.Random(seed))
    assert planned(dump, removals, tmp_path) == ""


def test_what_is_not_named_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dump of a cluster by hand is held against nothing, so its removals are not named, and the command says so."""
    path = tmp_path / "dump.json"
    kept = '"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}, "conditions": []}'
    path.write_text('{"kind": "Node", "apiVersion": "v1", ' + kept + "}")
    assert main([str(path), "--count", "8", "--plan-every", "0"]) == 1
    assert "8 mutilated dumps: " in capsys.readouterr().out
