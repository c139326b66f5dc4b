"""The number of devices that the shares on a node take, as an expression."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from stowplan.models.bin_packing import pack
from stowplan.models.problem import Devices
from stowplan.optimizer.cpsat.builder import Builder, Linear
from stowplan.optimizer.cpsat.variables import Variables

Kind = tuple[int, Linear]
"""A size of share, and how many of that size there are on the node."""


class Shares:
    """The shares of one rule."""

    def __init__(self, builder: Builder, variables: Variables, rule: Devices) -> None:
        self.builder = builder
        self.variables = variables
        self.size = rule.size
        scope = variables.scope
        part = rule.part[scope.classes]
        self.rows = {size: np.flatnonzero(part == size) for size in np.unique(part).tolist() if size}
        self.held = [Counter[int]() for _ in scope.nodes]
        for n, held in zip(rule.held_node.tolist(), rule.held_part.tolist(), strict=True):
            if scope.column[n] >= 0:
                self.held[scope.column[n]][held] += 1
        for c, n, k in scope.frozen_here.entries():
            if rule.part[c]:
                self.held[scope.column[n]][int(rule.part[c])] += k

    def kinds(self, j: int) -> list[Kind]:
        """Return the shares that are on the node of a column or may come to it, in decreasing order."""
        held = self.held[j]
        nobody = np.zeros(0, dtype=np.int64)
        found = []
        for part in sorted(self.rows.keys() | held.keys(), reverse=True):
            count = self.variables.at(self.rows.get(part, nobody), j)
            count.constant = held[part]
            if count.vars or count.constant:
                found.append((part, count))
        return found

    def opened(self, kinds: list[Kind], most: int) -> Linear:
        """Return the number of devices that shares take, or more; exact in the incumbent.

        Parameters
        ----------
        most
            Devices that there are for them.
        """
        builder = self.builder
        most = min(most, sum(builder.highest(count) for _, count in kinds))
        sizes = [part for part, _ in kinds]
        parts = tuple(part for part, count in kinds for _ in range(builder.value(count)))
        bins, where = pack(parts, self.size)
        if not any(count.vars for _, count in kinds):
            return Linear(constant=bins)
        if all(larger % smaller == 0 for larger, smaller in pairwise([self.size, *sizes])):
            # Sizes that divide each other leave no gap (Coffman, Garey and Johnson 1987): the volume decides.
            volume = Linear()
            for part, count in kinds:
                volume.extend(count, part)
            devices = builder.var(0, most, bins)
            builder.at_most(volume.plus(devices, -self.size), 0)
            return Linear.of(devices)
        return self._distributed(kinds, most, parts, where)

    def _distributed(self, kinds: list[Kind], most: int, parts: tuple[int, ...], where: tuple[int, ...]) -> Linear:
        """Distribute the shares over devices, in decreasing order of what is taken of them."""
        builder = self.builder
        taken: Counter[int] = Counter()
        for part, device in zip(parts, where, strict=True):
            taken[device] += part
        fullest = {device: k for k, (device, _) in enumerate(taken.most_common())}
        placed = Counter((part, fullest[device]) for part, device in zip(parts, where, strict=True))
        loads = [Linear() for _ in range(most)]
        for part, count in kinds:
            upper = min(self.size // part, builder.highest(count))
            shares = [builder.var(0, upper, placed[part, k]) for k in range(most)]
            builder.equal(Linear(shares, [1] * most).plus_all(count, -1), 0)
            for load, share in zip(loads, shares, strict=True):
                load.add(share, part)
        opened = Linear()
        for k, load in enumerate(loads):
            literal = builder.flag(k < len(fullest))
            builder.at_most(load.plus(literal, -self.size), 0)
            if k:
                builder.at_most(load.plus_all(loads[k - 1], -1), 0)
            opened.add(literal)
        return opened
