from __future__ import annotations

import numpy as np

from stowplan.models.problem import (
    Capacity,
    Load,
    NodeScore,
    Origin,
    Placement,
    Repel,
    Topology,
    class_sets,
    dense_columns,
    project,
    refine,
)
from stowplan.models.problem.rules import Held

NODES = 3
ZERO = np.zeros(NODES, dtype=np.int64)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def capacity(*demand: int) -> Capacity:
    return Capacity(Origin("test"), ints(*demand), ints(9, 9, 9), ints(1, 1, 1))


def repel(seekers: list[int], targets: list[int]) -> Repel:
    topology = Topology("node", np.arange(NODES), ("a", "b", "c"))
    return Repel(Origin("test"), ints(*seekers), ints(*targets), topology, Held(ZERO, ZERO, ZERO))


def test_fields_that_run_over_classes_are_found_even_inside_parts() -> None:
    load = Load(ints(1, 2), ZERO, ZERO)
    score = NodeScore(Origin("test"), "least", (load, load), 1, ints(1, 1))
    assert len(dense_columns(score)) == 3
    assert len(class_sets(repel([0], [1]))) == 2


def test_classes_are_as_coarse_as_what_reads_them_allows() -> None:
    parts = [capacity(1, 1, 2, 1), repel([0, 2], [3])]
    assert refine(4, parts).tolist() == [0, 1, 2, 3]
    assert refine(4, [capacity(1, 1, 2, 1)]).tolist() == [0, 0, 1, 0]
    assert refine(4, [repel([0, 1], [0, 1])]).tolist() == [0, 0, 1, 1]


def test_projecting_rewrites_arrays_and_sets() -> None:
    class_of, representative = ints(0, 0, 1), ints(0, 2)
    assert project(capacity(5, 5, 7), class_of, representative).demand.tolist() == [5, 7]
    assert project(repel([0, 1], [2]), class_of, representative).seekers.tolist() == [0]


def test_a_placement_knows_what_it_has_beyond_another() -> None:
    a = Placement.of([(0, 0, 3), (1, 2, 1)])
    b = Placement.of([(0, 0, 1), (0, 1, 2)])
    assert a.beyond(b, NODES).counts() == {(0, 0): 2, (1, 2): 1}
    assert b.beyond(a, NODES).counts() == {(0, 1): 2}
    assert a.beyond(Placement.of([]), NODES).same_as(a)


def test_a_placement_survives_its_table() -> None:
    a = Placement.of([(1, 2, 1), (0, 0, 3)])
    assert Placement.from_table(a.table(2, NODES)).same_as(a)
    assert a.per_node(NODES).tolist() == [3, 0, 1]
    assert a.placed(2).tolist() == [3, 1]
    assert a.only(ints(1)).counts() == {(1, 2): 1}
