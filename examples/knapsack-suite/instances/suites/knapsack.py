"""Multiple knapsack: items with a weight and a profit, and several knapsacks to fill (``.mkp`` files).

A file is whole numbers between blanks: how many knapsacks there are, and the capacity of each; how many items, and the
weight and the profit of each. A solution has one line for each knapsack: the items in it, counted from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.instances.suites.numbers import Numbers
from stowplan.instances.suites.suite import Instance, Verdict
from stowplan.models.arrays import Ints
from stowplan.models.errors import InputError
from stowplan.models.problem import (
    PENALTY_WEIGHT,
    Capacity,
    Origin,
    Placement,
    Problem,
    Tier,
    Unplaced,
    Weighted,
    project,
    refine,
)

LARGEST = 1 << 50
"""What sums of weights and of profits stay below."""


@dataclass(frozen=True, slots=True, eq=False)
class Knapsacks:
    """An instance.

    Parameters
    ----------
    capacity
        ``[n]`` what each knapsack holds.
    weight, profit
        ``[i]`` of each item.
    """

    capacity: Ints
    weight: Ints
    profit: Ints


def read_knapsacks(name: str, data: bytes) -> Knapsacks:
    """Read an instance.

    Raises
    ------
    InputError
        If it is not one.
    """
    numbers = Numbers(name, data)
    capacity = numbers.take(numbers.count("the number of knapsacks"), "the capacities")
    items = numbers.count("the number of items")
    table = numbers.table(items, 2, f"{items} items")
    numbers.finish()
    if max(items, 1) * int(max(capacity.max(initial=0), table.max(initial=0))) >= LARGEST:
        raise InputError("its numbers are too large to be added up", file=name)
    return Knapsacks(capacity, table[:, 0], table[:, 1])


@dataclass(frozen=True, slots=True, eq=False)
class KnapsackProblem:
    """An instance as a problem: a node is a knapsack, and whatever is left out costs its profit.

    Parameters
    ----------
    class_of
        ``[i]`` the class of each item; items of equal weight and profit share one.
    """

    problem: Problem
    class_of: Ints

    def write(self, placement: Placement) -> str:
        """Write a placement as a solution."""
        waiting = [np.flatnonzero(self.class_of == c).tolist() for c in range(len(self.problem.classes))]
        lines: list[list[int]] = [[] for _ in self.problem.nodes]
        for c, n, count in placement.entries():
            lines[n] += [waiting[c].pop() for _ in range(count)]
        return "".join(" ".join(map(str, sorted(line))) + "\n" for line in lines)


def knapsack_problem(instance: Knapsacks) -> KnapsackProblem:
    """State an instance as a problem with one tier, whose value is the profit that is left out."""
    class_of = refine(len(instance.weight), [], [instance.weight, instance.profit])
    representative = np.unique(class_of, return_index=True)[1]
    size = np.bincount(class_of, minlength=len(representative)).astype(np.int64)
    weights = np.maximum(1, PENALTY_WEIGHT // np.maximum(1, instance.capacity))
    capacity = Capacity(Origin("capacity"), instance.weight, instance.capacity, weights)
    left_out = Unplaced(Origin("profit"), instance.profit[representative])
    problem = Problem(
        nodes=tuple(f"knapsack {n}" for n in range(len(instance.capacity))),
        classes=tuple(f"item {i}" for i in representative.tolist()),
        size=size,
        optional=size,
        start=Placement.of([]),
        rules=(project(capacity, class_of, representative),),
        tiers=(Tier("profit left out", (Weighted(1, left_out),)),),
    )
    return KnapsackProblem(problem, class_of)


def check_knapsacks(instance: Knapsacks, name: str, data: bytes) -> Verdict:
    """Check a written solution.

    Raises
    ------
    InputError
        If it is not a solution at all.
    """
    lines = [Numbers(name, line).rest() for line in data.splitlines()]
    if len(lines) != len(instance.capacity):
        raise InputError(f"has {len(lines)} lines; must have {len(instance.capacity)}", file=name)
    times = np.zeros(len(instance.weight), dtype=np.int64)
    violations = []
    for n, items in enumerate(lines):
        if len(items) and items.max() >= len(times):
            raise InputError(f"is item {items.max()}; must be below {len(times)}", file=name, obj=f"knapsack {n}")
        np.add.at(times, items, 1)
        load = int(instance.weight[items].sum())
        if load > instance.capacity[n]:
            violations.append(f"knapsack {n}: {load} exceeds its capacity {instance.capacity[n]}")
    violations += [f"item {i}: packed {times[i]} times" for i in np.flatnonzero(times > 1).tolist()]
    return Verdict((int(instance.profit[times == 0].sum()),), tuple(violations))


@dataclass(frozen=True)
class KnapsackInstance(Instance):
    """The bytes of a ``.mkp`` file."""

    name: str
    group: str
    file: str
    data: bytes

    def state(self) -> KnapsackProblem:
        """State it as a problem."""
        return knapsack_problem(read_knapsacks(self.file, self.data))

    def check(self, file: str, data: bytes) -> Verdict:
        """Add up the profit that a solution leaves out, and name what is wrong with it."""
        return check_knapsacks(read_knapsacks(self.file, self.data), file, data)
