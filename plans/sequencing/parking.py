"""Deadlocks: which moves wait for each other, and which pod may be parked on a third node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from stowplan.plans.sequencing.allowances import Allowances
from stowplan.plans.sequencing.problem import SequencingProblem, StuckMove
from stowplan.plans.sequencing.wave_state import NOWHERE, IndexedMove, WaveState

MOST_TRIED = 200
"""Moves of which each is asked whether it alone keeps another from being made, where room is not the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class ParkedPod:
    """A pod that goes to a third node so that another can take its room.

    Parameters
    ----------
    move
        Position of its move among those that are left.
    node
        Index of the third node.
    waiting
        Key of the other pod.
    """

    move: int
    node: int
    waiting: str


@dataclass(frozen=True, slots=True, eq=False)
class Parking:
    """Ways out when no move can be made.

    Parameters
    ----------
    parked
        Pods to park, all in one wave; empty if nothing helps.
    stuck
        Every move that is left, with what keeps it from being made.
    """

    parked: Sequence[ParkedPod]
    stuck: Sequence[StuckMove]


def find_parking(
    problem: SequencingProblem, wave_state: WaveState, allowances: Allowances, left: Sequence[IndexedMove]
) -> Parking:
    """Find cycles of moves that wait for each other's room, and a pod of each that can be parked.

    Parameters
    ----------
    wave_state
        Between two waves: no move is under way, and none of ``left`` can be made.
    """
    return _Deadlock(problem, wave_state, allowances, left).solve()


class _Deadlock:
    def __init__(
        self, problem: SequencingProblem, wave_state: WaveState, allowances: Allowances, left: Sequence[IndexedMove]
    ) -> None:
        self.problem = problem
        self.wave_state = wave_state
        self.left = left
        self.refusals = [self._refusal(allowances, move) for move in left]
        self.reasons = [
            reason or ("" if problem.stopped() else wave_state.refused(move))
            for reason, move in zip(self.refusals, left, strict=True)
        ]
        self.graph: nx.DiGraph[int] = nx.DiGraph()
        self.graph.add_nodes_from(range(len(left)))
        for i in self._feasible_alone():
            if problem.stopped():
                break
            self.graph.add_edges_from((i, j) for j in self._blockers(i, left[i]))

    def solve(self) -> Parking:
        """Return the pods to park, one of every cycle that depends on no other, or else of any."""
        cycles = [cycle for cycle in nx.strongly_connected_components(self.graph) if len(cycle) > 1]
        final = [cycle for cycle in cycles if all(j in cycle for i in cycle for j in self.graph.successors(i))]
        parked = [found for cycle in final if (found := self._park_one(cycle))]
        if not parked:
            parked = [found for cycle in cycles if (found := self._park_one(cycle))][:1]
        return Parking(
            parked, [StuckMove(move.pod.key, self.reasons[i], self._cycle(i)) for i, move in enumerate(self.left)]
        )

    # -- waiting moves ---------------------------------------------------------------------------------------

    def _refusal(self, allowances: Allowances, move: IndexedMove) -> str:
        """Return why the pod cannot be evicted now; empty if it can."""
        return (move.source != NOWHERE and allowances.refusal(move.pod, move.source)) or ""

    def _feasible_alone(self) -> list[int]:
        """Return the moves that could be made if all other pods that are to move were gone."""
        leaving = [i for i, move in enumerate(self.left) if move.source != NOWHERE]
        with self._gone(leaving):
            return [
                i
                for i, move in enumerate(self.left)
                if not (self.refusals[i] or self.problem.stopped())
                and self.wave_state.refusal(replace(move, source=NOWHERE))[0] is None
            ]

    def _blockers(self, i: int, move: IndexedMove) -> list[int]:
        """Return the moves that a move waits for: those whose pods, once they have left, let it through."""
        others = [j for j, other in enumerate(self.left) if j != i and other.source != NOWHERE]
        here = [j for j in others if self.left[j].source == move.target]
        if here and self._goes_without(move, here):
            return here
        single = [j for j in others[:MOST_TRIED] if not self.problem.stopped() and self._goes_without(move, [j])]
        return single or others

    def _goes_without(self, move: IndexedMove, gone: Iterable[int]) -> bool:
        with self._gone(gone):
            return self.wave_state.refusal(move)[0] is None

    @contextmanager
    def _gone(self, gone: Iterable[int]) -> Iterator[None]:
        with ExitStack() as stack:
            for j in gone:
                move = self.left[j]
                stack.enter_context(self.wave_state.without(move.signature, move.source))
            yield

    def _cycle(self, i: int) -> tuple[str, ...]:
        try:
            cycle = nx.shortest_path(self.graph, next(j for j in self.graph.successors(i) if self._leads(j, i)), i)
        except StopIteration:
            return ()
        return tuple(self.left[j].pod.key for j in [i, *cycle[:-1]])

    def _leads(self, j: int, i: int) -> bool:
        return bool(nx.has_path(self.graph, j, i))

    # -- pods to park -----------------------------------------------------------------------------------------

    def _park_one(self, cycle: set[int]) -> ParkedPod | None:
        """Return the least important pod of a cycle that has a third node to go to.

        One whose leaving lets another move at once comes first; else one that does so together with others.
        """
        open_to = [i for i in cycle if self._may_park(i) and not self.problem.stopped()]
        helped = {i: [j for j in self.graph.predecessors(i) if self._goes_without(self.left[j], [i])] for i in open_to}
        for i in sorted(open_to, key=lambda i: (not helped[i], self._importance(i))):
            node = third_node(self.wave_state, self.left[i], self.left)
            if node is not None:
                waiting = [*helped[i], *self.graph.predecessors(i)][0]
                return ParkedPod(i, node, self.left[waiting].pod.key)
        return None

    def _may_park(self, i: int) -> bool:
        move = self.left[i]
        return not (move.follows or self.refusals[i]) and self.problem.may_park(move.pod)

    def _importance(self, i: int) -> tuple[int, float, float, int]:
        move = self.left[i]
        return move.pod.priority, self.problem.price(move.pod), self._share(move, move.source), i

    def _share(self, move: IndexedMove, node: int) -> float:
        """Return the largest share of a node that a pod takes."""
        offered = np.maximum(self.wave_state.state.allocatable[:, node], 1)
        return float((self.wave_state.state.vector(move.signature) / offered).max())


def third_node(wave_state: WaveState, move: IndexedMove, left: Sequence[IndexedMove]) -> int | None:
    """Return the node with most room among those that would take a pod, if possible one that no other move waits for.

    Parameters
    ----------
    left
        The moves that are still to be made.
    """
    state = wave_state.state
    nodes = [n for n in wave_state.open_nodes(move).tolist() if n not in (move.source, move.target)]
    if not nodes:
        return None
    awaited = {other.target for other in left}
    share = np.where(state.allocatable > 0, state.requested / np.maximum(state.allocatable, 1), 0.0).max(axis=0)
    for node in sorted(nodes, key=lambda n: (n in awaited, share[n], n)):
        if wave_state.refusal(replace(move, target=node))[0] is None:
            return int(node)
    return None
