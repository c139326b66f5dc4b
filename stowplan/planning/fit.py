"""Plans that schedule pending pods at the least cost of moves, or proofs that this is impossible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Participation, Snapshot
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.run import Progress, silent
from stowplan.planning.drain import proof
from stowplan.planning.plan import Planned, make_plan, planning_problem, with_note
from stowplan.planning.warm_start import make_room
from stowplan.plans.creations import creation_notes
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.scheduler import failure
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from stowplan.settings.terms import Terms

MOST_REPLICAS = 1000
"""Replicas up to which room is looked for."""


@dataclass(frozen=True, slots=True)
class UnscheduledPod:
    """A pod that stays unscheduled, and why."""

    pod: Pod
    reason: str


@dataclass(frozen=True, eq=False)
class Fitted:
    """Result of fitting pods.

    Parameters
    ----------
    planned
        The plan, at the end of which the pods are scheduled.
    wanted
        The pods that are to be scheduled.
    unscheduled
        Those of them that stay unscheduled.
    """

    planned: Planned
    wanted: Sequence[Pod]
    unscheduled: Sequence[UnscheduledPod]

    def __repr__(self) -> str:
        left = plural(len(self.unscheduled), "pod")
        return f"<Fitted {plural(len(self.wanted), 'pod')}: {left} unscheduled, {self.planned.plan!r}>"

    def _repr_html_(self) -> str:
        return self.planned._repr_html_()

    @property
    def possible(self) -> bool:
        """Whether all pods are scheduled."""
        return not self.unscheduled

    @property
    def scheduled(self) -> int:
        """How many pods are got in."""
        return len(self.wanted) - len(self.unscheduled)

    @property
    def most(self) -> int:
        """How many pods can be got in at most, by what is proven."""
        return len(self.wanted) - math.ceil(self.planned.plan.tiers[0].bound)

    @property
    def proof(self) -> str:
        """What proves that they cannot all be scheduled; empty if nothing does."""
        return proof(self.planned.plan.tiers[0])


def with_creations(fitted: Fitted, keys: Sequence[str]) -> Fitted:
    """Return a result whose plan says what to create and when.

    Parameters
    ----------
    keys
        Keys of the pods that were made from manifests.
    """
    plan = fitted.planned.plan
    for note in reversed(list(creation_notes(plan, keys))):
        plan = with_note(plan, note)
    return replace(fitted, planned=replace(fitted.planned, plan=plan))


def pending_pods(snapshot: Snapshot) -> list[str]:
    """Return the keys of all pods that wait for a node; gated pods do not yet."""
    return [
        pod.key
        for pod in snapshot.pods
        if not (pod.node_name or pod.finished or pod.terminating or pod.spec.scheduling_gates)
    ]


def most_replicas(snapshot: Snapshot, pod: Pod) -> int:
    """Return a number of copies of a pod that no placement can exceed, by capacity alone.

    It is from 1 to `MOST_REPLICAS`: a copy that fits nowhere is still one to ask about.

    What is requested today is requested in every placement, on whichever node. On each node, no resource holds more
    copies than it offers; in the whole cluster, none holds more than is left.
    """
    state = populated(snapshot, default_profile(K36), snapshot.assignment).state
    request = state.vector(state.signatures.of(pod))
    asked = request > 0
    each = state.allocatable[asked] // request[asked][:, None]
    whole = (state.allocatable[asked].sum(axis=1) - state.requested[asked].sum(axis=1)) // request[asked]
    return int(max(1, min(each.min(axis=0).sum(), whole.min(), MOST_REPLICAS)))


def admitting(settings: Settings, snapshot: Snapshot, keys: Sequence[str]) -> Settings:
    """Return settings by which pods are scheduled with priority.

    Raises
    ------
    InputError
        If none is named, or one of them is not pending.
    """
    if not keys:
        raise InputError("no pod to fit; give a file with -f, pending pods of the dump with --pod, or --all-pending")
    pods = {pod.key: pod for pod in snapshot.pods}
    for key in keys:
        if key not in pods:
            raise InputError("is not in the snapshot", obj=f"Pod {key}")
        if pods[key].node_name or pods[key].finished:
            state = f"is on node {pods[key].node_name}" if pods[key].node_name else "is finished"
            raise InputError(f"{state}; must be a pending pod", obj=f"Pod {key}", field="spec.nodeName")
    return settings.model_copy(update={"admit": tuple(dict.fromkeys(keys))})


def fit(
    snapshot: Snapshot,
    settings: Settings,
    options: Options,
    terms: Terms | None = None,
    *,
    compiled: Compiled | None = None,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Fitted:
    """Plan the cheapest way to schedule pods.

    Parameters
    ----------
    snapshot
        The cluster, the pods included as pending ones.
    settings
        As `admitting` returns them; the objective decides between plans that cost the same moves.
    compiled
        Result of `planning_problem`, if computed already.
    backend
        Solves sub-problems; by default processes of its own.

    Raises
    ------
    InputError
        If a setting cannot be used.
    """
    terms, stop = terms or Terms(), stop or Stop()
    compiled = compiled or planning_problem(snapshot, settings, terms)
    wanted = set(settings.admit)
    guess = make_room(
        compiled, [pod for pod in compiled.pods if pod.key in wanted], seed=options.seed, stopped=stop.is_set
    )
    planned = make_plan(
        snapshot,
        settings,
        options,
        terms,
        compiled=compiled,
        candidates=[guess],
        stop=stop,
        progress=progress,
        backend=backend,
    )
    framework = populated(compiled.snapshot, compiled.profile, planned.assignment, compiled.signatures)
    unscheduled = []
    for pod, participation, reason in zip(
        compiled.snapshot.pods, compiled.participants.participation, compiled.participants.reason, strict=True
    ):
        if pod.key in wanted and pod.key not in planned.assignment:
            said = reason if participation is Participation.PENDING and reason else ""
            unscheduled.append(UnscheduledPod(pod, said or failure(framework.run_filters(framework.cycle(pod)))))
    return Fitted(planned, [pod for pod in snapshot.pods if pod.key in wanted], unscheduled)
