"""A plan against a snapshot, the same it was made for or a newer one: what is done, what drifted, what still holds."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from stowplan.models.kubernetes import Pod
from stowplan.models.moments import parse_time
from stowplan.models.plan import MoveDocument, Plan
from stowplan.models.snapshot import Snapshot
from stowplan.plans.any_order import order_problems
from stowplan.plans.budgets import Budgets
from stowplan.plans.consistency import contradictions, misdescribed, wrong_cordons
from stowplan.plans.cordons import cordon
from stowplan.plans.dry_run import DryRun
from stowplan.plans.move import Move
from stowplan.plans.preconditions import is_same_pod, node_problem, pod_problems
from stowplan.plans.replacements import ReplacementGroup, group_of_move, group_of_pod, pods_of_pending
from stowplan.plans.sequencing.allowances import Allowances, EvictionLimit
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures

ORDERS = 3
"""Number of random orders in which the rest of a plan is carried out in dry runs."""


@dataclass(slots=True)
class Drift:
    """State of a plan in a snapshot.

    Parameters
    ----------
    done
        Ids of the moves that are done: the pod, or its replacement, is on the target.
    open
        Ids of the moves that are still to be made.
    problems
        Whatever keeps the rest from being carried out as planned, one line each.
    remarks
        Whatever a reader should know and nothing depends on.
    """

    done: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether the rest can be carried out as planned."""
        return not self.problems


def examine(
    plan: Plan,
    snapshot: Snapshot,
    profile: Profile,
    *,
    signatures: Signatures | None = None,
    now: datetime | None = None,
) -> Drift:
    """Hold a plan against a snapshot, and carry out what is left in dry runs, of it in random orders.

    Parameters
    ----------
    now
        The present, by which a plan may have expired.
    """
    drift = Drift()
    if (now or datetime.now(UTC)) > datetime.fromisoformat(plan.expires_at):
        drift.problems.append(f"expired at {plan.expires_at}")
    if not same_snapshot(plan, snapshot):
        drift.remarks.append("the snapshot is not the one the plan was made for")
    drift.problems += contradictions(plan)
    whereabouts = _Whereabouts(plan, snapshot)
    budgets = Budgets(snapshot)
    left: dict[int, list[Move]] = defaultdict(list)
    ids: dict[tuple[int, str], str] = {}
    for wave in plan.waves:
        for move in wave.moves:
            finding = whereabouts.find(move)
            pod = whereabouts.pods.get(finding.key)
            if pod is not None and not finding.done and not finding.problems:
                wrong = misdescribed(move, pod, budgets, profile.release)
                drift.problems += [f"{move.id}, {move.pod.key}: {problem}" for problem in wrong]
            drift.problems += [f"{move.id}, {move.pod.key}: {problem}" for problem in finding.problems]
            (drift.done if finding.done else drift.open).append(move.id)
            if pod is not None and not finding.done and not finding.problems:
                left[wave.number].append(Move(pod, move.source or "", move.target or "", waits=move.waits))
                ids[wave.number, finding.key] = move.id
    _look_at_nodes(plan, snapshot, drift)
    drift.problems += wrong_cordons(plan, snapshot)
    drift.problems += broken_limits(plan, snapshot)
    drift.problems += _refused_in_dry_runs(plan, snapshot, profile, signatures, left, ids)
    return drift


def same_snapshot(plan: Plan, snapshot: Snapshot) -> bool:
    """Whether a plan was made for a snapshot, but for the cordons of what it drains."""
    drained = [name for name in plan.settings.drain if name in snapshot.node_index]
    return cordon(snapshot, drained).fingerprint == plan.snapshot.fingerprint


@dataclass(slots=True)
class _Finding:
    """Where a move has got to: made, or to be made of the pod ``key``, or impossible."""

    key: str = ""
    done: bool = False
    problems: list[str] = field(default_factory=list)


