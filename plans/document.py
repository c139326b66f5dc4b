"""From waves to the plan document: ids, tokens, what each wave brings, and how full nodes get on the way."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.limits import LimitsDocument
from stowplan.models.moments import stamp
from stowplan.models.plan import (
    BarrierDocument,
    ImmovableDocument,
    MoveDocument,
    OwnerDocument,
    Plan,
    PlanSnapshot,
    PlanTier,
    PodReference,
    WaveDocument,
)
from stowplan.models.settings import Executor, PlatformExecutor, SettingsDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plans.move import PARKED, Move
from stowplan.plans.replacements import group_of_pod
from stowplan.plans.sequencing import WaveSequence
from stowplan.plans.tokens import tokens
from stowplan.plugins_compat.admission import standing
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.release import Release
from stowplan.plugins_compat.requests import CPU, requests

COMING_UP = 300
"""Seconds that replacements have to be scheduled, started and ready, beside the time that the old pods take to end."""
BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

Values = Callable[[Assignment], Sequence[float]]
"""Value of each tier, in displayed units."""


@dataclass(frozen=True, eq=False)
class PlanInputs:
    """Parts of a plan.

    Parameters
    ----------
    start
        Where pods are at the beginning.
    values
        Returns the value of each tier after a wave.
    reasons
        Purpose of each move that makes room for no other pod, by pod key.
    wave_timeout
        How long a wave may take; one whose pods may take long to end has more.
    immovable
        Why the executor cannot move a pod, by pod key.
    losses
        Returns what is lost for good when a pod is evicted.
    """

    snapshot: Snapshot
    profile: Profile
    signatures: Signatures | None
    start: Assignment
    sequencing: WaveSequence
    budgets: Budgets
    settings: SettingsDocument
    executor: Executor | PlatformExecutor
    limits: LimitsDocument
    created_at: datetime
    expires_in: timedelta
    wave_timeout: timedelta
    status: str
    tiers: Sequence[PlanTier]
    values: Values
    reasons: Mapping[str, str]
    immovable: Mapping[str, str]
    losses: Callable[[Pod], tuple[str, ...]]
    given_up: Sequence[str]
    notes: Sequence[str]


def plan_document(inputs: PlanInputs) -> Plan:
    """Write the plan down."""
    snapshot, sequencing = inputs.snapshot, inputs.sequencing
    waves = _waves(inputs)
    settings = inputs.settings
    pods = {pod.key: pod for pod in snapshot.pods}
    return Plan(
        gaps=snapshot.gaps,
        partial=bool(snapshot.fatal_gaps),
        id=_identity(snapshot, settings, inputs.executor, inputs.limits, waves),
        created_at=stamp(inputs.created_at),
        expires_at=stamp(inputs.created_at + inputs.expires_in),
        snapshot=PlanSnapshot(fingerprint=snapshot.fingerprint, nodes=len(snapshot.nodes), pods=len(snapshot.pods)),
        settings=settings,
        executor=inputs.executor,
        limits=inputs.limits,
        status=inputs.status,
        tiers=tuple(inputs.tiers),
        waves=tuple(waves),
        least_waves=sequencing.least_waves,
        tokens=tokens(waves),
        immovable=tuple(
            ImmovableDocument(pod=reference(pods[key]), node=pods[key].node_name, reason=reason)
            for key, reason in inputs.immovable.items()
        ),
        given_up=tuple(inputs.given_up),
        notes=tuple(inputs.notes),
    )


def reference(pod: Pod) -> PodReference:
    """Name a pod."""
    return PodReference(namespace=pod.namespace, name=pod.name, uid=pod.metadata.uid)


# -- waves ----------------------------------------------------------------------------------------------------


def _waves(inputs: PlanInputs) -> list[WaveDocument]:
    state = ClusterState(inputs.snapshot, inputs.profile.release, inputs.signatures)
    for pod, node in standing(inputs.snapshot, inputs.start):
        state.assume(state.signatures.of(pod), node)
    assignment = inputs.start
    ids: dict[int, str] = {}
    documents = []
    arrivals = _Arrivals(inputs.sequencing.waves)
    for number, wave in enumerate(inputs.sequencing.waves, 1):
        moves = []
        for move in wave:
            ids[id(move)] = f"m{len(ids) + 1:04d}"
            moves.append(_move(inputs, move, ids, arrivals.why(move, number)))
        peak = _pass(state, wave)
        assignment = assignment.moved((move.pod.key, move.target) for move in wave)
        documents.append(
            WaveDocument(
                number=number,
                moves=tuple(moves),
                barrier=BarrierDocument(timeout_seconds=_timeout(inputs, wave)),
                tiers=tuple(inputs.values(assignment)),
                peak=peak,
            )
        )
    return documents


def _timeout(inputs: PlanInputs, wave: Sequence[Move]) -> int:
    """Return the seconds that a wave may take: its old pods end in their time, then the new ones come up."""
    longest = max((move.pod.grace for move in wave if move.source), default=0)
    return max(int(inputs.wave_timeout.total_seconds()), longest + COMING_UP if longest else 1)


class _Arrivals:
    """Which pods come to which nodes, and in which waves."""

    def __init__(self, waves: Sequence[Sequence[Move]]) -> None:
        self._at: defaultdict[str, list[tuple[int, Pod]]] = defaultdict(list)
        self._pods = {move.pod.key: move.pod for wave in waves for move in wave}
        for number, wave in enumerate(waves, 1):
            for move in wave:
                self._at[move.target].append((number, move.pod))

    def why(self, move: Move, wave: int) -> str:
        """Return what a move is for: pods that are alike may have exchanged their targets since that was written."""
        if not move.room_for:
            return move.why
        come = [pod for number, pod in self._at[move.source] if number >= wave]
        if any(pod.key == move.room_for for pod in come):
            return move.why
        named = self._pods.get(move.room_for)
        alike = [pod for pod in come if named is not None and group_of_pod(pod) == group_of_pod(named)]
        if not (come := alike or come):
            return PARKED if move.parks else ""
        return move.why.replace(move.room_for, come[0].key)


def _move(inputs: PlanInputs, move: Move, ids: Mapping[int, str], why: str) -> MoveDocument:
    pod = move.pod
    controller = pod.metadata.controller
    owner = controller and OwnerDocument(
        api_version=controller.api_version, kind=controller.kind, name=controller.name, uid=controller.uid
    )
    asked = () if not move.source else inputs.budgets.covering(pod) if move.follows else inputs.budgets.asked(pod)
    return MoveDocument(
        id=ids[id(move)],
        kind=move.kind,
        pod=reference(pod),
        source=move.source or None,
        target=move.target or None,
        follows=ids[id(move.follows)] if move.follows else None,
        same_name=move.same_name,
        waits=move.waits,
        owner=owner,
        template_hash=pod.template_hash,
        requests=quantities(pod, inputs.profile.release),
        budgets=tuple(inputs.budgets.all[i].name for i in asked),
        why=why or inputs.reasons.get(pod.key, ""),
        loses=inputs.losses(pod) if move.source and not move.follows else (),
    )


def _pass(state: ClusterState, wave: Sequence[Move]) -> dict[str, dict[str, float]]:
    """Let a wave pass over the state; return how full its nodes are while every move counts at both ends."""
    index = state.snapshot.node_index
    for move in wave:
        if move.target:
            state.assume(state.signatures.of(move.pod), index[move.target])
    peak = {}
    asked = np.logical_or.reduce([state.vector(state.signatures.of(move.pod)) > 0 for move in wave])
    for name in dict.fromkeys(name for move in wave for name in (move.source, move.target) if name):
        node = index[name]
        peak[name] = {
            resource: round(float(state.requested[row, node] / state.allocatable[row, node]), 4)
            for resource, row in state.resources.items()
            if asked[row] and state.allocatable[row, node] > 0
        }
    for move in wave:
        if move.source:
            state.forget(state.signatures.of(move.pod), index[move.source])
    return peak


def quantities(pod: Pod, release: Release) -> dict[str, str]:
    """Return the requests of a pod as quantities, by resource."""
    return {name: quantity(name, amount) for name, amount in requests(pod, release).items() if amount}


def quantity(resource: str, amount: int) -> str:
    """Write an amount in scheduler units exactly, as a quantity."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for power in range(len(BINARY), 0, -1):
        if amount and amount % 1024**power == 0:
            return f"{amount // 1024**power}{BINARY[power - 1]}"
    return str(amount)


# -- identity ------------------------------------------------------------------------------------------------


def _identity(
    snapshot: Snapshot,
    settings: SettingsDocument,
    executor: Executor | PlatformExecutor,
    limits: LimitsDocument,
    waves: Sequence[WaveDocument],
) -> str:
    content = json.dumps(
        [
            snapshot.fingerprint,
            settings.model_dump(mode="json"),
            executor,
            limits.model_dump(mode="json"),
            [[(move.id, move.pod.key, move.source, move.target) for move in wave.moves] for wave in waves],
        ],
        sort_keys=True,
    )
    return f"plan-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
