"""Whether pods may stay on other nodes than planned, decided on what the cluster shows and as replays decide it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from stowplan.applying.dropped import of_owner
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.preconditions import PreconditionCheck
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.plan import MoveDocument
from stowplan.models.snapshot import Snapshot
from stowplan.planning.replay import CompiledObjective
from stowplan.plans.cordons import uncordon
from stowplan.plans.replacements import group_of_move
from stowplan.plans.replay.tolerance import tolerable
from stowplan.settings.problem import same_problem


class StrayPod(NamedTuple):
    """A pod on another node than planned: the move that it counts for, its key, and its node."""

    move: MoveDocument
    key: str
    node: str

    def __str__(self) -> str:
        return f"{self.key}{of_owner(self.move)} is on {self.node}, planned for {self.move.target}"


@dataclass
class LandingTolerance:
    """Says of pods on other nodes than planned whether the rest of a plan leads to as good a placement with them.

    Parameters
    ----------
    steered
        Whether a server steers. Then a pod that is elsewhere although its own node could take it was not asked about,
        which is said, unless moves were left out: the server keeps their places for pods of the same owner.
    """

    check: PreconditionCheck
    ledger: ApplyLedger
    steered: bool = False
    _known: dict[frozenset[tuple[str, str]], bool] = field(default_factory=dict)

    def refusal(self, strays: Collection[StrayPod], new: Collection[StrayPod]) -> str:
        """Say, after a comma, why pods may not stay on other nodes than planned; empty if they may.

        Parameters
        ----------
        strays
            All of them, as replays take them.
        new
            Those that were not accepted before; the others count as planned if need be.

        Raises
        ------
        ClusterError
            If the cluster cannot be seen.
        """
        if self.accepts(strays) or self.accepts(new):
            return ""
        return f", and the rest of the plan is worse for it{self.unsteered(new)}"

    def unsteered(self, strays: Collection[StrayPod]) -> str:
        """Say, after a comma, of which pod a server that steers has not been asked; empty if that cannot be told.

        Raises
        ------
        ClusterError
            If the cluster cannot be seen.
        """
        free = self._free(strays) if self.steered and not self.ledger.has_dropped else None
        if free is None:
            return ""
        return f", although {free.move.target} has room for {free.key} (is the scheduler's extender asked?)"

    def accepts(self, strays: Collection[StrayPod]) -> bool:
        """Whether the plan may go on.

        The placement that its remaining moves lead to must violate no rule that it would not violate as planned, and
        its value must be as good.

        Raises
        ------
        ClusterError
            If the cluster cannot be seen.
        """
        where = frozenset((stray.key, stray.node) for stray in strays)
        if where not in self._known:
            try:
                self._known[where] = self._is_as_good(self._snapshot(), strays)
            except InputError:  # the settings of the plan name what the cluster has no more
                self._known[where] = False
        return self._known[where]

    def is_worthwhile(self) -> bool:
        """Whether the rest of the plan leads to a placement that is as good as where the pods are now.

        Raises
        ------
        ClusterError
            If the cluster cannot be seen.
        """
        snapshot = self._snapshot()
        there = {pod.key: pod for pod in snapshot.pods if not pod.finished}
        seen = Assignment(snapshot.assignment)
        try:
            objective = self._objective(snapshot)
        except InputError:  # the settings of the plan name what the cluster has no more
            return False
        return tolerable(objective, seen, list(self._rest(there)), objective(seen))

    def _snapshot(self) -> Snapshot:
        """Return the cluster without the cordons of a wave, which are lifted before the rest of the plan."""
        return uncordon(self.check.snapshot(), [node for wave, node in self.ledger.closed if wave])

    def _objective(self, snapshot: Snapshot) -> CompiledObjective:
        plan = self.ledger.plan
        return CompiledObjective(same_problem(snapshot, plan.settings, self.check.profile, limited=False))

    def _free(self, strays: Collection[StrayPod]) -> StrayPod | None:
        """Return a pod whose own node could take it as things are, if there is one."""
        snapshot = self._snapshot()
        there = {pod.key for pod in snapshot.pods if not pod.finished}
        for stray in strays:
            if stray.key not in there or stray.move.target not in snapshot.node_index:
                continue
            pods = tuple(_unbound(pod) if pod.key == stray.key else pod for pod in snapshot.pods)
            without = replace(snapshot, pods=pods)
            try:
                objective = self._objective(without)
            except InputError:  # the settings of the plan name what the cluster has no more
                return None
            if objective(Assignment(without.assignment).moved([(stray.key, stray.move.target)])).legal:
                return stray
        return None

    def _is_as_good(self, snapshot: Snapshot, strays: Collection[StrayPod]) -> bool:
        """Compare the two placements on a snapshot in which the strays have no node yet, so that neither is a move."""
        there = {pod.key: pod for pod in snapshot.pods if not pod.finished}
        if any(stray.key not in there or stray.move.target not in snapshot.node_index for stray in strays):
            return False
        keys = {stray.key for stray in strays}
        pods = tuple(_unbound(pod) if pod.key in keys else pod for pod in snapshot.pods)
        without = replace(snapshot, pods=pods)
        objective = self._objective(without)
        base = Assignment(without.assignment)
        rest = list(self._rest(there))
        planned = base.moved([*self._planned(strays), *_ends(rest)])
        seen = base.moved((stray.key, stray.node) for stray in strays)
        return tolerable(objective, seen, rest, objective(planned))

    def _planned(self, strays: Collection[StrayPod]) -> Iterator[tuple[str, str | None]]:
        """Yield where pods belong: in the place of a move of their group that was left out, if they are there."""
        dropped = (move for move in self.ledger.plan.moves if self.ledger.stage(move) == "dropped")
        places = Counter((group_of_move(move), move.target) for move in dropped)
        for stray in strays:
            place = (group_of_move(stray.move), stray.node)
            taken = places[place] > 0
            places[place] -= taken
            yield stray.key, stray.node if taken else stray.move.target

    def _rest(self, there: dict[str, Pod]) -> Iterator[MoveDocument]:
        """Yield the moves that are not begun, about the pods that they are about now."""
        for move in self.ledger.plan.moves:
            name = self.ledger.name(move)
            key = f"{move.pod.namespace}/{name}"
            if self.ledger.stage(move) in {"waiting", "asked"} and key in there:
                yield move.model_copy(update={"pod": move.pod.model_copy(update={"name": name})})


def _ends(moves: Collection[MoveDocument]) -> Iterator[tuple[str, str | None]]:
    return ((move.pod.key, move.target) for move in moves)


def _unbound(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=""))
