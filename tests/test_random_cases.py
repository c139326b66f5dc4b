"""Random cases that fail: as small as they get, told as JSON, saved, and read back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stowplan.instances.load import load as load_snapshot
from stowplan.models.arrays import Ints
from stowplan.models.problem import Capacity, Problem
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from tests.support import cases as module
from tests.support.cases import cases, count, encoded, load, manifests
from tests.support.choices import Choices, Seeded, drawn
from tests.support.problems import affinity_problems, problems, random_affinity, random_problem
from tests.support.random_clusters import clusters, random_cluster


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return tmp_path


def test_a_case_that_fails_is_as_small_as_possible_and_saved(folder: Path) -> None:
    @cases(100, problem=problems())
    def no_problem_has_a_capacity(problem: Problem) -> None:
        assert not any(isinstance(rule, Capacity) for rule in problem.rules)

    with pytest.raises(AssertionError) as caught:
        no_problem_has_a_capacity()
    (path,) = folder.iterdir()
    (note,) = (note for note in caught.value.__notes__ if note.startswith("The case is saved in"))
    assert str(path) in note
    assert '{"Capacity": ' in note
    problem = load(path)["problem"]
    assert isinstance(problem, Problem)
    assert problem.shape == (2, 2)
    assert problem.size.tolist() == [1, 1]
    assert [type(rule).__name__ for rule in problem.rules] == ["Devices", "Capacity"]


def test_a_cluster_that_fails_can_be_read_by_every_command(folder: Path) -> None:
    @cases(100, cluster=clusters(nodes=3, pods=4))
    def no_pod_has_a_host_port(cluster: Snapshot) -> None:
        assert not any(port.host_port for p in cluster.pods for c in p.spec.containers for port in c.ports)

    with pytest.raises(AssertionError):
        no_pod_has_a_host_port()
    (path,) = folder.iterdir()
    dump = folder / "dump.json"
    dump.write_text(json.dumps(load(path)["cluster"]))
    read = load_snapshot([str(dump)])
    assert len(read.nodes) + len(read.pods) <= 5  # of 7 at most; as small as it gets takes long
    assert next(port.host_port for p in read.pods for c in p.spec.containers for port in c.ports) == 80


@pytest.mark.parametrize("make", [random_problem, random_affinity])
def test_a_problem_is_read_back_as_it_was(folder: Path, make: type) -> None:
    for seed in range(20):
        problem = make(Seeded(seed), broken=True)
        (folder / "case.json").write_text(json.dumps({"problem": encoded(problem)}))
        again = load(folder / "case.json")["problem"]
        assert encoded(again) == encoded(problem)
        assert Evaluator(again).evaluate(again.start).values == Evaluator(problem).evaluate(problem.start).values


def test_a_cluster_is_read_back_as_it_was(folder: Path) -> None:
    for seed in range(20):
        cluster = random_cluster(Seeded(seed), broken=True)
        (folder / "dump.json").write_text(json.dumps(manifests(cluster)))
        again = load_snapshot([str(folder / "dump.json")])
        assert manifests(again) == manifests(cluster)


def test_too_few_cases_to_the_point_are_a_failure() -> None:
    @cases(50, at_least={"even": 5, "negative": 1}, numbers=drawn(Choices.array, 1, 0, 9))
    def even(numbers: Ints) -> None:
        count("even", numbers[0] % 2 == 0)
        count("negative", numbers[0] < 0)

    with pytest.raises(AssertionError, match="negative: 0 times, which should be at least 1"):
        even()


def test_the_same_cases_are_drawn_at_every_run() -> None:
    seen: list[list[object]] = []

    @cases(10, problem=affinity_problems())
    def look(problem: Problem) -> None:
        seen[-1].append(encoded(problem))

    for _ in range(2):
        seen.append([])
        look()
    assert seen[0] == seen[1]
    assert len({json.dumps(one) for one in seen[0]}) > 5


@pytest.mark.parametrize("choices", [Seeded(1), Seeded("one")])
def test_choices_stay_within_bounds_and_reach_them(choices: Choices) -> None:
    numbers = choices.array(500, -1, 2)
    assert sorted(set(numbers.tolist())) == [-1, 0, 1, 2]
    assert sorted(choices.any_order([3, 1, 2])) == [1, 2, 3]
    assert len(set(choices.some(range(9), 4))) == 4
    assert 100 < np.sum([choices.chance(0.3) for _ in range(500)]) < 200
    assert not any(choices.chance(0.0) for _ in range(100))
    assert all(choices.chance(1.0) for _ in range(100))
