"""The solution document: for every pod that is free to move, where it goes, and how good that is known to be."""

from __future__ import annotations

from typing import Literal

from stowplan.models.document import API_VERSION, Document
from stowplan.models.settings import SettingsDocument


class TierDocument(Document):
    """A tier: its value, what is proven, and how. ``bound`` holds given what the tiers above reached."""

    name: str
    unit: str
    value: float
    bound: float
    gap: float
    status: str
    bound_by: str


class PodsDocument(Document):
    """How many pods have which standing, and why; ``placed + pending + fixed + finished = total``."""

    total: int
    placed: int
    pending: int
    fixed: int
    finished: int
    fixed_because: dict[str, int]
    pending_because: dict[str, int]


class SnapshotDocument(Document):
    """Which snapshot an answer is about."""

    nodes: int
    pods: PodsDocument
    fingerprint: str
    notes: tuple[str, ...] = ()


class PlacementDocument(Document):
    """Where one pod goes: ``source`` is where it stands today; ``why_not`` is what keeps it from having a node."""

    namespace: str
    name: str
    uid: str = ""
    source: str | None = None
    node: str | None = None
    why_not: str | None = None


class ViolationDocument(Document):
    """A place where a rule is exceeded."""

    rule: str
    place: str
    amount: int
    before: int


class RefusalDocument(Document):
    """A pod that the filters would not admit where it stands."""

    namespace: str
    name: str
    node: str
    plugin: str
    reasons: tuple[str, ...]


class SolutionDocument(Document):
    """A solution: one entry for every pod that is free to move."""

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
