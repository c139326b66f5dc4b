"""Vector bin packing: items of several dimensions, and as few equal bins as possible (``.vbp`` files).

A file is numbers between blanks: dimensions, the capacity of a bin in each; kinds of items, and for each its size in
every dimension and how many there are of it. A solution has one line for each bin in use: the kinds of the items in
it, counted from 0, a kind as often as it is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.instances.suites.numbers import Numbers
from stowplan.instances.suites.suite import Instance, Reference, Verdict
from stowplan.models.arrays import Ints
from stowplan.models.errors import InputError
from stowplan.models.problem import (
    PENALTY_WEIGHT,
    Capacity,
    Open,
    Origin,
    Placement,
    Problem,
    Tier,
    Weighted,
    project,
    refine,
)

LARGEST = 1 << 50
"""What sums of sizes stay below."""

MOST_ITEMS = 1_000_000
"""Items, copies included, of which search can still look at one after another."""


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """An instance.

    Parameters
    ----------
    capacity
        ``[r]`` what a bin holds in each dimension.
    size
        ``[i, r]`` sizes of one item of each kind.
    copies
        ``[i]`` how many items there are of each kind.
    """

    capacity: Ints
    size: Ints
    copies: Ints

    @property
    def items(self) -> int:
        """Number of items, copies included."""
        return sum(self.copies.tolist())


def read_packing(name: str, data: bytes) -> Packing:
    """Read an instance.

    Raises
    ------
    InputError
        If it is not one, or an item is larger than a bin.
    """
    numbers = Numbers(name, data, signed=True)
    dimensions = numbers.count("the number of dimensions")
    capacity = numbers.take(dimensions, "the capacity of a bin")
    kinds = numbers.count("the number of items")
    table = numbers.table(kinds, dimensions + 1, f"{kinds} items")
    numbers.finish()
    packing = Packing(capacity, table[:, :-1], table[:, -1])
    if capacity.min(initial=0) < 0:
        raise InputError(f"the bin's capacity is {capacity.min()}; must be 0 or more", file=name)
    for i in np.flatnonzero(packing.copies < 0).tolist():
        raise InputError(f"there are {packing.copies[i]} of it; must be 0 or more", file=name, obj=f"item {i}")
    if packing.items > MOST_ITEMS:
        raise InputError(f"contains {packing.items:,} items; must be at most {MOST_ITEMS:,}", file=name)
    if max(packing.items, 1) * max(map(abs, table.ravel().tolist()), default=0) >= LARGEST:
        raise InputError("its sizes are too large to add up", file=name)
    for i, r in np.argwhere(packing.size > capacity).tolist():
        what = f"is {packing.size[i, r]} in dimension {r}; must be at most the bin's {capacity[r]}"
        raise InputError(what, file=name, obj=f"item {i}")
    return packing


@dataclass(frozen=True, slots=True, eq=False)
class PackingProblem:
    """An instance as a problem: nodes are bins, as many as first-fit needs, which is where the items start.

    Parameters
    ----------
    class_of
        ``[i]`` the class of each kind of item; kinds of one size share one.
    """

    packing: Packing
    problem: Problem
    class_of: Ints

    def write(self, placement: Placement) -> str:
        """Write a placement as a solution."""
        waiting = [np.flatnonzero(self.class_of == c).tolist() for c in range(len(self.problem.classes))]
        left = self.packing.copies.tolist()
        bins: dict[int, list[int]] = {}
        for c, n, count in placement.entries():
            for _ in range(count):
                while not left[waiting[c][-1]]:
                    waiting[c].pop()
                left[waiting[c][-1]] -= 1
                bins.setdefault(n, []).append(waiting[c][-1])
        return "".join(" ".join(map(str, sorted(kinds))) + "\n" for _, kinds in sorted(bins.items()))


def packing_problem(packing: Packing) -> PackingProblem:
    """State an instance as a problem with one tier, whose value is the number of bins."""
    class_of = refine(len(packing.size), [], [*packing.size.T])
    representative = np.unique(class_of, return_index=True)[1]
    size = np.bincount(class_of, packing.copies, minlength=len(representative)).astype(np.int64)
    bin_of = first_fit(packing)
    start = Placement.of((int(class_of[i]), n, count) for i, n, count in bin_of)
    bins = 1 + max((n for _, n, _ in bin_of), default=-1)
    held = np.zeros(bins, dtype=np.int64)
    rules = tuple(
        project(_capacity(f"dimension {r}", demand, room, bins), class_of, representative)
        for r, (demand, room) in enumerate(zip(packing.size.T, packing.capacity.tolist(), strict=True))
    )
    problem = Problem(
        nodes=tuple(f"bin {n}" for n in range(bins)),
        classes=tuple(f"item {i}" for i in representative.tolist()),
        size=size,
        optional=np.zeros(len(representative), dtype=np.int64),
        start=start,
        rules=rules,
        tiers=(Tier("bins", (Weighted(1, Open(Origin("bins"), np.ones(bins, dtype=np.int64), held)),)),),
    )
    return PackingProblem(packing, problem, class_of)


def first_fit(packing: Packing) -> list[tuple[int, int, int]]:
    """Put every item, the largest first, into the first bin that has room; return kind, bin and how many."""
    share = (packing.size / np.maximum(1, packing.capacity)).sum(axis=1)
    room = np.zeros((0, len(packing.capacity)), dtype=np.int64)
    put: list[tuple[int, int, int]] = []
    for i in np.argsort(-share, kind="stable").tolist():
        size, copies = packing.size[i], int(packing.copies[i])
        here = _that_fit(room, size, copies)
        taken = np.minimum(here, np.maximum(0, copies - (np.cumsum(here) - here)))
        left = copies - int(taken.sum())
        if left:
            most = int(_that_fit(packing.capacity[None], size, copies)[0])
            new = -(-left // most)
            room = np.vstack([room, np.broadcast_to(packing.capacity, (new, len(size)))])
            taken = np.concatenate([taken, np.full(new - 1, most), [left - most * (new - 1)]])
        room -= taken[:, None] * size
        put.extend((i, n, int(taken[n])) for n in np.flatnonzero(taken).tolist())
    return put


def _that_fit(room: Ints, size: Ints, copies: int) -> Ints:
    """``[n]`` how many items of one size each bin has room for, of so many that there are."""
    fit = np.full(len(room), copies, dtype=np.int64)
    for r in np.flatnonzero(size > 0).tolist():
        fit = np.minimum(fit, room[:, r] // size[r])
    return np.where((room >= size).all(axis=1), fit, 0)


def check_packing(packing: Packing, name: str, data: bytes) -> tuple[int, list[str]]:
    """Check a written solution.

    Returns
    -------
    bins, violations
        How many bins it uses, and one line for each bin that holds too much and each kind that is not there as often
        as it must be.

    Raises
    ------
    InputError
        If it is not a solution at all.
    """
    lines = [line for line in data.splitlines() if line.strip()]
    violations = []
    packed = np.zeros(len(packing.copies), dtype=np.int64)
    for n, line in enumerate(lines):
        kinds = Numbers(name, line).rest()
        if len(kinds) and kinds.max() >= len(packed):
            raise InputError(f"is item {kinds.max()}; must be below {len(packed)}", file=name, obj=f"bin {n}")
        np.add.at(packed, kinds, 1)
        load = packing.size[kinds].sum(axis=0)
        violations += [
            f"bin {n}: {load[r]} exceeds its capacity {packing.capacity[r]} in dimension {r}"
            for r in np.flatnonzero(load > packing.capacity).tolist()
        ]
    violations += [
        f"item {i}: packed {packed[i]} times; must be {packing.copies[i]}"
        for i in np.flatnonzero(packed != packing.copies).tolist()
    ]
    return len(lines), violations


def _capacity(what: str, demand: Ints, room: int, bins: int) -> Capacity:
    unit = max(1, int(np.gcd.reduce(demand)))
    free = np.full(bins, room // unit, dtype=np.int64)
    penalty_weight = np.maximum(1, PENALTY_WEIGHT // np.maximum(1, free))
    return Capacity(Origin("capacity", what), demand // unit, free, penalty_weight, unit)


@dataclass(frozen=True)
class PackingInstance(Instance):
    """The bytes of a ``.vbp`` file."""

    name: str
    group: str
    file: str
    data: bytes
    known: Reference

    @property
    def reference(self) -> Reference:
        """What others found."""
        return self.known

    def state(self) -> PackingProblem:
        """State it as a problem."""
        return packing_problem(read_packing(self.file, self.data))

    def check(self, file: str, data: bytes) -> Verdict:
        """Count the bins of a solution, and name what is wrong with it."""
        bins, violations = check_packing(read_packing(self.file, self.data), file, data)
        return Verdict((bins,), tuple(violations))
