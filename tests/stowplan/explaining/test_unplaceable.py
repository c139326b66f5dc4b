"""Pods that no node admits: the conflict is minimal, and what is proposed admits them."""

from __future__ import annotations

from itertools import count, islice

import numpy as np
import pytest

from stowplan.explaining.conflict import minimal_core
from stowplan.explaining.relaxations import relaxations
from stowplan.models.stop import Stop
from tests.support.cases import WANTED
from tests.support.unplaceable import cases_of, check

NUMBER = max(25, WANTED)


def test_conflicts_are_minimal_and_proposals_admit() -> None:
    told = [check(cluster) for cluster in islice(cases_of(count()), NUMBER)]
    conflicts = [one.conflict for one in told if one.conflict is not None]
    assert len(conflicts) == NUMBER
    assert any(len(conflict.rules) > 1 for conflict in conflicts)
    assert sum(bool(one.relaxations) for one in told) >= 0.8 * NUMBER
    assert any(len(relaxation.changes) > 1 for one in told for relaxation in one.relaxations)


def test_a_stop_and_the_end_of_the_time_end_proposals_and_name_what_is_left() -> None:
    told = next(one for one in map(check, islice(cases_of(count()), NUMBER)) if one.relaxations)
    compiled, stop = told.compiled, Stop()
    everything = relaxations(compiled.snapshot, compiled.profile, told.pod)
    assert everything.found
    assert not everything.untried
    late = relaxations(compiled.snapshot, compiled.profile, told.pod, seconds=0)
    assert (list(late.found), late.interrupted) == ([], False)
    assert {"evictions", "combinations"} <= set(late.untried)
    stop.set()
    stopped = relaxations(compiled.snapshot, compiled.profile, told.pod, stop=stop)
    assert (list(stopped.found), list(stopped.untried), stopped.interrupted) == ([], list(late.untried), True)


def table(*rows: str) -> list[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    return [np.array([mark == "x" for mark in row]) for row in rows]


@pytest.mark.parametrize(
    ("rows", "core"),
    [
        (["xx", "x."], [0]),  # the second adds nothing to the first
        (["x.", ".x"], [0, 1]),
        (["xx.", ".xx", "x.x"], [1, 2]),  # any two of them; the first is dropped
        (["x.", "x."], []),  # a node is left
        ([], []),
    ],
)
def test_a_core_covers_all_nodes_and_needs_each_of_its_rules(rows: list[str], core: list[int]) -> None:
    found = minimal_core(table(*rows), len(rows[0]) if rows else 2)
    assert len(found) == len(core)
    chosen = [rows[i] for i in found]
    covered = ["x" in column for column in zip(*chosen, strict=True)]
    assert all(covered)
    for left_out in range(len(chosen)):
        rest = chosen[:left_out] + chosen[left_out + 1 :]
        assert not rest or not all("x" in column for column in zip(*rest, strict=True))
