"""A plan: how a placement is reached, wave by wave. Its JSON is what executors read."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from stowplan.models.document import API_VERSION, Document
from stowplan.models.errors import InputError
from stowplan.models.html import html_table
from stowplan.models.limits import LimitsDocument, Positive
from stowplan.models.settings import PLATFORM_RELEASE, Executor, PlatformExecutor, SettingsDocument
from stowplan.models.words import plural

Number = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(min_length=1)]

PLAN_ANNOTATION, MOVE_ANNOTATION = "stowplan.io/plan", "stowplan.io/move"
"""Annotations of what is written into a cluster for a plan: of its Lease, and of each Eviction."""
LABEL = r"^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$"


def _label(text: str) -> str:
    if not re.fullmatch(LABEL, text):
        raise ValueError(
            f"is {text!r}; must be a name of at most 52 lower-case letters, digits and dashes that begins and ends "
            "with a letter or digit"
        )
    return text


PlanId = Annotated[str, AfterValidator(_label), WithJsonSchema({"type": "string", "pattern": LABEL})]


class PodReference(Document):
    """A pod as it was when the plan was made; ``uid`` is empty where the snapshot has none."""

    namespace: Text
    name: Text
    uid: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class OwnerDocument(Document):
    """The controller that makes a pod again; its namespace is the pod's."""

    api_version: str = ""
    kind: Text
    name: Text
    uid: str = ""


class MoveDocument(Document):
    """One pod that changes its node, or gets its first.

    Parameters
    ----------
    id
        Unique in the plan, ``m0001`` and so on, in the order in which the moves are best made.
    kind
        ``evict``: the pod is evicted and its replacement comes up on ``target``. ``place``: the pod waits for a node,
        and its resources on ``target`` are free from this wave on; no pod is evicted. ``remove``: the pod is evicted
        and its replacement finds no node (only where the objective lets pods lose theirs).
    pod
        The pod as the snapshot knows it, also for a move that ``follows`` another.
    follows
        The move that parked the pod: what is evicted is the replacement that came up there, whose name and uid only
        the cluster knows (a StatefulSet's pod keeps its name).
    same_name
        Whether the replacement has the name of the pod; then it comes up only after the pod is gone, and it takes no
        room on both nodes at once.
    waits
        Whether pod and replacement exclude each other (a volume, a port, anti-affinity in one zone): until the pod is
        gone, the filters reject its replacement on ``target``, and the replacement is pending.
    template_hash
        ``pod-template-hash`` or ``controller-revision-hash`` of the pod, empty if it has neither.
    requests
        Requests of the pod, as quantities by resource name.
    budgets
        Names of the PodDisruptionBudgets, in the pod's namespace, that the eviction draws on.
    why
        Purpose of the move in a few words: the pod's own gain, the pod that it makes room for, or parking.
    loses
        What is lost for good by the eviction: data on the pod's node, and the work of a Job's pod.
    """

    id: Text
    kind: Literal["evict", "place", "remove"]
    pod: PodReference
    source: str | None
    target: str | None
    follows: str | None = None
    same_name: bool = False
    waits: bool = False
    owner: OwnerDocument | None = None
    template_hash: str = ""
    requests: Annotated[dict[str, str], Field(default_factory=dict)]
    budgets: tuple[str, ...] = ()
    why: str = ""
    loses: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Self:
        if self.kind == "evict" and self.target == self.source and self.target is not None:
            raise ValueError(f"target {self.target!r} is the pod's own node; must be another node")
        return self


class BarrierDocument(Document):
    """What must hold before the next wave begins: old pods gone, replacements ready, within ``timeout_seconds``."""

    gone: bool = True
    ready: bool = True
    timeout_seconds: Positive = 600


class WaveDocument(Document):
    """Moves that may all be under way at once, in any order.

    Parameters
    ----------
    tiers
        Value of each tier of the objective once the wave is over, in the order of `Plan.tiers`.
    peak
        Largest share of each node that is taken while the wave is under way, as a fraction by resource name, for the
        nodes that take part.
    cordon
        Nodes that have to be cordoned for as long as the wave lasts, and no longer.
    """

    number: Positive
    moves: Annotated[tuple[MoveDocument, ...], Field(min_length=1)]
    barrier: BarrierDocument = BarrierDocument()
    tiers: tuple[float, ...] = ()
    peak: Annotated[dict[str, dict[str, float]], Field(default_factory=dict)]
    cordon: tuple[str, ...] = ()


class TokenDocument(Document):
    """Number of replacements of an owner's pods that are to be placed on a node.

    Pods of one owner and template are interchangeable, so a replacement, whatever its name, takes any token of its
    owner. ``pod`` is set if the replacement keeps the name, or if the pod has no owner; then the token is for that pod
    alone.
    """

    wave: Positive
    namespace: Text
    owner_uid: str = ""
    template_hash: str = ""
    pod: str | None = None
    target: Text
    count: Positive = 1


