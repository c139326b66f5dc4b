"""Whether pods may stay on other nodes than planned, decided on what the cluster shows and as replays decide it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from stowplan.applying.dropped import of_owner
from stowplan.applying.journal import now
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ClusterView, PodIdentity
from stowplan.applying.preconditions import PreconditionCheck
from stowplan.applying.records import AcceptedRecord
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

    def admit(self, strays: Collection[StrayPod], tell: Callable[[str], None]) -> str:
        """Let pods stay on other nodes than planned, write it down and say it; else say, after a comma, why not.

        What was accepted once stays so: only the others are checked again in a cluster that goes on changing. A pod
        that waited for a node may also stay where that is worse than planned, since the plan did not bring it there, as
        long as the rest of the plan makes nothing worse than it is.

        Parameters
        ----------
        strays
            All of them, as replays take them.

        Raises
        ------
        ClusterError
            If the cluster cannot be seen.
        """
        new = [stray for stray in strays if (stray.move.id, stray.node) not in self.ledger.accepted]
        if not new:
            return ""
        evicted = [stray for stray in new if stray.move.kind != "place"]
        holds = False
        if not self.accepts(strays) and not self.accepts(new):
            if len(evicted) == len(new) or (evicted and not self.accepts(evicted)) or not self.is_worthwhile():
                return f", and the rest of the plan is worse for it{self.not_steered(new)}"
            holds = True
        for stray in new:
            so = "the rest of the plan is as good, so it goes on"
            if holds and stray.move.kind == "place":
                so = "it waited for a node, and the rest of the plan holds with it there"
            line = f"{stray}{self.not_steered([stray])}; {so}"
            self.ledger.write(AcceptedRecord(at=now(), move=stray.move.id, node=stray.node))
            tell(line)
        return ""

    def admit_placed(self, view: ClusterView, wave: int, allowed: int, tell: Callable[[str], None]) -> list[str]:
        """Do so for pods of waves that are not begun and that waited for a node, and have another one by now.

        Parameters
        ----------
        wave
            Number of the wave that is to be begun.
        allowed
            Number of pods that may be elsewhere whatever becomes of the plan.

        Returns
        -------
        list of str
            Why the plan cannot go on, one line each.

        Raises
        ------
        ClusterError
            If the cluster cannot be seen.
        """
        placed = list(self._placed(view, wave))
        strays = [*landed_elsewhere(self.ledger), *placed]
        if not placed or len(strays) <= allowed or not (refusal := self.admit(strays, tell)):
            return []
        return [f"pod {stray.key} is on {stray.node}, planned from no node{refusal}" for stray in placed]

    def _placed(self, view: ClusterView, wave: int) -> Iterator[StrayPod]:
        pending = self.ledger.pending(view.identities)
        wanted = {(group_of_move(m), m.target) for m in self.ledger.plan.moves if not self.ledger.settled(m)}
        waves = (w for w in self.ledger.plan.waves if w.number >= wave and w.number not in self.ledger.known)
        for move in (move for wave_ in waves for move in wave_.moves):
            pod = view.pods.get(pending.get(move.id, ""))
            # On a node that its group is to get, it took the place of another pod, which will take its place.
            if pod is not None and pod.node_name and (group_of_move(move), pod.node_name) not in wanted:
                yield StrayPod(move, pod.key, pod.node_name)

    def not_steered(self, strays: Collection[StrayPod]) -> str:
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
            without = _unbound(snapshot, {stray.key})
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
        without = _unbound(snapshot, {stray.key for stray in strays})
        objective = self._objective(without)
        base = Assignment(without.assignment)
        rest = list(self._rest(there))
        planned = base.moved([*self._planned(strays), *_ends(rest)])
        seen = base.moved((stray.key, stray.node) for stray in strays)
        return tolerable(objective, seen, rest, objective(planned))

    def _planned(self, strays: Collection[StrayPod]) -> Iterator[tuple[str, str | None]]:
        """Yield where pods belong: in a place of their group that is left if they are there, since servers give it."""
        accepted = {name for name, _ in self.ledger.accepted} - {stray.move.id for stray in strays}
        moves = self.ledger.plan.moves
        free = (move for move in moves if move.id in accepted or self.ledger.stage(move) == "dropped")
        places = Counter((group_of_move(move), move.target) for move in free)
        for stray in strays:
            place = (group_of_move(stray.move), stray.node)
            taken = places[place] > 0
            places[place] -= taken
            yield stray.key, stray.node if taken else stray.move.target

    def _rest(self, there: dict[str, Pod]) -> Iterator[MoveDocument]:
        """Yield the moves that are not begun, about the pods that they are about now."""
        pending = self.ledger.pending({key: PodIdentity.of(pod) for key, pod in there.items()})
        for move in self.ledger.plan.moves:
            if self.ledger.stage(move) not in {"waiting", "asked"}:
                continue
            if move.kind == "place":
                pod = there.get(pending.get(move.id, ""))
                pod = None if pod is not None and pod.node_name else pod  # where it is, it stays
            else:
                pod = there.get(f"{move.pod.namespace}/{self.ledger.name(move)}")
            if pod is not None:
                yield move.model_copy(update={"pod": move.pod.model_copy(update={"name": pod.name})})


def landed_elsewhere(ledger: ApplyLedger) -> list[StrayPod]:
    """Return the pods that have landed on other nodes than planned."""
    landed = ((move, ledger.progress[move.id].landed) for move in ledger.plan.moves)
    return [
        StrayPod(move, f"{move.pod.namespace}/{record.pod}", record.node)
        for move, record in landed
        if record is not None and not record.planned
    ]


def _ends(moves: Collection[MoveDocument]) -> Iterator[tuple[str, str | None]]:
    return ((move.pod.key, move.target) for move in moves)


def _unbound(snapshot: Snapshot, keys: Collection[str]) -> Snapshot:
    """Return a cluster in which some pods have no node."""
    pods = (replace(pod, spec=replace(pod.spec, node_name="")) if pod.key in keys else pod for pod in snapshot.pods)
    return replace(snapshot, pods=tuple(pods))
