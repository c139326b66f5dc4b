"""The documents of ``drain`` and ``fit``: an answer, and the plan."""

from __future__ import annotations

from typing import Literal

from stowplan.models.document import API_VERSION, Document
from stowplan.models.plan import Plan, PodReference
from stowplan.planning.drain import Drained
from stowplan.planning.fit import Fitted
from stowplan.plans.document import reference


class StaysDocument(Document):
    """A pod that stays on a node to drain; ``by_rule`` if it cannot or must not be evicted."""

    pod: PodReference
    node: str
    reason: str
    by_rule: bool


class DrainDocument(Document):
    """A drain: whether the nodes are empty at the end of the plan, which pods stay, and what proves that they must."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Drain"] = "Drain"
    nodes: tuple[str, ...]
    possible: bool
    proof: str | None
    stays: tuple[StaysDocument, ...]
    ignored: dict[str, int]
    plan: Plan


class UnscheduledPodDocument(Document):
    """A pod that stays unscheduled, and why."""

    pod: PodReference
    reason: str


class FitDocument(Document):
    """A fit: whether all pods are scheduled, which are not, and what proves that they cannot be."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Fit"] = "Fit"
    wanted: tuple[PodReference, ...]
    possible: bool
    proof: str | None
    unscheduled: tuple[UnscheduledPodDocument, ...]
    plan: Plan


def drain_document(drained: Drained) -> DrainDocument:
    """Describe a drain."""
    return DrainDocument(
        nodes=tuple(drained.nodes),
        possible=drained.possible,
        proof=None if drained.possible else drained.proof or None,
        stays=tuple(
            StaysDocument(pod=reference(s.pod), node=s.pod.node_name, reason=s.reason, by_rule=s.by_rule)
            for s in drained.stays
        ),
        ignored=dict(drained.ignored),
        plan=drained.planned.plan,
    )


def fit_document(fitted: Fitted) -> FitDocument:
    """Describe a fit."""
    return FitDocument(
        wanted=tuple(reference(pod) for pod in fitted.wanted),
        possible=fitted.possible,
        proof=None if fitted.possible else fitted.proof or None,
        unscheduled=tuple(
            UnscheduledPodDocument(pod=reference(unscheduled.pod), reason=unscheduled.reason)
            for unscheduled in fitted.unscheduled
        ),
        plan=fitted.planned.plan,
    )
