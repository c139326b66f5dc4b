"""Which moves are best made first."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.plans.sequencing.allowances import Allowances
from stowplan.plans.sequencing.stage import NOWHERE, Stage

if TYPE_CHECKING:
    from stowplan.plans.sequencing.attempt import Pending

DEEPEST = 16
"""Links of a chain of moves, each of which makes room for the next, that are looked at."""


class Urgency:
    """The order in which moves are offered to a wave.

    A move is urgent by the number of waves that must still follow it: as many as its tightest budget or limit needs
    for all the moves that share it, and one for each link of the longest chain of moves that wait for its room.
    Among equals, pods of higher priority come first.

    Parameters
    ----------
    rng
        Disturbs the order by up to a link or two; without it, nothing is left to chance.

    Attributes
    ----------
    order
        The moves, the most urgent first.
    """

    def __init__(
        self, stage: Stage, allowances: Allowances, left: Sequence[Pending], rng: random.Random | None = None
    ) -> None:
        self._stage = stage
        self._names = stage.state.nodes
        self._arriving: defaultdict[int, list[Pending]] = defaultdict(list)
        for pending in left:
            self._arriving[pending.part.target].append(pending)
        self._short = _short(stage, self._arriving)
        chain, shared = self._chains(left), _shared(allowances, left)
        keys = [
            (
                -(chain[i] + shared[i]) + (2 * rng.random() if rng else 0),
                -pending.part.pod.priority,
                not pending.follows,
                i,
            )
            for i, pending in enumerate(left)
        ]
        self.order = [left[key[-1]] for key in sorted(keys)]
        self._rank = {id(pending): rank for rank, pending in enumerate(self.order)}

    def why(self, pending: Pending) -> str:
        """Say whom a move makes room for; empty if nobody waits for it."""
        source = pending.part.source
        if source == NOWHERE:
            return "has no node yet"
        if not self._short[source]:
            return ""
        first = min(self._arriving[source], key=lambda other: self._rank[id(other)])
        return f"makes room on {self._names[source].name} for {first.part.pod.key}"

    def _chains(self, left: Sequence[Pending]) -> list[int]:
        """Count, for each move, the links of the longest chain of moves that wait for its room."""
        chain = [0] * len(left)
        for _ in range(DEEPEST):
            longest: defaultdict[int, int] = defaultdict(int)
            for pending, links in zip(left, chain, strict=True):
                target = pending.part.target
                if target != NOWHERE and self._short[target]:
                    longest[target] = max(longest[target], links + 1)
            after = [longest[p.part.source] if p.part.source != NOWHERE else 0 for p in left]
            if after == chain:
                break
            chain = after
        return chain


def _short(stage: Stage, arriving: dict[int, list[Pending]]) -> Bools:
    """``[n]`` whether the nodes lack room for all that is still to arrive."""
    state = stage.state
    short = np.zeros(state.size, dtype=np.bool_)
    for node, pendings in arriving.items():
        if node != NOWHERE:
            coming = sum((state.vector(p.part.signature) for p in pendings), np.zeros_like(state.requested[:, node]))
            free = state.allocatable[:, node] - state.requested[:, node]
            short[node] = bool(((coming > free) & (coming > 0)).any())
    return short


def _shared(allowances: Allowances, left: Sequence[Pending]) -> list[int]:
    """Count, for each move, the waves that its tightest budget or limit needs for the moves that share it."""
    groups: list[list[tuple[Hashable, int]]] = []
    for pending in left:
        part = pending.part
        mine: list[tuple[Hashable, int]] = []
        if part.source != NOWHERE:
            mine += [(i, max(1, allowances.ledger.allowed(i))) for i in allowances.ledger.asked(part.pod)]
            mine += [(limit, limit.most) for limit in allowances.limits_on(part.pod, part.source)]
        groups.append(mine)
    sizes = Counter(group for mine in groups for group, _ in mine)
    return [max((math.ceil(sizes[group] / most) for group, most in mine), default=1) for mine in groups]
