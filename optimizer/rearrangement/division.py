"""One placement, divided among threads: each walks on nodes of its own, and these are drawn again and again.

A node belongs to one thread, and so do its pods: what is known of nodes and pods is in arrays that all threads share.
Where relations compare domains that several threads use, one of them alone may change the counts; for the others, a
pod of such a relation stays in its domain. So whatever each thread does, the placement of all is legal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.optimizer.compiled.random import start_of
from stowplan.optimizer.rearrangement.kernel import arrays as at
from stowplan.optimizer.rearrangement.kernel.arrays import WalkModel, WalkState
from stowplan.optimizer.rearrangement.kernel.division import count_moved

BY_DOMAIN = (at.AT_MOST, at.REPEL, at.ATTRACT)
"""Kinds of relations that read one domain at a time."""

BELOW_ALL = -(1 << 62)

SEEDS_APART = 1 << 40
"""Between the seeds of threads: from a seed to the next one, random numbers are the same, one draw later."""

SUMMED = [at.SPENT, at.SPENT_REARRANGING, at.STEPS, at.REARRANGEMENTS, at.ACCEPTED]


class Division:
    """Divides a placement among threads, and puts together what they have made of it.

    Parameters
    ----------
    state
        Of all nodes.
    threads
        How many parts there are. What they come to depends on their number, not on the cores.
    """

    def __init__(self, model: WalkModel, state: WalkState, threads: int, seed: int) -> None:
        self.state, self.model, self._threads = state, model, threads
        self._random = np.random.default_rng(seed)
        self._kernel_random = [start_of(each) for each in seeds_of(seed, threads)]
        self._dirty = [np.zeros_like(state.dirty) for _ in range(threads)]
        self._before = state.node.copy()
        # The first part counts for the whole.
        self._counters = [state.counter, *(np.empty_like(state.counter) for _ in range(threads - 1))]

    def parts(self) -> list[WalkState]:
        """Divide all nodes anew; return a state for each thread."""
        model, state = self.model, self.state
        region = self._random.permutation(np.arange(len(state.width)) % self._threads)
        np.copyto(self._before, state.node)
        state.dirty_at[:] = False
        state.away_at[:] = -1
        owner = self._owners(region)
        of_pod = region[state.node]
        away = (model.home >= 0) & (state.node != model.home) & (region[model.home] == of_pod)
        return [self._part(i, region == i, (owner < 0) | (owner == i), of_pod == i, away) for i in range(self._threads)]

    def _part(self, i: int, own: Bools, owned: Bools, pods: Bools, away: Bools) -> WalkState:
        state = self.state
        here, gone = (np.flatnonzero(mask).astype(np.int32) for mask in (pods, pods & away))
        state.away_at[gone] = np.arange(len(gone), dtype=np.int32)
        listed = np.zeros(len(here), dtype=np.int32)
        listed[: len(gone)] = gone
        value = state.value.copy()
        value[[at.COST, at.DIRTY, *SUMMED]] = 0
        value[at.BEST] = BELOW_ALL  # the best of a part is of no use without those of the others
        value[at.MOVED_PODS] = len(gone)
        value[at.SPENT] = state.value[at.SPENT] // self._threads
        counter, extent = self._counters[i], state.extent
        if i:
            np.copyto(counter, state.counter)
            extent = extent.copy()
        return state._replace(
            counter=counter,
            extent=extent,
            leavers=state.leavers.copy(),
            groups_with=state.groups_with.copy(),
            away=listed,
            dirty=self._dirty[i],
            candidate=np.zeros_like(state.candidate),
            rank=np.zeros_like(state.rank),
            pods=here,
            nodes=np.flatnonzero(own).astype(np.int32),
            own=own,
            owned=owned,
            path=np.zeros_like(state.path),
            value=value,
            random=self._kernel_random[i],
        )

    def _owners(self, region: Ints) -> Ints:
        """``[G]`` the thread that may change the counts of a relation; -1 if each domain is in one region.

        Relations that begin with the same class have one owner, so that its pods can leave their domains.
        """
        relation = self.model.relation
        apart = np.array([_apart(domain, region) for domain in self.model.domain])
        alone = np.isin(relation[:, at.KIND], BY_DOMAIN) & apart[relation[:, at.TOPOLOGY]]
        drawn = self._random.integers(self._threads, size=len(self.model.member_at))
        return np.where(alone, -1, drawn[self._first_class])

    @cached_property
    def _first_class(self) -> Ints:
        """``[G]`` the first class of each relation."""
        model = self.model
        classes = len(model.member_at) - 1
        cls = np.repeat(np.arange(classes), np.diff(model.member_at))
        first = np.full(len(model.relation), classes)
        np.minimum.at(first, model.member[: len(cls), 0], cls)
        return first

    def join(self, parts: Sequence[WalkState]) -> None:
        """Put the parts together; note the placement if it is the best one so far."""
        model, state = self.model, self.state
        peak, leavers, moves = int(state.value[at.PEAK]), state.leavers.copy(), int(state.value[at.MOVES])
        begun = state.value[at.SPENT] // self._threads
        for i, part in enumerate(parts):
            if i:
                count_moved(model, state, part.dirty[: part.value[at.DIRTY]], self._before)
            state.leavers[:] += part.leavers - leavers
            state.value[at.MOVES] += part.value[at.MOVES] - moves
            state.value[at.COST] += part.value[at.COST] - model.peak * (part.value[at.PEAK] - peak)
            part.value[at.SPENT] -= begun
            state.value[SUMMED] += part.value[SUMMED]
        state.groups_with[:] = np.bincount(state.leavers, minlength=len(state.groups_with))
        state.value[at.PEAK] = state.leavers.max()
        state.value[at.COST] += model.peak * (state.value[at.PEAK] - peak)
        if state.value[at.COST] < state.value[at.BEST]:
            state.value[at.BEST] = state.value[at.COST]
            np.copyto(state.best, state.node)


def seeds_of(seed: int, threads: int) -> list[int]:
    """Return the seed of each thread of a walk."""
    return [seed * 1009 + i * SEEDS_APART for i in range(threads)]


def _apart(domain: at.Int32, region: Ints) -> bool:
    """Whether no domain has nodes of several regions."""
    inside = domain >= 0
    size = int(domain.max(initial=-1)) + 1
    least, most = np.full(size, len(region)), np.full(size, -1)
    np.minimum.at(least, domain[inside], region[inside])
    np.maximum.at(most, domain[inside], region[inside])
    return bool((most <= least).all())
