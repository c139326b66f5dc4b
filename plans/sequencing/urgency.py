"""Which moves are best made first."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.plans.sequencing.allowances import Allowances
from stowplan.plans.sequencing.wave_state import NOWHERE, IndexedMove, WaveState

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
        Positions of the moves in ``left``, the most urgent first.
    """

    def __init__(
        self,
        wave_state: WaveState,
        allowances: Allowances,
        left: Sequence[IndexedMove],
        rng: random.Random | None = None,
    ) -> None:
        self._left = left
        self._names = wave_state.state.nodes
        self._arriving: defaultdict[int, list[int]] = defaultdict(list)
        for i, move in enumerate(left):
            self._arriving[move.target].append(i)
        self._short = _short(wave_state, left, self._arriving)
        chain, shared = self._chains(left), _shared(allowances, left)
        keys = [
            (
                -(chain[i] + shared[i]) + (2 * rng.random() if rng else 0),
                -move.pod.priority,
                not move.follows,
                i,
            )
            for i, move in enumerate(left)
        ]
        self.order = [key[-1] for key in sorted(keys)]
        self._rank = {i: rank for rank, i in enumerate(self.order)}

    def why(self, i: int) -> tuple[str, str]:
        """Return what a move, by its position, is for, and the key of the pod that it makes room for; or nothing."""
        source = self._left[i].source
        if source == NOWHERE:
            return "pending", ""
        if not self._short[source]:
            return "", ""
        key = self._left[min(self._arriving[source], key=lambda other: self._rank[other])].pod.key
        return f"makes room on {self._names[source].name} for {key}", key

    def _chains(self, left: Sequence[IndexedMove]) -> list[int]:
        """Count, for each move, the links of the longest chain of moves that wait for its room."""
        chain = [0] * len(left)
        for _ in range(DEEPEST):
            longest: defaultdict[int, int] = defaultdict(int)
            for move, links in zip(left, chain, strict=True):
                target = move.target
                if target != NOWHERE and self._short[target]:
                    longest[target] = max(longest[target], links + 1)
            after = [longest[move.source] if move.source != NOWHERE else 0 for move in left]
            if after == chain:
                break
            chain = after
        return chain


def _short(wave_state: WaveState, left: Sequence[IndexedMove], arriving: dict[int, list[int]]) -> Bools:
    """``[n]`` whether the nodes lack room for all that is still to arrive."""
    state = wave_state.state
    short = np.zeros(state.size, dtype=np.bool_)
    for node, positions in arriving.items():
        if node != NOWHERE:
            nothing = np.zeros_like(state.requested[:, node])
            coming = sum((state.vector(left[i].signature) for i in positions), nothing)
            free = state.allocatable[:, node] - state.requested[:, node]
            short[node] = bool(((coming > free) & (coming > 0)).any())
    return short


def _shared(allowances: Allowances, left: Sequence[IndexedMove]) -> list[int]:
    """Count, for each move, the waves that its tightest budget or limit needs for the moves that share it."""
    groups: list[list[tuple[Hashable, int]]] = []
    for move in left:
        mine: list[tuple[Hashable, int]] = []
        if move.source != NOWHERE:
            mine += [(i, max(1, allowances.ledger.allowed(i))) for i in allowances.ledger.asked(move.pod)]
            mine += [(limit, limit.most) for limit in allowances.limits_on(move.pod, move.source)]
        groups.append(mine)
    sizes = Counter(group for mine in groups for group, _ in mine)
    return [max((math.ceil(sizes[group] / most) for group, most in mine), default=1) for mine in groups]