class _Whereabouts:
    """Which pods of a snapshot are those of a plan, or their replacements."""

    def __init__(self, plan: Plan, snapshot: Snapshot) -> None:
        self.pods = {pod.key: pod for pod in snapshot.pods if not pod.finished}
        self.moves = {move.id: move for move in plan.moves}
        self._next = {move.follows: move for move in plan.moves if move.follows}
        self._fresh = self._replacements(plan)
        self._pending = self._pending_pods(plan)
        self._found: dict[str, _Finding] = {}

    def find(self, move: MoveDocument) -> _Finding:
        """Return where a move has got to; moves are to be asked about in order."""
        finding = self._follow(move) if move.follows else self._first(move)
        self._found[move.id] = finding
        return finding

    def _first(self, move: MoveDocument) -> _Finding:
        """Look for a pod under its own name, or for what replaced it."""
        pod = self._pending.get(move.id) or self.pods.get(move.pod.key)
        if pod is None or not (move.id in self._pending or is_same_pod(pod, move.pod.uid)):
            return self._replaced(move)
        if move.kind == "place" and pod.node_name:
            if pod.node_name == move.target or self._take(move, move.target) is not None:
                return _Finding(done=True)
            return _Finding(problems=[f"was bound to {pod.node_name}, not to {move.target}"])
        return _Finding(pod.key, problems=list(pod_problems(move, pod, pod.metadata.uid)))

    def _replaced(self, move: MoveDocument) -> _Finding:
        """Look for the replacement of a pod that is gone."""
        if move.kind == "remove":
            return _Finding(done=True)
        successor = self._take(move, move.target)
        if successor is not None:
            return _Finding(successor.key, done=True)
        if self._gone_on(move):
            return _Finding(done=True)
        elsewhere = self._peek(move, None)
        if elsewhere is None and (namesake := self.pods.get(move.pod.key)) is not None:
            return _Finding(problems=list(pod_problems(move, namesake)))
        if elsewhere is None:
            return _Finding(problems=["is gone, and nothing has replaced it"])
        where = f"on {elsewhere.node_name}" if elsewhere.node_name else "unscheduled"
        return _Finding(problems=[f"is gone, and {elsewhere.name}, which may be its replacement, is {where}"])

    def _follow(self, move: MoveDocument) -> _Finding:
        """Look for a pod that was parked: before, on, or after its third node."""
        assert move.follows is not None
        before = self._found[move.follows]
        if before.problems:
            return _Finding(problems=[f"follows {move.follows}, which cannot be made"])
        if not before.done:
            return _Finding(before.key)
        if self._take(move, move.target) is not None or self._gone_on(move):
            return _Finding(done=True)
        if not before.key:
            return _Finding(problems=[f"is neither on {move.source} nor on {move.target}"])
        return _Finding(before.key)

    def _gone_on(self, move: MoveDocument) -> bool:
        """Whether the pod has left the third node that a move took it to, for where a later one takes it."""
        onward = self._onward(move)
        while onward is not None and self._peek(onward, onward.target) is None:
            onward = self._onward(onward)
        return onward is not None

    def _onward(self, move: MoveDocument) -> MoveDocument | None:
        return self._next.get(move.id)

    # -- replacements -----------------------------------------------------------------------------------------

    def _pending_pods(self, plan: Plan) -> dict[str, Pod]:
        """Return the pod that each move of a pending pod is about, by the move's id."""
        places = [move for move in plan.moves if move.kind == "place"]
        there = {
            move.pod.key: pod.node_name
            for move in places
            if (pod := self.pods.get(move.pod.key)) is not None and is_same_pod(pod, move.pod.uid)
        }
        found = {name: self.pods[key] for name, key in pods_of_pending(places, there).items()}
        for move in places:
            pod = found.get(move.id)
            if pod is not None and pod.node_name not in ("", move.target):  # it may have taken a replacement's place
                self._fresh[group_of_move(move)].append(pod)
        return found

    def _replacements(self, plan: Plan) -> dict[ReplacementGroup, list[Pod]]:
        """Return the pods that were made since the plan was."""
        named = {move.pod.uid for move in plan.moves if move.pod.uid}
        made = datetime.fromisoformat(plan.created_at)
        fresh: dict[ReplacementGroup, list[Pod]] = defaultdict(list)
        for pod in self.pods.values():
            created = pod.metadata.creation_timestamp
            since = parse_time(created) if created else None
            if pod.metadata.uid in named or pod.terminating or (since is not None and since < made):
                continue
            if pod.metadata.controller is not None:
                fresh[group_of_pod(pod)].append(pod)
        return fresh

    def _candidates(self, move: MoveDocument) -> list[Pod]:
        return self._fresh.get(group_of_move(move), [])

    def _peek(self, move: MoveDocument, node: str | None) -> Pod | None:
        return next((pod for pod in self._candidates(move) if node is None or pod.node_name == node), None)

    def _take(self, move: MoveDocument, node: str | None) -> Pod | None:
        """Return a replacement on a node; each completes one move."""
        found = self._peek(move, node)
        if found is not None:
            self._candidates(move).remove(found)
        return found


