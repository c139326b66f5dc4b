"""Multiple knapsacks: read, stated, answered, written, and checked by a checker of their own."""

import json
from pathlib import Path

import numpy as np
import pytest
from stowplan.instances.suites.knapsack import Knapsacks, check_knapsacks, knapsack_problem, read_knapsacks

from stowplan.cli import run
from stowplan.models.errors import InputError
from stowplan.models.problem import Placement
from stowplan.optimizer.evaluate import Evaluator

SMALL = b"2  5 4\n4\n3 10\n3 10\n2 7\n4 8\n"
"""Capacities 5 and 4. Best: 3 + 2 in the first (17) and 3 (10) or 4 (8) in the second: 27 of 35, so 8 are left out."""


def test_items_alike_share_a_class_and_are_written_apart() -> None:
    stated = knapsack_problem(read_knapsacks("small", SMALL))
    assert stated.problem.size.sum() == 4
    assert sorted(stated.problem.size.tolist()) == [1, 1, 2]
    twins = int(stated.class_of[0])
    assert sorted(stated.write(Placement.of([(twins, 0, 1), (twins, 1, 1)])).split()) == ["0", "1"]


def test_the_checker_adds_up_what_is_left_out_and_names_what_is_wrong() -> None:
    small = read_knapsacks("small", SMALL)
    assert check_knapsacks(small, "new", b"0 2\n1\n").values == (8,)
    verdict = check_knapsacks(small, "new", b"0 1\n1\n")
    assert verdict.violations == ("knapsack 0: 6 exceeds its capacity 5", "item 1: packed 2 times")
    with pytest.raises(InputError, match="new: knapsack 0: is item 9; must be below 4"):
        check_knapsacks(small, "new", b"9\n\n")


def test_evaluator_and_checker_agree_on_random_placements() -> None:
    rng, seen = np.random.default_rng(3), set()
    for _ in range(100):
        instance = Knapsacks(rng.integers(3, 12, 3), rng.integers(1, 5, 6), rng.integers(1, 9, 6))
        stated = knapsack_problem(instance)
        chosen = [(int(c), int(rng.integers(4)), 1) for c in stated.class_of]
        placement = Placement.of(entry for entry in chosen if entry[1] < 3)
        found = Evaluator(stated.problem).evaluate(placement)
        verdict = check_knapsacks(instance, "new", stated.write(placement).encode())
        assert found.values == verdict.values
        assert found.legal == (not verdict.violations)
        seen.add(found.legal)
    assert seen == {True, False}


def test_bench_proves_the_optimum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.mkp").write_bytes(SMALL)
    answer = ["bench", str(tmp_path), "-t", "5", "--deterministic", "-q", "-o", "json"]
    assert run([*answer, "--solutions", str(tmp_path / "out")]) == 0
    (row,) = json.loads(capsys.readouterr().out)["instances"]
    assert (row["status"], row["tiers"][0]["value"], row["accepted"]) == ("OPTIMAL", 8, True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"1 5\n1\n3\n", "new: ends after 4 numbers; 1 items must follow"),
        (b"1 5\n1\n3 -2\n", "new: line 3: '-2' is not an integer of 0 or more"),
        (b"1 99999999999999999\n0\n", "new: its numbers are too large to be added up"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_knapsacks("new", data)
