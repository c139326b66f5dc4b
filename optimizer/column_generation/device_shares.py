"""Device shares in patterns: they are packed, since no linear inequality describes them.

Inequalities implied by the rule are rows like any other, and bound the gain of a subtree. The packer alone decides
which patterns are feasible: one that certainly cannot be packed is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.bin_packing import EFFORT
from stowplan.models.problem import Devices, Problem
from stowplan.optimizer.column_generation.dual_feasible import demanded_weights
from stowplan.optimizer.column_generation.parameters import ColumnGenerationParameters
from stowplan.optimizer.compiled.bin_packing import distribute
from stowplan.optimizer.evaluate import Evaluator

DeviceArguments = tuple[Ints, Ints, int, int, Ints]
"""Whole devices and share of each kind, size and number of devices, and the held shares."""

NOTHING: Ints = np.zeros(0, dtype=np.int64)


def fits_devices(x: Ints, whole: Ints, part: Ints, size: int, count: int, held: Ints) -> bool:
    """Whether a node's devices hold ``x[k]`` pods of each kind, as the rule decides it."""
    return size <= 0 or distribute(x, -1, whole, part, size, held, EFFORT, np.empty(count, dtype=np.int64)) > 0


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """The devices of one node, and what pods take of them.

    Parameters
    ----------
    whole, part
        ``[k]`` devices that a pod of each kind has for itself, and its share of one more.
    size, count
        Of a device, 0 if there is nothing to pack; and how many there are.
    held
        ``[h]`` shares that pods outside the problem take.
    """

    whole: Ints
    part: Ints
    size: int
    count: int
    held: Ints

    def of(self, kinds: Ints) -> DeviceArguments:
        """Return the arguments of the kernels for some of the kinds."""
        return self.whole[kinds], self.part[kinds], self.size, self.count, self.held


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """A rule of devices for all classes and nodes.

    Parameters
    ----------
    asked
        ``[2, c]`` whole devices and share of each class.
    offered
        ``[2, n]`` devices of each node, and a number that is the same for nodes on which the same shares are held.
    size
        Of a device; 0 if there is nothing to pack.
    held
        Shares that are held, by their number.
    """

    asked: Ints
    offered: Ints
    size: int
    held: tuple[Ints, ...]

    def on(self, node: int, classes: Ints) -> Shares:
        """Return the devices of a node, and what pods of some classes take of them."""
        count, held = self.offered[:, node].tolist()
        whole, part = np.ascontiguousarray(self.asked[:, classes])
        return Shares(whole, part, self.size, count, self.held[held])


def sums_of(
    problem: Problem, rule: Devices, parameters: ColumnGenerationParameters
) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield inequalities implied by the rule: those of `Devices.sums`, and one made for the shares that there are."""
    yield from rule.sums
    held = rule.held_part[rule.held_part > 0]
    parts, which = np.unique(np.concatenate([rule.part, held]), return_inverse=True)
    number = np.zeros(len(parts), dtype=np.int64)
    np.add.at(number, which, np.concatenate([problem.size, np.ones_like(held)]))
    some = parts > 0
    if not some.any():
        return
    limit, weights = demanded_weights(
        parts[some], number[some], rule.size, parameters.share_grid, parameters.share_rounds
    )
    weight = np.zeros(len(parts), dtype=np.int64)
    weight[some] = weights
    free: Ints = limit * (rule.count - rule.held_whole)
    np.subtract.at(free, rule.held_node[rule.held_part > 0], weight[which[len(rule.part) :]])
    yield limit, limit * rule.whole + weight[which[: len(rule.part)]], free


def packing_of(evaluator: Evaluator) -> Packing:
    """Read the first rule that has shares to pack; of further ones, only the implied inequalities are used.

    A node that is violated at the start may stay so, by no more than at the start.
    """
    problem = evaluator.problem
    classes, nodes = problem.shape
    for rule, before in zip(problem.rules, evaluator.start_violations, strict=True):
        if isinstance(rule, Devices) and rule.part.any():
            held: list[list[int]] = [[] for _ in range(nodes)]
            for n, part in zip(rule.held_node.tolist(), rule.held_part.tolist(), strict=True):
                held[n].append(part)
            number: dict[tuple[int, ...], int] = {}
            which = [number.setdefault(tuple(sorted(parts)), len(number)) for parts in held]
            return Packing(
                np.stack([rule.whole, rule.part]),
                np.stack([rule.count - rule.held_whole + before, np.array(which, dtype=np.int64)]),
                rule.size,
                tuple(np.array(parts, dtype=np.int64) for parts in number),
            )
    nothing = np.zeros((2, max(classes, nodes)), dtype=np.int64)
    return Packing(nothing[:, :classes], nothing[:, :nodes], 0, (NOTHING,))
