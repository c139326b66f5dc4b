"""Plans that schedule pending pods at the least cost of moves, or proofs that this is impossible."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.instances.documents import read_documents
from stowplan.instances.items import split
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
from stowplan.planning.plan import Planned, make_plan, planning_problem
from stowplan.planning.warm_start import make_room
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.scheduler import failure
from stowplan.settings.terms import Terms


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
    def proof(self) -> str:
        """What proves that they cannot all be scheduled; empty if nothing does."""
        return proof(self.planned.plan.tiers[0])


def pods_of(file: str) -> list[str]:
    """Return the keys of the pods in a file.

    Raises
    ------
    InputError
        If it cannot be read, or has no pod.
    """
    keys = []
    others = set()
    for document in read_documents([file]):
        for item in split(document):
            content = json.loads(item.content) if isinstance(item.content, bytes) else item.content
            meta = content.get("metadata") or {}
            if item.kind == "Pod":
                keys.append(f"{meta.get('namespace') or 'default'}/{meta.get('name') or ''}")
            else:
                others.add(item.kind)
    if not keys:
        found = f"contains {', '.join(sorted(others))} and no Pod" if others else "contains no Pod"
        raise InputError(f"{found}; must contain pods", file=file)
    return keys


def admitting(settings: Settings, snapshot: Snapshot, keys: Sequence[str]) -> Settings:
    """Return settings by which pods are scheduled with priority.

    Raises
    ------
    InputError
        If none is named, or one of them is not pending.
    """
    if not keys:
        raise InputError("no pod to fit; give a file of pods with -f, or pending pods of the dump with --pod")
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
