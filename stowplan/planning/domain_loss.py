"""What becomes of the pods of a failure domain when its nodes are lost, with and without moves of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from stowplan.answers.solve import Solution, solve_snapshot
from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.objective import Objective, TierSettings
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot, tied
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import Backend
from stowplan.planning.fit import UnscheduledPod
from stowplan.planning.warm_start import make_room
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.simulate import simulate
from stowplan.scenarios.nodes import remove_nodes
from stowplan.settings.freeze import Stays, who_stays
from stowplan.settings.problem import make_problem, make_profile

STAYS = "not of the lost domain"
FEWEST_MOVES = Objective(name="fewest moves", repair=(), tiers=(TierSettings(name="moves", moves=1),))
"""Beside the pods of the domain nothing is asked for: standing violations are no reason to move."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes that are lost at once."""

    name: str
    nodes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Loss:
    """What a lost domain comes to if no other pod moves.

    Parameters
    ----------
    displaced
        Number of pods that need another node.
    pending
        Those that find none in the best placement that was found.
    at_least
        Number of pods that find none in any placement, as far as is proven.
    left
        Number of pods for which kube-scheduler finds no node, one by one.
    unknown
        Pods that are outside the model, or of another scheduler: whether they find a node is not known.
    """

    domain: Domain
    displaced: int
    pending: Sequence[UnscheduledPod]
    at_least: int
    left: int
    unknown: Sequence[UnscheduledPod]

    @property
    def proven(self) -> bool:
        """Whether no placement has fewer pending pods."""
        return len(self.pending) <= self.at_least

    @property
    def needs_search(self) -> bool:
        """Whether a better placement may be found than that of the scheduler, or more may be known."""
        return bool(self.pending or self.unknown)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What kube-scheduler makes of the pods of a lost domain.

    Parameters
    ----------
    loss
        What is known then; nothing is proven of it.
    lost
        The cluster without the domain.
    displaced
        The pods that need another node.
    assignment
        Where the scheduler has them, and all others.
    complete
        Whether it came to its end.
    """

    loss: Loss
    lost: Snapshot
    displaced: Sequence[Pod]
    assignment: Assignment
    complete: bool


@dataclass(frozen=True, slots=True)
class Rearranged:
    """What a lost domain comes to if other pods may move.

    Parameters
    ----------
    moves
        Nodes of the other pods that move, by key.
    pending
        Number of pods without a node in the best placement that was found.
    at_least
        Number of pods without a node in any placement, as far as is proven.
    least_moves
        Number of other pods that have to move if no pod is to be pending, as far as is proven.
    """

    moves: Mapping[str, str]
    pending: int
    at_least: int
    least_moves: int


def losing_of(
    snapshot: Snapshot, settings: Settings, options: Options, stop: Stop | None = None, backend: Backend | None = None
) -> Losing:
    """Return how the losses of a cluster are computed."""
    profile = make_profile(settings, snapshot)
    signatures = Signatures(pod for pod in snapshot.pods if not pod.finished)
    return Losing(settings, profile, who_stays(snapshot, settings), options, stop or Stop(), backend, signatures)


@dataclass(frozen=True)
class Losing:
    """How losses are computed.

    Parameters
    ----------
    settings
        Of the cluster; goals, limits, and prices do not count.
    stays
        Returns why a pod may not move today, or ``None``.
    signatures
        Of all pods of the cluster, which most losses leave where they are.
    """

    settings: Settings
    profile: Profile
    stays: Stays
    options: Options
    stop: Stop
    backend: Backend | None
    signatures: Signatures

    def lose(self, snapshot: Snapshot, domain: Domain) -> Loss:
        """Find nodes for the pods of a domain, without moves of others."""
        scheduled = self.schedule(snapshot, domain)
        return self.search(scheduled) if scheduled.loss.needs_search else scheduled.loss

    def schedule(self, snapshot: Snapshot, domain: Domain, over: Callable[[], bool] = lambda: False) -> Scheduled:
        """Let kube-scheduler find nodes for the pods of a domain.

        Parameters
        ----------
        over
            Asked before each pod; ends with what is known then, and so does a stop.
        """
        lost, displaced = _without(snapshot, domain)
        known = [pod for pod in displaced if pod.spec.scheduler_name in self.profile.names]
        made = simulate(
            lost,
            self.profile,
            known,
            lost.assignment,
            signatures=self.signatures,
            seed=self.options.seed,
            preempts=False,
            stopped=lambda: self.stop.is_set() or over(),
        )
        pending = [
            UnscheduledPod(pod, made.outcomes[pod.key].message if pod.key in made.outcomes else "")
            for pod in known
            if pod.key not in made.assignment
        ]
        names = set(self.profile.names)
        others = [
            UnscheduledPod(pod, f"scheduler {pod.spec.scheduler_name}")
            for pod in displaced
            if pod.spec.scheduler_name not in names
        ]
        loss = Loss(domain, len(displaced), pending, 0, len(pending), others)
        return Scheduled(loss, lost, displaced, made.assignment, made.complete)

    def search(self, scheduled: Scheduled) -> Loss:
        """Find the best placement of the pods of a domain, without moves of others."""
        loss, lost, displaced = scheduled.loss, scheduled.lost, scheduled.displaced
        solution = self._solved(lost, displaced, lambda pod: STAYS, [scheduled.assignment])
        modeled = {pod.key for pod in solution.compiled.pods}
        why = dict(zip((pod.key for pod in lost.pods), solution.compiled.participants.reason, strict=True))
        unknown = [
            UnscheduledPod(pod, why[pod.key])
            for pod in displaced
            if pod.key not in modeled and pod.key not in scheduled.assignment
        ]
        pending = [UnscheduledPod(pod, reason) for pod, reason in solution.waiting]
        return replace(loss, pending=pending, at_least=_at_least(solution), unknown=unknown)

    def rearrange(self, snapshot: Snapshot, domain: Domain) -> Rearranged:
        """Find nodes for the pods of a domain, with as few moves of others as possible."""
        lost, displaced = _without(snapshot, domain)
        solution = self._solved(lost, displaced, self.stays)
        here = lost.assignment
        moves = {key: node for key, (source, node) in solution.assignment.moved_from(here).items() if source and node}
        needed = solution.outcome.tiers[1]
        least = math.ceil(needed.tier.shown(needed.bound)) if not _at_least(solution) else 0
        return Rearranged(moves, len(solution.waiting), _at_least(solution), least if not solution.waiting else 0)

    def _solved(
        self, lost: Snapshot, displaced: Sequence[Pod], stays: Stays, candidates: Sequence[Assignment] = ()
    ) -> Solution:
        changes = {
            "objective": FEWEST_MOVES,
            "admit": tuple(pod.key for pod in displaced),
            "drain": (),
            "max_moves": None,
            "max_moves_of": (),
            "freeze": (),
            "freeze_bare": False,
            "executor": None,
            "may_move": (),
            "move_costs": False,
            "preemption": None,
            "prices": None,
        }
        compiled = make_problem(lost, self.settings.model_copy(update=changes), stays)
        wanted = {pod.key for pod in displaced}
        if not candidates:
            modeled = [pod for pod in compiled.pods if pod.key in wanted]
            candidates = [make_room(compiled, modeled, seed=self.options.seed, stopped=self.stop.is_set)]
        return solve_snapshot(compiled, self.options, candidates=candidates, stop=self.stop, backend=self.backend)


def placed(snapshot: Snapshot, nodes: Mapping[str, str]) -> Snapshot:
    """Return a snapshot with some bound pods on other nodes, by key."""
    return replace(
        snapshot,
        pods=tuple(
            replace(pod, spec=replace(pod.spec, node_name=nodes[pod.key])) if pod.key in nodes else pod
            for pod in snapshot.pods
        ),
    )


def _without(snapshot: Snapshot, domain: Domain) -> tuple[Snapshot, list[Pod]]:
    """Return a snapshot without a domain, and its pods that need another node."""
    gone = set(domain.nodes)
    keys = {pod.key for pod in snapshot.pods if pod.node_name in gone and not pod.finished and tied(pod) is None}
    lost = remove_nodes(snapshot, gone)
    return lost, [pod for pod in lost.pods if pod.key in keys]


def _at_least(solution: Solution) -> int:
    """Return how many pods are without a node in any placement."""
    return math.ceil(solution.outcome.tiers[0].bound)