def _look_at_nodes(plan: Plan, snapshot: Snapshot, drift: Drift) -> None:
    """Add problems of nodes that are still needed: missing or cordoned."""
    nodes = {node.name: node for node in snapshot.nodes}
    left = set(drift.open)
    for name in dict.fromkeys(move.target for move in plan.moves if move.id in left and move.target):
        if problem := node_problem(name, nodes.get(name)):
            drift.problems.append(problem)
        if name in nodes and nodes[name].unschedulable:
            drift.remarks.append(f"node {name} is cordoned")


def _refused_in_dry_runs(
    plan: Plan,
    snapshot: Snapshot,
    profile: Profile,
    signatures: Signatures | None,
    left: dict[int, list[Move]],
    ids: dict[tuple[int, str], str],
) -> list[str]:
    """Play what is left through in random orders and with the plan's cordons; return what went wrong, once each."""
    known = snapshot.node_index
    waves = {
        number: [m for m in wave if (not m.target or m.target in known) and (not m.source or m.source in known)]
        for number, wave in left.items()
    }
    if not any(waves.values()):
        return []
    closed = {wave.number: {*plan.cordon, *wave.cordon} & known.keys() for wave in plan.waves}
    found: dict[str, None] = {}
    for turn in range(ORDERS):
        run = DryRun(snapshot, profile, signatures=signatures)
        rng = random.Random(turn)
        for number, wave in sorted(waves.items()):
            run.cordon(closed[number])
            for failure in run.carry_out(wave, rng):
                found[f"wave {number}, {ids[number, failure.key]}, {failure.key}: {failure.problem}"] = None
    return list(found) or list(_refused_in_some_order(snapshot, profile, signatures, waves, closed, ids))


def _refused_in_some_order(
    snapshot: Snapshot,
    profile: Profile,
    signatures: Signatures | None,
    waves: dict[int, list[Move]],
    closed: dict[int, set[str]],
    ids: dict[tuple[int, str], str],
) -> Iterator[str]:
    """Say which moves may not come in any order, where no order that was tried shows it."""
    there = snapshot.assignment
    for number, wave in sorted(waves.items()):
        for failure in order_problems(cordon(snapshot, closed[number]), profile, there, wave, signatures):
            key = wave[failure.position].pod.key
            yield f"wave {number}, {ids[number, key]}, {key}: {failure.problem}"
        there = there.moved((move.pod.key, move.target) for move in wave)


def broken_limits(plan: Plan, snapshot: Snapshot) -> list[str]:
    """Return the waves that hold more evictions than the plan's own limits allow."""
    allowances = Allowances(snapshot, Budgets(snapshot), plan.limits)
    pods = {pod.key: pod for pod in snapshot.pods}
    lines = []
    for wave in plan.waves:
        used: Counter[EvictionLimit] = Counter()
        for move in wave.moves:
            if move.source and move.pod.key in pods:
                node = snapshot.node_index.get(move.source, -1)
                for limit in allowances.limits_on(pods[move.pod.key], node):
                    used[limit] += 1
                    if used[limit] == limit.most + 1:
                        lines.append(f"wave {wave.number} has more than {limit.most} evictions {limit.kind}")
    return lines
