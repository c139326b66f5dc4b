from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

from stowplan.instances.suites.packing import Packing, check_packing, first_fit, packing_problem, read_packing
from stowplan.instances.suites.triplets import triplets
from stowplan.models.errors import InputError
from stowplan.models.problem import Placement
from stowplan.optimizer.evaluate import Evaluator

SMALL = "2\n10 6\n3\n5 3 2\n4 1 1\n6 -1 1\n"
"""Two dimensions; an item that there are two of, and one that makes room in the second dimension."""


def small() -> Packing:
    return read_packing("small", SMALL.encode())


def test_a_packing_becomes_bins_that_first_fit_fills() -> None:
    found = packing_problem(small())
    assert found.problem.shape == (3, 2)
    assert found.problem.size.tolist() == [2, 1, 1]
    evaluation = Evaluator(found.problem).evaluate(found.problem.start)
    assert evaluation.legal
    assert evaluation.values == (2,)
    assert found.write(found.problem.start) == "0 0\n1 2\n"
    assert check_packing(small(), "new", b"0 0\n1 2\n") == (2, [])


def test_the_checker_counts_bins_and_names_what_is_wrong() -> None:
    bins, violations = check_packing(small(), "new", b"0 0 1\n\n2\n")
    assert bins == 2
    assert violations == [
        "bin 0: 14 exceeds its capacity 10 in dimension 0",
        "bin 0: 7 exceeds its capacity 6 in dimension 1",
    ]
    assert check_packing(small(), "new", b"0 1\n2 2\n")[1] == [
        "bin 1: 12 exceeds its capacity 10 in dimension 0",
        "item 0: packed 1 times; must be 2",
        "item 2: packed 2 times; must be 1",
    ]
    with pytest.raises(InputError, match="new: bin 0: is item 3; must be below 3"):
        check_packing(small(), "new", b"3\n")
    with pytest.raises(InputError, match="new: line 1: '-1' is not an integer of 0 or more"):
        check_packing(small(), "new", b"-1\n")


def test_judge_and_checker_agree_on_random_packings() -> None:
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(60):
        size = rng.integers(-1, 7, (6, 2))
        packing = Packing(np.array([8, 9]), size, rng.integers(0, 3, 6))
        found = packing_problem(packing)
        bins = len(found.problem.nodes)
        if not bins:
            continue
        where = [(c, int(rng.integers(bins)), 1) for c, k in enumerate(found.problem.size.tolist()) for _ in range(k)]
        placement = found.problem.start if rng.random() < 0.2 else Placement.of(where)
        evaluation = Evaluator(found.problem).evaluate(placement)
        used, violations = check_packing(packing, "new", found.write(placement).encode())
        assert evaluation.values == (used,)
        assert evaluation.legal == (not violations)
        seen.add(evaluation.legal)
    assert seen == {True, False}


def test_alike_items_share_a_class_and_are_all_written() -> None:
    packing = read_packing("new", b"1\n5\n3\n2 1\n3 1\n2 2\n")
    found = packing_problem(packing)
    assert found.problem.size.tolist() == [3, 1]
    assert check_packing(packing, "new", found.write(found.problem.start).encode()) == (2, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2\n10 6\n1\n11 3 1\n", "new: item 0: is 11 in dimension 0; must be at most the bin's 10"),
        ("2\n10 6\n2\n1 3 1\n", "new: ends after 7 numbers; 2 items must follow"),
        ("2\n10 6\n1\n1 3 1\n9\n", "new: has 1 more numbers after its end"),
        ("2\n10 6\n1\n1 3 -1\n", "new: item 0: there are -1 of it; must be 0 or more"),
        ("2\n10 6\n1\n1 3-1 1\n", "new: line 4: '-1' is not an integer"),
        ("2\n10 6\n1\n1 3.5 1\n", "new: line 4: '.5' is not an integer"),
        ("2\n-10 6\n0\n", "new: the bin's capacity is -10; must be 0 or more"),
        ("-2\n", "new: the number of dimensions is -2; must be 0 or more"),
        ("", "new: ends after 0 numbers; the number of dimensions must follow"),
    ],
)
def test_a_malformed_file_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_packing("new", text.encode())
    assert str(caught.value) == message


@pytest.mark.parametrize(("items", "dimensions", "seed"), [(3, 1, 0), (30, 3, 1), (60, 5, 2)])
def test_triplets_fill_their_bins_to_the_brim(items: int, dimensions: int, seed: int) -> None:
    packing = triplets(items, dimensions, seed)
    assert packing.size.shape == (items, dimensions)
    assert (packing.size.sum(axis=0) == packing.capacity * (items // 3)).all()
    assert packing.size.min() >= 250
    assert np.array_equal(packing.size, triplets(items, dimensions, seed).size)
    assert not np.array_equal(packing.size, triplets(items, dimensions, seed + 1).size)


def test_triplets_can_be_packed_as_promised() -> None:
    """Find the three of every bin again, by trying."""
    packing, open_items = triplets(24, 4, 7), set(range(24))
    while open_items:
        first = min(open_items)
        second, third = next(
            (i, j)
            for i in open_items
            for j in open_items
            if len({first, i, j}) == 3 and (packing.size[[first, i, j]].sum(axis=0) == packing.capacity).all()
        )
        open_items -= {first, second, third}


def test_triplets_come_in_threes() -> None:
    with pytest.raises(InputError, match="triplets: items must be a positive multiple of 3"):
        triplets(31, 3, 0)


def test_published_packings(shared_data: Path) -> None:
    with tarfile.open(shared_data / "benchmarks" / "vbp" / "triplet_caprara.tar.gz") as archive:
        members = [m for m in archive.getmembers() if m.name.endswith("_60_10_0.vbp") or m.name.endswith("_60_3_1.vbp")]
        for member in members:
            data = archive.extractfile(member)
            assert data is not None
            packing = read_packing(member.name, data.read())
            found = packing_problem(packing)
            evaluation = Evaluator(found.problem).evaluate(found.problem.start)
            assert evaluation.legal
            assert (evaluation.values[0], []) == check_packing(
                packing, "new", found.write(found.problem.start).encode()
            )
            assert evaluation.values[0] >= packing.items // 3
    assert len(members) == 2


def test_first_fit_takes_copies_together_as_if_they_came_one_by_one() -> None:
    rng = np.random.default_rng(11)
    for _ in range(200):
        size = rng.integers(-1, 6, (5, 2))
        packing = Packing(np.array([9, 7]), size, rng.integers(0, 12, 5))
        share = (packing.size / packing.capacity).sum(axis=1)
        bins: list[tuple[list[int], list[int]]] = []  # room left, and the kinds that are there
        for i in np.argsort(-share, kind="stable").tolist():
            for _ in range(packing.copies[i]):
                for room, there in [*bins, ([9, 7], [])]:
                    if all(room[r] >= size[i, r] for r in range(2)):
                        if not there:
                            bins.append((room, there))
                        there.append(i)
                        room[:] = [room[r] - int(size[i, r]) for r in range(2)]
                        break
        expected = {(i, n): there.count(i) for n, (_, there) in enumerate(bins) for i in there}
        assert {(i, n): count for i, n, count in first_fit(packing)} == expected


def test_an_instance_of_too_many_items_is_refused() -> None:
    with pytest.raises(InputError, match=r"many: contains 9,000,001 items; must be at most 1,000,000"):
        read_packing("many", b"2\n10 10\n2\n5 5 9000000\n4 4 1\n")
