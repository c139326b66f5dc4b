"""Carries a plan out on a `SimulatedCluster`, wave by wave, and classifies where its pods land."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan, WaveDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plans.preconditions import pod_problems
from stowplan.plans.replacements import by_group, on_targets
from stowplan.plans.replay.outcome import (
    INTERRUPTED,
    Landing,
    MoveVerdict,
    ObjectiveFunction,
    ObjectiveValue,
    ReplayOutcome,
    WaveOutcome,
)
from stowplan.plans.replay.simulated_cluster import SimulatedCluster
from stowplan.plans.replay.steering import TokenExtender
from stowplan.plans.replay.tolerance import tolerable
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures


def replay(
    plan: Plan,
    snapshot: Snapshot,
    profile: Profile,
    objective: ObjectiveFunction,
    *,
    steered: bool = False,
    seed: int = 0,
    by_chance: bool = False,
    stops_astray: bool = False,
    signatures: Signatures | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> ReplayOutcome:
    """Carry out a plan in a simulated cluster.

    Before the first wave, the simulated kube-scheduler tries to schedule all pending pods. In a wave, all evictions are
    requested in order; those that a budget refuses are requested again once other replacements are ready. Replacements
    are placed greedily while the old pods still hold their resources, and again when these are gone. The replay ends
    with the first wave that leaves a replacement unscheduled.

    Parameters
    ----------
    plan, snapshot, profile
        The plan, the cluster before it, and the scheduler's plugins.
    objective
        Computes the value of a placement.
    steered
        Whether an extender prefers the nodes of the plan's tokens.
    seed
        Seed of random choices, such as ties between nodes.
    by_chance
        Leave to chance what is left to it in a cluster: ties, sampled nodes, and the order of events in a wave.
    stops_astray
        End after the first wave with a pod on another node than planned that `tolerable` does not accept.
    signatures
        Signatures of the snapshot's pods, if known already.
    stopped
        Returns true to end the replay early.

    Raises
    ------
    InputError
        If a pod of the plan is not in the snapshot, or is on another node than the plan says.
    """
    check(plan, snapshot)
    return _Replay(
        plan,
        snapshot,
        profile,
        objective,
        steered,
        seed,
        signatures,
        stopped,
        by_chance=by_chance,
        stops_astray=stops_astray,
    ).run()


def check(plan: Plan, snapshot: Snapshot) -> None:
    """Refuse a plan whose pods the snapshot does not have where the plan has them.

    Raises
    ------
    InputError
        With the first move that cannot be made.
    """
    pods = {pod.key: pod for pod in snapshot.pods if not pod.finished}
    for move in plan.moves:
        where = f"Plan {plan.id} move {move.id}"
        pod = pods.get(move.pod.key)
        if pod is None:
            raise InputError(f"is not in the snapshot: {move.pod.key}", obj=where, field="pod")
        if move.follows is None and (problem := next(pod_problems(move, pod), "")):
            raise InputError(f"{move.pod.key} {problem}", obj=where, field="pod")
        if move.target is not None and move.target not in snapshot.node_index:
            raise InputError(f"node {move.target!r} is not in the snapshot", obj=where, field="target")
    for wave in plan.waves:
        for name in wave.cordon:
            if name not in snapshot.node_index:
                where = f"Plan {plan.id} wave {wave.number}"
                raise InputError(f"node {name!r} is not in the snapshot", obj=where, field="cordon")


class _Replay:
    """One run."""

    def __init__(
        self,
        plan: Plan,
        snapshot: Snapshot,
        profile: Profile,
        objective: ObjectiveFunction,
        steered: bool,
        seed: int,
        signatures: Signatures | None,
        stopped: Callable[[], bool],
        *,
        by_chance: bool,
        stops_astray: bool,
    ) -> None:
        self.plan = plan
        self.stops_astray = stops_astray
        self.chance = random.Random(seed) if by_chance else None
        self.objective = objective
        self.stopped = stopped
        self.pods = {pod.key: pod for pod in snapshot.pods}
        self.cluster = SimulatedCluster(snapshot, profile, signatures, seed, by_chance=by_chance)
        self.ledger = Budgets(snapshot).ledger()
        self.extender = TokenExtender(plan, self.cluster.framework) if steered else None
        if self.extender is not None:
            self.cluster.framework.extenders.all.append(self.extender)

    def run(self) -> ReplayOutcome:
        """Carry the plan out."""
        cluster = self.cluster
        intended = cluster.assignment
        before = self.objective(intended)
        self.planned = self.objective(intended.moved((move.pod.key, move.target) for move in self.plan.moves))
        cluster.settle()
        landings: list[Landing] = []
        waves: list[WaveOutcome] = []
        halted = ""
        for wave in self.plan.waves:
            intended = intended.moved((move.pod.key, move.target) for move in wave.moves)
            if halted or self.stopped():
                halted = halted or INTERRUPTED
                landings += [Landing(wave.number, move, MoveVerdict.NOT_BEGUN) for move in wave.moves]
                continue
            found, halted = self._carry_out(wave)
            landings += found
            halted = halted or self._astray(wave, found)
            waves.append(WaveOutcome(wave.number, self.objective(intended), self.objective(cluster.assignment)))
        planned = self.planned
        reached = cluster.assignment
        actual = self.objective(reached)
        judged = self._judged(landings, intended, planned, actual.as_good_as(planned))
        waiting = {place: cluster.messages.get(place, "") for place in cluster.waiting}
        waiting |= {place: said for place, said in cluster.messages.items() if place not in cluster.node_of}
        return ReplayOutcome(judged, before, planned, actual, waves, halted, reached, waiting, tuple(cluster.preempted))

    def _carry_out(self, wave: WaveDocument) -> tuple[list[Landing], str]:
        """Carry a wave out; return where its moves land, and why it is the last one, if it is."""
        if self.extender is not None:
            self.extender.wave = wave.number
        self.cluster.cordon(wave.cordon)
        refused = self._evict_all(wave)
        landings = self._land(wave, refused)
        if refused:
            return landings, f"wave {wave.number}: a disruption budget refuses {next(iter(refused))}"
        for landing in landings:
            if not landing.node and landing.move.kind == "evict":
                return landings, f"wave {wave.number}: {landing.move.pod.key} is unscheduled"
        return landings, ""

    def _astray(self, wave: WaveDocument, landings: Sequence[Landing]) -> str:
        """Say which pod of a wave is where the rest of the plan cannot go on from, if that ends the replay."""
        wrong = [found for found in landings if found.verdict is MoveVerdict.NEEDS_STEERING]
        if not wrong or not self.stops_astray:
            return ""
        rest = (move for later in self.plan.waves if later.number > wave.number for move in later.moves)
        if tolerable(self.objective, self.cluster.assignment, rest, self.planned):
            return ""
        return f"wave {wave.number}: {wrong[0].move.pod.key} is on {wrong[0].node}, planned for {wrong[0].move.target}"

    def _evict_all(self, wave: WaveDocument) -> dict[str, str]:
        """Evict the pods of a wave as far as budgets let; return the others, with what the API server says."""
        left = [move for move in wave.moves if move.kind != "place" and move.pod.key in self.cluster.node_of]
        while True:
            refused: dict[str, str] = {}
            same_name: list[str] = []
            if self.chance is not None:
                self.chance.shuffle(left)
            for move in left:
                response = self.ledger.evict(self.pods[move.pod.key])
                if not response.granted:
                    refused[move.pod.key] = str(response.value)
                    continue
                same_name += [move.pod.key] if move.same_name else []
                self.cluster.evict(move.pod.key, same_name=move.same_name)
                self._let_time_pass(same_name)
            self.cluster.settle()
            self.cluster.vanish(same_name=same_name)
            self.cluster.settle()
            for move in left:
                if move.pod.key not in refused and move.pod.key in self.cluster.node_of:
                    self.ledger.restore(self.pods[move.pod.key])
            if len(refused) in (0, len(left)):
                return refused
            left = [move for move in left if move.pod.key in refused]

    def _let_time_pass(self, same_name: list[str]) -> None:
        """Between two evictions, let the scheduler come first or not; of the pods it has replaced, some are gone."""
        if self.chance is None or self.chance.random() < 0.5:
            return
        self.cluster.settle()
        gone = [place for place in self.cluster.leaving if self.chance.random() < 0.5]
        self.cluster.vanish(gone, same_name=same_name)
        if gone:
            self.cluster.settle()

    # -- results ---------------------------------------------------------------------------------------------

    def _land(self, wave: WaveDocument, refused: Mapping[str, str]) -> list[Landing]:
        """Say where the moves of a wave land; of interchangeable replacements, each takes a token of its owner."""
        node_of: dict[str, str] = {}
        for moves in by_group(move for move in wave.moves if move.pod.key not in refused).values():
            nodes = [self.cluster.node_of.get(move.pod.key, "") for move in moves]
            matched, without, left = on_targets(moves, zip(nodes, nodes, strict=True))
            node_of |= {move.id: node for move, node in (*matched, *zip(without, left, strict=True))}
        landings = []
        for move in wave.moves:
            if move.pod.key in refused:
                said = refused[move.pod.key]
                landings.append(Landing(wave.number, move, MoveVerdict.NOT_EVICTED, move.source or "", said))
                continue
            node = node_of[move.id]
            message = "" if node else self.cluster.messages.get(move.pod.key, "")
            verdict = MoveVerdict.PLANNED if node == (move.target or "") else MoveVerdict.NEEDS_STEERING
            landings.append(Landing(wave.number, move, verdict, node, message))
        return landings

    def _judged(
        self, landings: Sequence[Landing], intended: Assignment, planned: ObjectiveValue, as_good: bool
    ) -> list[Landing]:
        """Find the landings on other nodes that are as good as planned.

        A landing is as good if the final placement is as good as the plan's, if the plan with this landing alone is, or
        if the pod moves again later.
        """
        last = {landing.move.pod.key: landing.move.id for landing in landings}

        def judged(landing: Landing) -> Landing:
            move = landing.move
            if landing.verdict is not MoveVerdict.NEEDS_STEERING or not landing.node:
                return landing
            on_the_way = last[move.pod.key] != move.id
            alone = intended.moved([(move.pod.key, landing.node)])
            if as_good or on_the_way or self.objective(alone).as_good_as(planned):
                return replace(landing, verdict=MoveVerdict.AS_GOOD)
            return landing

        return [judged(landing) for landing in landings]