class ImmovableDocument(Document):
    """A pod that the executor cannot move, and why."""

    pod: PodReference
    node: str
    reason: Text


class ProtectionDocument(Document):
    """A reason for which pods stay: how many, and by how much lower a tier could be without it.

    Parameters
    ----------
    reason
        What ``--may-move`` takes.
    tier, unit, gain
        The first tier that would be better; empty and 0 if no search found a better placement.
    proven
        Whether no placement brings more.
    """

    reason: Text
    pods: Number
    tier: str = ""
    unit: str = ""
    gain: float = 0.0
    proven: bool = False


class PlanTier(Document):
    """A tier of the objective: today, when the plan is done, and the proven bound."""

    name: str
    unit: str
    before: float
    after: float
    bound: float
    bound_by: str


class PlanSnapshot(Document):
    """The snapshot that the plan was made for."""

    fingerprint: str
    nodes: Number
    pods: Number


class Plan(Document):
    """A plan.

    Parameters
    ----------
    snapshot
        Snapshot that the plan was made for.
    settings, executor, limits
        How the plan was made.
    status
        ``OPTIMAL`` if every tier is proven optimal, else ``FEASIBLE``.
    tiers
        Each tier today and at the end of the plan, with its bound.
    waves
        The moves, in waves that follow each other.
    tokens
        Number of replacements of each owner to place on each node, by wave.
    immovable
        Pods that the executor cannot evict.
    protections
        Cost of each eviction restriction, on request.
    notes
        What a reader should know.
    id
        A DNS label; the same for the same snapshot, settings and moves.
    created_at, expires_at
        RFC 3339, UTC. Nothing may be begun after ``expires_at``.
    least_waves
        Lower bound on the number of waves of any plan for the same placement.
    gaps
        What the dump lacks although the cluster has it, and what therefore is not known.
    partial
        Whether the dump lacks pods, or what is free on nodes: who carries the plan out has to know better.
    given_up
        Moves of the best placement that are impossible in any order, one line each; the plan omits them.
    cordon
        Nodes to cordon before the first wave; they stay cordoned.
    steered
        Whether the plan needs an extender that steers replacements to their nodes.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Plan"] = "Plan"
    gaps: tuple[str, ...] = ()
    partial: bool = False
    id: PlanId
    created_at: Text
    expires_at: Text
    snapshot: PlanSnapshot
    settings: SettingsDocument
    executor: Executor | PlatformExecutor
    limits: LimitsDocument = LimitsDocument()
    status: str
    tiers: tuple[PlanTier, ...]
    waves: tuple[WaveDocument, ...]
    least_waves: Number
    tokens: tuple[TokenDocument, ...]
    immovable: tuple[ImmovableDocument, ...]
    protections: tuple[ProtectionDocument, ...] = ()
    given_up: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    steered: bool = True
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Plan {self.id}: {plural(len(self.moves), 'move')} in {plural(len(self.waves), 'wave')}, {self.status}>"
        )

    def _repr_html_(self) -> str:
        rows = [
            (wave.number, f"{move.pod.namespace}/{move.pod.name}", move.source or "", move.target or "")
            for wave in self.waves
            for move in wave.moves
        ]
        return html_table(repr(self).strip("<>"), rows, ("wave", "pod", "from", "to"))

    @property
    def moves(self) -> tuple[MoveDocument, ...]:
        """All moves, in order."""
        return tuple(move for wave in self.waves for move in wave.moves)

    @property
    def without_cluster(self) -> bool:
        """Whether it is of an operations platform, which has no Kubernetes."""
        return self.settings.release == PLATFORM_RELEASE

    @property
    def by(self) -> str:
        """Who carries it out, in a sentence."""
        return "the operations platform" if self.without_cluster else self.executor

    @property
    def cannot(self) -> str:
        """What cannot be done with pods that have to stay, in a sentence."""
        return f"{self.by} cannot {'move' if self.without_cluster else 'evict'}"

    def require_cluster(self) -> None:
        """Refuse to carry out in a cluster what was planned for machines without Kubernetes.

        Raises
        ------
        InputError
            If the plan is of an operations platform.
        """
        if self.without_cluster:
            problem = "is of an operations platform without Kubernetes; give its moves, -o json or csv, to the platform"
            raise InputError(problem, obj=self.id)

    def require_whole(self, partial: bool) -> None:
        """Refuse to carry out a plan of a dump that lacks pods, or what is free on nodes.

        Parameters
        ----------
        partial
            Whether the user wants it nevertheless.

        Raises
        ------
        InputError
            With the first thing that the dump lacks.
        """
        if self.partial and not partial:
            lacks = self.gaps[0] if self.gaps else "it lacks pods"
            raise InputError(f"was made from an incomplete dump: {lacks}; --partial goes on nevertheless", obj=self.id)
