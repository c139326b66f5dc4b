"""When nothing goes: who waits for whom, and which pod may wait on a third node meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from stowplan.plans.sequencing.allowances import Allowances
from stowplan.plans.sequencing.stage import NOWHERE, Part, Stage
from stowplan.plans.sequencing.task import Stuck, Task

if TYPE_CHECKING:
    from stowplan.plans.sequencing.attempt import Pending

MOST_TRIED = 200
"""Moves of which each is asked whether it alone keeps another from being made, where room is not the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class ParkedPod:
    """A pod that goes to a third node, by its index, so that the pod with the key ``waiting`` can take its room."""

    pending: Pending
    node: int
    waiting: str


@dataclass(frozen=True, slots=True, eq=False)
class Parking:
    """How to go on when no move can be made.

    Parameters
    ----------
    parked
        Pods to park, all in one wave; empty if nothing helps.
    stuck
        Every move that is left, with what keeps it from being made.
    """

    parked: Sequence[ParkedPod]
    stuck: Sequence[Stuck]


def find_parking(task: Task, stage: Stage, allowances: Allowances, left: Sequence[Pending]) -> Parking:
    """Find cycles of moves that wait for each other's room, and a pod of each that can be parked.

    Parameters
    ----------
    stage
        Between two waves: no move is under way, and none of ``left`` can be made.
    """
    return _Deadlock(task, stage, allowances, left).solve()


class _Deadlock:
    def __init__(self, task: Task, stage: Stage, allowances: Allowances, left: Sequence[Pending]) -> None:
        self.task = task
        self.stage = stage
        self.left = left
        self.barred = [self._barred(allowances, pending) for pending in left]
        self.reasons = [reason or self._refused(pending) for reason, pending in zip(self.barred, left, strict=True)]
        self.graph: nx.DiGraph[int] = nx.DiGraph()
        self.graph.add_nodes_from(range(len(left)))
        for i in self._hopeful():
            self.graph.add_edges_from((i, j) for j in self._blockers(i, left[i]))

    def solve(self) -> Parking:
        """Return whom to park, one pod of every cycle that depends on no other, or else of any."""
        rings = [ring for ring in nx.strongly_connected_components(self.graph) if len(ring) > 1]
        final = [ring for ring in rings if all(j in ring for i in ring for j in self.graph.successors(i))]
        parked = [found for ring in final if (found := self._park_one(ring))]
        if not parked:
            parked = [found for ring in rings if (found := self._park_one(ring))][:1]
        return Parking(
            parked, [Stuck(p.part.pod.key, self.reasons[i], self._cycle(i)) for i, p in enumerate(self.left)]
        )

    # -- who waits for whom -----------------------------------------------------------------------------------

    def _barred(self, allowances: Allowances, pending: Pending) -> str:
        """Return why the pod cannot be evicted at all as things are."""
        part = pending.part
        return (part.source != NOWHERE and allowances.refusal(part.pod, part.source)) or ""

    def _refused(self, pending: Pending) -> str:
        status, _ = self.stage.refusal(pending.part)
        if status is None:
            return ""
        target = self.stage.state.nodes[pending.part.target].name if pending.part.target != NOWHERE else "no node"
        return f"{status.plugin} refuses it on {target}: {', '.join(status.reasons)}"

    def _hopeful(self) -> list[int]:
        """Return the moves that could be made if all other pods that are to move were gone."""
        leaving = [i for i, pending in enumerate(self.left) if pending.part.source != NOWHERE]
        with self._gone(leaving):
            alone = [self.stage.refusal(replace(pending.part, source=NOWHERE))[0] is None for pending in self.left]
        return [i for i, goes in enumerate(alone) if goes and not self.barred[i]]

    def _blockers(self, i: int, pending: Pending) -> list[int]:
        """Return the moves that a move waits for: those whose pods, once they have left, let it through."""
        others = [j for j, other in enumerate(self.left) if j != i and other.part.source != NOWHERE]
        here = [j for j in others if self.left[j].part.source == pending.part.target]
        if here and self._goes_without(pending, here):
            return here
        single = [j for j in others[:MOST_TRIED] if self._goes_without(pending, [j])]
        return single or others

    def _goes_without(self, pending: Pending, gone: Iterable[int]) -> bool:
        with self._gone(gone):
            return self.stage.refusal(pending.part)[0] is None

    @contextmanager
    def _gone(self, gone: Iterable[int]) -> Iterator[None]:
        with ExitStack() as stack:
            for j in gone:
                part = self.left[j].part
                stack.enter_context(self.stage.without(part.signature, part.source))
            yield

    def _cycle(self, i: int) -> tuple[str, ...]:
        try:
            ring = nx.shortest_path(self.graph, next(j for j in self.graph.successors(i) if self._leads(j, i)), i)
        except StopIteration:
            return ()
        return tuple(self.left[j].part.pod.key for j in [i, *ring[:-1]])

    def _leads(self, j: int, i: int) -> bool:
        return bool(nx.has_path(self.graph, j, i))

    # -- whom to park -----------------------------------------------------------------------------------------

    def _park_one(self, ring: set[int]) -> ParkedPod | None:
        """Return the least important pod of a cycle that has a third node to go to.

        One whose leaving lets another move at once comes first; else one that does so together with others.
        """
        open_to = [i for i in ring if self._may_park(i)]
        helped = {i: [j for j in self.graph.predecessors(i) if self._goes_without(self.left[j], [i])] for i in open_to}
        for i in sorted(open_to, key=lambda i: (not helped[i], self._importance(i))):
            node = third_node(self.stage, self.left[i], self.left)
            if node is not None:
                waiting = [*helped[i], *self.graph.predecessors(i)][0]
                return ParkedPod(self.left[i], node, self.left[waiting].part.pod.key)
        return None

    def _may_park(self, i: int) -> bool:
        pending = self.left[i]
        return not (pending.follows or self.barred[i]) and self.task.may_park(pending.part.pod)

    def _importance(self, i: int) -> tuple[int, float, float, int]:
        part = self.left[i].part
        return part.pod.priority, self.task.price(part.pod), self._share(part, part.source), i

    def _share(self, part: Part, node: int) -> float:
        """Return the largest share of a node that a pod takes."""
        offered = np.maximum(self.stage.state.allocatable[:, node], 1)
        return float((self.stage.state.vector(part.signature) / offered).max())


def third_node(stage: Stage, pending: Pending, left: Sequence[Pending]) -> int | None:
    """Return the node with most room among those that would take a pod, and that nobody waits for if possible.

    Parameters
    ----------
    left
        The moves that are still to be made.
    """
    part, state = pending.part, stage.state
    nodes = [n for n in stage.open_nodes(part).tolist() if n not in (part.source, part.target)]
    if not nodes:
        return None
    awaited = {other.part.target for other in left}
    share = np.where(state.allocatable > 0, state.requested / np.maximum(state.allocatable, 1), 0.0).max(axis=0)
    for node in sorted(nodes, key=lambda n: (n in awaited, share[n], n)):
        if stage.refusal(replace(part, target=node))[0] is None:
            return int(node)
    return None
