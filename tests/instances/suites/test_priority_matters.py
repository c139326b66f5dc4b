from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from stowplan.instances.suites.priority_matters import (
    Cluster,
    check_cluster,
    cluster_problem,
    cluster_snapshot,
    generate_clusters,
    read_clusters,
)
from stowplan.instances.suites.priority_matters.clusters import generate_cluster
from stowplan.models.errors import InputError
from stowplan.models.problem import Placement
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from stowplan.plugins_compat.simulate import simulate

SMALL = {
    "seed": 7,
    "nodes": 2,
    "node_cpu_m": 1000,
    "node_mem_b": 10**9,
    "replicasets": [
        {"replicas": 2, "cpu_m": 600, "mem_b": 10**8, "priority": 1},
        {"replicas": 1, "cpu_m": 500, "mem_b": 9 * 10**8, "priority": 3},
    ],
}


def small(**changes: object) -> Cluster:
    (cluster,) = read_clusters("small", json.dumps(SMALL | changes).encode())
    return cluster


def test_the_highest_priority_is_the_first_tier() -> None:
    found = cluster_problem(small())
    assert [tier.name for tier in found.problem.tiers] == ["priority 3", "priority 1"]
    evaluator = Evaluator(found.problem)
    assert evaluator.evaluate(found.problem.start).values == (1, 2)
    placement = Placement.of([(0, 0, 1), (1, 1, 1)])
    evaluation = evaluator.evaluate(placement)
    assert evaluation.legal
    assert evaluation.values == (0, 1)
    text = found.write(placement)
    assert json.loads(text) == {"seed": 7, "nodes": [[0, None], [1]]}
    assert check_cluster(small(), "new", text.encode()) == ((0, 1), [])


def test_the_checker_names_nodes_that_hold_too_much() -> None:
    _, violations = check_cluster(small(), "new", b'{"seed": 7, "nodes": [[0, 1], [1]]}')
    assert violations == ["node 1: 1100 millicores exceed its 1000"]
    _, violations = check_cluster(small(node_mem_b=10**8), "new", b'{"seed": 7, "nodes": [[null, null], [0]]}')
    assert violations == ["node 0: 900000000 bytes of memory exceed its 100000000"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"seed": 8, "nodes": []}', "new: seed: is 8; must be 7"),
        ('{"seed": 7, "nodes": [[0, 1], []]}', "new: nodes: must hold one entry for every replica of every ReplicaSet"),
        ('{"seed": 7, "nodes": [[0, 2], [0]]}', "new: nodes[0][1]: is 2; must be below 2"),
        ('{"seed": 7, "nodes": [[0, "x"], [0]]}', "new: nodes[0][1]: is 'x'; must be an integer"),
        ("nodes", "new: is not JSON: expected ident at line 1 column 2"),
    ],
)
def test_what_is_no_solution_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_cluster(small(), "new", text.encode())
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (json.dumps(SMALL | {"nodes": 0}), "new:2: nodes: is 0; must be 1 or more"),
        (json.dumps(SMALL | {"gpus": 0}), "new:2: gpus: is an unknown field"),
        (json.dumps({"seed": 1}), "new:2: nodes: is missing"),
        (json.dumps(SMALL), "new:2: seed: is 7 for a second time; must be unique"),
        ("[]", "new:2: is []; must be an object"),
    ],
)
def test_a_malformed_line_is_refused_with_its_number(line: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_clusters("new", (json.dumps(SMALL) + "\n" + line).encode())
    assert str(caught.value) == message


def test_judge_and_checker_agree_on_random_placements() -> None:
    rng = np.random.default_rng(3)
    seen = set()
    for cluster in generate_clusters(1, 12, nodes=3, pods=12, priorities=3):
        found = cluster_problem(cluster)
        evaluator = Evaluator(found.problem)
        for most in (1, 2, 4):
            table = np.zeros(found.problem.shape, dtype=np.int64)
            for c, k in enumerate(np.minimum(found.problem.size, most).tolist()):
                for _ in range(rng.integers(0, k + 1)):
                    table[c, rng.integers(cluster.nodes)] += 1
            placement = Placement.from_table(table)
            evaluation = evaluator.evaluate(placement)
            unplaced, violations = check_cluster(cluster, "new", found.write(placement).encode())
            assert evaluation.values == unplaced
            assert evaluation.legal == (not violations)
            seen.add(evaluation.legal)
    assert seen == {True, False}


def test_the_recipe_makes_what_it_says() -> None:
    for cluster in generate_clusters(3, 20, nodes=4, pods=20, priorities=2, load=90):
        assert cluster.pods == 20
        assert {s.priority for s in cluster.replicasets} <= {1, 2}
        asked = sum(s.replicas * s.cpu_m for s in cluster.replicasets)
        assert cluster.node_cpu_m * 4 * 0.9 >= asked
        assert all(1 <= s.replicas <= 4 and 100 <= s.cpu_m <= 1000 for s in cluster.replicasets)
    first, second = ([c.seed for c in generate_clusters(seed, 3, nodes=1, pods=1, priorities=1)] for seed in (1, 2))
    assert len({*first, *second}) == 6


def test_the_scheduler_plays_a_cluster_through() -> None:
    snapshot = cluster_snapshot(small())
    played = simulate(snapshot, default_profile(K36), snapshot.pods, {})
    assert played.assignment.keys() == {"default/set-1-0", "default/set-0-0"}
    assert played.assignment["default/set-0-0"] != played.assignment["default/set-1-0"]


def test_the_recipe_makes_the_published_clusters_number_for_number(shared_data: Path) -> None:
    files = sorted((shared_data / "benchmarks" / "priority_matters").glob("nodes*_util*.jsonl.gz"))
    assert files
    for file in files:
        nodes, pods, priorities, load = map(int, re.findall(r"\d+", file.name)[:4])
        for cluster in read_clusters(file.name, gzip.decompress(file.read_bytes()))[:15]:
            again = generate_cluster(cluster.seed, nodes=nodes, pods=pods, priorities=priorities, load=load)
            assert again == cluster


def test_the_scheduler_places_as_many_pods_as_was_published(shared_data: Path) -> None:
    """The published run of the default scheduler on the first cluster places 14 of 16 pods."""
    file = shared_data / "benchmarks" / "priority_matters" / "nodes4_pods16_prio1_util100.jsonl.gz"
    cluster = read_clusters(file.name, gzip.decompress(file.read_bytes()))[0]
    assert cluster.seed == 484806185843093489
    snapshot = cluster_snapshot(cluster)
    assert simulate(snapshot, default_profile(K36), snapshot.pods, {}).scheduled == 14
