"""The solution document: the node of every pod that is free to move, with values and bounds."""

from __future__ import annotations

from typing import Literal

from stowplan.models.document import API_VERSION, Document
from stowplan.models.settings import SettingsDocument


class TierPartDocument(Document):
    """What one plugin or one setting adds to a tier today and in the answer; ``change`` is the difference."""

    name: str
    today: float
    value: float
    change: float


class TierDocument(Document):
    """A tier: its value, what is proven, and how. ``bound`` holds given what the tiers above reached.

    Parameters
    ----------
    before
        Its value today; null in documents of older versions.
    improvement
        At least this share of the possible improvement over today is reached; null where a tier above differs from
        today, or where nothing can improve.
    """

    name: str
    unit: str
    value: float
    bound: float
    gap: float
    status: str
    bound_by: str
    before: float | None = None
    improvement: float | None = None
    parts: tuple[TierPartDocument, ...] = ()


class PodsDocument(Document):
    """Number of pods of each participation, and why; ``placed + pending + fixed + finished = total``."""

    total: int
    placed: int
    pending: int
    fixed: int
    finished: int
    fixed_because: dict[str, int]
    pending_because: dict[str, int]


class SnapshotDocument(Document):
    """Which snapshot an answer is about.

    Parameters
    ----------
    gaps
        What it lacks although the cluster has it, and what therefore is not known.
    """

    gaps: tuple[str, ...] = ()
    nodes: int
    pods: PodsDocument
    fingerprint: str
    notes: tuple[str, ...] = ()


class PlacementDocument(Document):
    """Node of one pod in the solution; ``source`` is its node today, ``why_not`` the reason if it is unscheduled.

    ``loses`` is what is gone for good if the pod moves: data on its node, the work of a Job's pod.
    """

    namespace: str
    name: str
    uid: str = ""
    source: str | None = None
    node: str | None = None
    why_not: str | None = None
    loses: tuple[str, ...] = ()


class ViolationDocument(Document):
    """A place where a rule is violated, now and in the snapshot (``before``)."""

    rule: str
    place: str
    amount: int
    before: int


class RefusalDocument(Document):
    """A pod that the filters would not admit to its node."""

    namespace: str
    name: str
    node: str
    plugin: str
    reasons: tuple[str, ...]


class SolutionDocument(Document):
    """A solution: one entry for every pod that is free to move.

    Parameters
    ----------
    snapshot
        Snapshot that the solution was found for.
    settings
        Settings that it was found with.
    status
        ``OPTIMAL`` if every tier is proven optimal, else ``FEASIBLE``.
    interrupted
        Whether a stop signal ended the search.
    seconds
        Duration of the solve.
    moves
        Number of moves.
    tiers
        Value and bound of each tier.
    placements
        Node of each pod that is free to move.
    violations
        Constraint violations of the placement.
    refused
        Pods that the filters would not admit to their node, neither in the solution nor today.
    notes
        What a reader should know.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Solution"] = "Solution"
    snapshot: SnapshotDocument
    settings: SettingsDocument
    status: str
    interrupted: bool
    seconds: float
    moves: int
    tiers: tuple[TierDocument, ...]
    placements: tuple[PlacementDocument, ...]
    violations: tuple[ViolationDocument, ...]
    refused: tuple[RefusalDocument, ...]
    notes: tuple[str, ...]
