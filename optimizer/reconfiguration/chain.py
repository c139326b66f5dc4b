"""One thread's search for moves that lead from one arrangement of pods to another."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

import numpy as np

from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.rearrangement.kernel import arrays as at
from stowplan.optimizer.rearrangement.kernel.arrays import Int32, WalkModel, WalkState
from stowplan.optimizer.rearrangement.walking import state_of
from stowplan.optimizer.reconfiguration.kernel.recording import POD, TARGET, put, run_recorded
from stowplan.optimizer.reconfiguration.kernel.shortening import ShorteningState, shorten
from stowplan.optimizer.reconfiguration.parameters import ReconfigurationParameters

NO_BEST = -(1 << 62)
"""Below all costs, so that no placement of the walk is noted as its best."""

NEARLY = 0.5
"""Share of the work after which it is noted how near to the end the walk came; before, it is too hot for that."""


@dataclass(frozen=True, slots=True)
class Cooling:
    """How a walk goes.

    Parameters
    ----------
    work
        Looks at single nodes.
    hottest, coldest
        Temperatures at the beginning and at the end.
    homing
        Share of the steps, besides rearrangements, in which a pod goes where it shall be.
    longest
        Moves that are written down at most.
    """

    work: int
    hottest: float
    coldest: float
    homing: float
    longest: int


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search came to.

    Parameters
    ----------
    record
        ``[i, 3]`` moves: pod, source, and target.
    distance
        How many pods are not where they shall be after them.
    """

    record: Int32
    distance: int


class Chain:
    """A walk with a state of its own, which is brought to one arrangement and walks toward another.

    Parameters
    ----------
    node
        ``[P]`` node of each pod in the first arrangement.
    """

    def __init__(
        self, evaluator: Evaluator, model: WalkModel, node: Int32, seed: int, parameters: ReconfigurationParameters
    ) -> None:
        self.model, self.parameters = model, parameters
        self.state: WalkState = state_of(evaluator, model, 0, node.astype(np.int64), seed)
        self.state.value[at.BEST] = NO_BEST
        self.rng = np.random.default_rng(seed)
        self.spent = 0
        longest, room = parameters.longest, self.state.room
        self._record: Int32 = np.zeros((longest, 3), dtype=np.int32)
        self._shortening = ShorteningState(
            first=room.copy(),
            room=room.copy(),
            left=np.zeros((longest, room.shape[1]), dtype=np.int64),
            entered=np.zeros((longest, room.shape[1]), dtype=np.int64),
            earlier=np.zeros(longest, dtype=np.int32),
            last=np.zeros(len(model.cls), dtype=np.int32),
            before=np.zeros(room.shape[1], dtype=np.int64),
        )

    def connect(
        self, source: Int32, target: Int32, cooling: Cooling, deadline: Deadline, halt: Event | None = None
    ) -> Found:
        """Search for moves from one arrangement to another; return those that came nearest to it.

        Parameters
        ----------
        source, target
            ``[P]`` node of each pod.
        deadline
            If it comes before the work is done, it has cooled down by then.
        halt
            Set by the first of several threads that gets there; the others end then.
        """
        chosen, state, seconds = self.parameters, self.state, deadline.remaining
        if put(self.model, state, source):
            return Found(self._record[:0].copy(), len(source))
        model = self._aimed(target)
        np.copyto(self._shortening.first, state.room)
        nearest = Found(self._record[:0].copy(), int(state.value[at.COST]))
        begun, length = int(state.value[at.SPENT]), 0
        written = self._record[: cooling.longest]
        while not (deadline.over or (halt is not None and halt.is_set())):
            used = (int(state.value[at.SPENT]) - begun) / cooling.work
            if not deadline.deterministic:
                used = max(used, 1 - deadline.remaining / max(seconds, 1e-9))
            if used >= 1:
                break
            temperature = cooling.hottest * (cooling.coldest / cooling.hottest) ** used
            piece = max(1, min(chosen.work_at_once, cooling.work // chosen.temperatures))
            length = run_recorded(model, state, written, length, piece, temperature, chosen.share, cooling.homing)
            distance = int(state.value[at.COST])
            full = length + len(state.path) >= len(written)
            if full or distance == 0 or (used > NEARLY and distance < nearest.distance):
                length = shorten(model, self._shortening, self._record, length)
                if distance < nearest.distance:
                    nearest = Found(self._record[:length].copy(), distance)
                if distance == 0 and halt is not None:
                    halt.set()
                if distance == 0 or 10 * length > 9 * len(written):
                    break
        self.spent += int(state.value[at.SPENT]) - begun
        return nearest

    def shortened(self, source: Int32, record: Int32, deadline: Deadline, most: float) -> Int32:
        """Search for shorter ways between two arrangements on a way; return a way that is no longer.

        Parameters
        ----------
        source
            ``[P]`` node of each pod before the first move.
        most
            Looks after which to end.
        """
        chosen, all_spent = self.parameters, self.spent + most
        for _ in range(chosen.round_parts):
            length = len(record)
            if deadline.over or length <= chosen.shortest_part or self.spent >= all_spent:
                break
            size = min(length, int(chosen.shortest_part * (length / chosen.shortest_part) ** self.rng.random()) + 1)
            begin = int(self.rng.integers(0, length - size + 1))
            end = begin + size
            before, after = after_moves(source, record[:begin]), after_moves(source, record[:end])
            hottest = chosen.coldest + (chosen.hottest - chosen.coldest) * self.rng.random()
            longest = min(chosen.longest, chosen.longest_part * size)
            work = int(min(chosen.part_work * size, all_spent - self.spent)) + 1
            cooling = Cooling(work, hottest, chosen.coldest_part, chosen.homing[0], longest)
            found = self.connect(before, after, cooling, deadline)
            if found.distance == 0 and len(found.record) < size:
                rest = record[end:].copy()
                rest[:, POD] = self._renamed(after, after_moves(before, found.record))[rest[:, POD]]
                record = np.concatenate([record[:begin], found.record, rest])
        return record

    def _renamed(self, wanted: Int32, found: Int32) -> Int32:
        """``[P]`` for each pod one of its class that is where it should be; classes have the same nodes in both."""
        pods = np.arange(len(found), dtype=np.int32)
        apart = np.flatnonzero(wanted != found)
        cls = self.model.cls[apart]
        pods[apart[np.lexsort((wanted[apart], cls))]] = apart[np.lexsort((found[apart], cls))]
        return pods

    def _aimed(self, target: Int32) -> WalkModel:
        """Return the model whose pods are at home in an arrangement, and make the state one of it."""
        model, state = self.model, self.state
        nodes = state.delta.shape[1]
        several = model.row[model.cls] >= 0
        row = model.row[model.cls[several]]
        counts = np.bincount(row * nodes + state.node[several], minlength=state.delta.size)
        counts -= np.bincount(row * nodes + target[several], minlength=state.delta.size)
        state.delta[:] = counts.reshape(state.delta.shape)
        start = model.start.copy()
        start[model.cls[~several]] = target[~several]
        away = np.flatnonzero(state.node != target)
        state.away[: len(away)] = away
        state.away_at[:] = -1
        state.away_at[away] = np.arange(len(away))
        state.value[at.MOVED_PODS] = len(away)
        alone = ~several & (state.node != target)
        state.value[at.COST] = int(np.maximum(0, state.delta).sum() + alone.sum())
        return model._replace(home=target, start=start)


def after_moves(source: Int32, record: Int32) -> Int32:
    """``[P]`` node of each pod after some moves."""
    node = source.copy()
    node[record[:, POD]] = record[:, TARGET]  # of several moves of a pod, the last one counts
    return node
