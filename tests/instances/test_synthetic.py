from __future__ import annotations

import json

import pytest

from stowplan.instances.demo import demo_cluster, demo_path
from stowplan.instances.load import load
from stowplan.instances.synthetic import generate, synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36


def test_the_same_seed_makes_the_same_cluster() -> None:
    assert json.dumps(generate(10, 60, 3)) == json.dumps(generate(10, 60, 3))
    assert json.dumps(generate(10, 60, 3)) != json.dumps(generate(10, 60, 4))


@pytest.mark.parametrize("seed", range(3))
def test_a_synthetic_cluster_breaks_no_rule(seed: int) -> None:
    snapshot = synthetic_snapshot(40, 400, seed)
    compiled = compile_problem(snapshot, default_profile(K36), PRESETS["balance"])
    assert Evaluator(compiled.problem).evaluate(compiled.problem.start).violations == []
    where = {pod.key: pod.node_name for pod in snapshot.pods if pod.node_name}
    assert rejections(populated(snapshot, compiled.profile, where), where) == []


def test_a_synthetic_cluster_has_rules_of_every_kind() -> None:
    compiled = compile_problem(synthetic_snapshot(60, 600), default_profile(K36), PRESETS["balance"])
    kinds = {type(rule).__name__ for rule in compiled.problem.rules}
    assert kinds >= {"Allow", "Capacity", "AtMost", "Repel", "Attract", "Spread", "Distinct"}


def test_the_smallest_clusters_work() -> None:
    assert len(synthetic_snapshot(1, 0).nodes) == 1
    assert len(synthetic_snapshot(2, 3).nodes) == 2


def test_the_demo_is_what_its_maker_makes() -> None:
    assert load([str(demo_path())]) == demo_cluster()
