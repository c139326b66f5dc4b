"""The documents of ``explain``: a pod, a node, or all pending pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from stowplan.documents.solution import snapshot_document
from stowplan.explaining.conflict import BlockingRule, Conflict
from stowplan.explaining.node import NodeExplanation
from stowplan.explaining.pending import PendingExplanation
from stowplan.explaining.placing import Difference, SingleMove
from stowplan.explaining.pod import PodExplanation
from stowplan.models.document import API_VERSION, Document
from stowplan.models.plan import PodReference
from stowplan.models.solution import SnapshotDocument
from stowplan.plans.document import reference


class NodeResultDocument(Document):
    """What kube-scheduler says of the pod on a node: the first filter that refuses it, or its weighted scores."""

    node: str
    admitted: bool
    plugin: str | None
    reasons: tuple[str, ...]
    scores: dict[str, float] | None
    total: float | None


class BlockingRuleDocument(Document):
    """A rule of a conflict: the nodes that it keeps the pod off, and those that are won without it.

    ``asked`` and ``left`` are of a capacity, in the scheduler's units: what the pod asks for, and the most that is left
    on a node.
    """

    rule: str
    nodes: tuple[str, ...]
    only_this: tuple[str, ...]
    asked: int | None = None
    left: int | None = None
    max_skew: int | None = None


class ConflictDocument(Document):
    """A set of rules that keep the pod off all nodes; ``by``: rules of the model, or filters as a whole.

    ``minimal`` says whether it is known that all of them are needed.
    """

    by: Literal["rules", "filters"]
    minimal: bool
    rules: tuple[BlockingRuleDocument, ...]


class RelaxationDocument(Document):
    """Changes after which the filters admit the pod to a node; ``minimal``: all of them are known to be needed."""

    changes: tuple[str, ...]
    node: str
    victims: tuple[str, ...]
    minimal: bool


class PartDifferenceDocument(Document):
    """By how much a plugin or a setting adds more to an objective after than before, in the objective's unit."""

    name: str
    difference: float


class DifferenceDocument(Document):
    """An objective of which two placements differ, in its unit; less is better."""

    objective: str
    unit: str
    before: float
    after: float
    parts: tuple[PartDifferenceDocument, ...]


class SingleMoveDocument(Document):
    """The best legal placement in which the pod alone has another node."""

    node: str
    better: bool
    differences: tuple[DifferenceDocument, ...]
    tried: int
    admitting: int


class BestPlacementDocument(Document):
    """Where the best placement has the pod.

    ``instead`` is the node that the pod has today, or that kube-scheduler takes; ``differences`` say what the best
    placement changes over itself with the pod there, and ``broken`` which rules that would break.
    """

    status: str
    node: str | None
    moves_of_others: int
    instead: str | None
    differences: tuple[DifferenceDocument, ...]
    broken: tuple[str, ...]


class PodExplanationDocument(Document):
    """What is known about one pod and every node."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["PodExplanation"] = "PodExplanation"
    snapshot: SnapshotDocument
    release: str
    pod: PodReference
    node: str | None
    participation: str
    reason: str
    message: str
    scheduler_node: str | None
    tied: tuple[str, ...]
    weights: dict[str, int]
    results: tuple[NodeResultDocument, ...]
    conflict: ConflictDocument | None
    relaxations: tuple[RelaxationDocument, ...]
    untried: tuple[str, ...]
    interrupted: bool
    refusing: tuple[str, ...]
    single_move: SingleMoveDocument | None
    best: BestPlacementDocument | None


class OccupantDocument(Document):
    """A pod on the node: where it goes, or why it stays; ``by_rule`` if it cannot or must not be evicted."""

    pod: PodReference
    admitting: int
    target: str | None
    reason: str
    by_rule: bool


class NodeExplanationDocument(Document):
    """Whether a node can be emptied, what proves that it cannot, and what becomes of each pod."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["NodeExplanation"] = "NodeExplanation"
    snapshot: SnapshotDocument
    node: str
    possible: bool
    proof: str | None
    occupants: tuple[OccupantDocument, ...]
    ignored: dict[str, int]


class FirstBrokenDocument(Document):
    """A filter that refuses pending pods first: on how many pairs of pod and node, pods, and pods on all nodes."""

    plugin: str
    reason: str
    nodes: int
    pods: int
    alone: int


class PendingExplanationDocument(Document):
    """What refuses the pending pods first; ``admitted`` counts those that some node admits."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["PendingExplanation"] = "PendingExplanation"
    snapshot: SnapshotDocument
    pending: int
    admitted: int
    broken: tuple[FirstBrokenDocument, ...]


def pod_document(told: PodExplanation) -> PodExplanationDocument:
    """Describe the explanation of a pod."""
    compiled = told.compiled
    return PodExplanationDocument(
        snapshot=snapshot_document(compiled),
        release=compiled.profile.release.name,
        pod=reference(told.pod),
        node=told.pod.node_name or None,
        participation=told.participation.value,
        reason=told.reason,
        message=told.message,
        scheduler_node=told.greedy,
        tied=tuple(told.tied),
        weights=told.weights,
        results=tuple(
            NodeResultDocument(
                node=result.node,
                admitted=result.admitted,
                plugin=result.plugin or None,
                reasons=tuple(result.reasons),
                scores=None if result.scores is None else dict(result.scores),
                total=result.total,
            )
            for result in told.results
        ),
        conflict=None if told.conflict is None else _conflict(told.conflict, compiled.problem.nodes),
        relaxations=tuple(
            RelaxationDocument(
                changes=tuple(one.changes), node=one.node, victims=tuple(one.victims), minimal=one.minimal
            )
            for one in told.relaxations
        ),
        untried=tuple(told.untried),
        interrupted=told.interrupted,
        refusing=tuple(told.refusing),
        single_move=None if told.single is None else _single(told.single),
        best=_best(told),
    )


def _conflict(conflict: Conflict, names: Sequence[str]) -> ConflictDocument:
    def described(rule: BlockingRule) -> BlockingRuleDocument:
        return BlockingRuleDocument(
            rule=str(rule.origin),
            nodes=tuple(name for name, blocked in zip(names, rule.blocks, strict=True) if blocked),
            only_this=tuple(names[n] for n in conflict.alone(rule).tolist()),
            asked=rule.asked,
            left=rule.left,
            max_skew=rule.max_skew,
        )

    return ConflictDocument(
        by="filters" if conflict.by_filters else "rules",
        minimal=conflict.minimal,
        rules=tuple(map(described, conflict.rules)),
    )


def _single(single: SingleMove) -> SingleMoveDocument:
    return SingleMoveDocument(
        node=single.node,
        better=single.better,
        differences=_differences(single.differences),
        tried=single.tried,
        admitting=single.admitting,
    )


def _best(told: PodExplanation) -> BestPlacementDocument | None:
    if told.solution is None:
        return None
    other = told.instead
    return BestPlacementDocument(
        status=told.solution.status.value,
        node=told.placed,
        moves_of_others=told.moves_of_others,
        instead=other and other.node,
        differences=_differences(other.differences if other else ()),
        broken=tuple(f"{one.origin} on {one.place}" for one in (other.broken if other else ())),
    )


def _differences(found: Sequence[Difference]) -> tuple[DifferenceDocument, ...]:
    return tuple(
        DifferenceDocument(
            objective=one.tier.name,
            unit=one.tier.unit,
            before=one.tier.shown(one.before),
            after=one.tier.shown(one.after),
            parts=tuple(
                PartDifferenceDocument(name=part.name, difference=one.tier.shown_difference(part.change))
                for part in one.parts
            ),
        )
        for one in found
    )


def node_document(told: NodeExplanation) -> NodeExplanationDocument:
    """Describe the explanation of a node."""
    drained = told.drained
    return NodeExplanationDocument(
        snapshot=snapshot_document(drained.planned.compiled),
        node=told.node,
        possible=drained.possible,
        proof=None if drained.possible else drained.proof or None,
        occupants=tuple(
            OccupantDocument(
                pod=reference(one.pod),
                admitting=one.admitting,
                target=one.target,
                reason=one.reason,
                by_rule=one.by_rule,
            )
            for one in told.occupants
        ),
        ignored=dict(drained.ignored),
    )


def pending_document(told: PendingExplanation) -> PendingExplanationDocument:
    """Describe what refuses the pending pods."""
    return PendingExplanationDocument(
        snapshot=snapshot_document(told.compiled),
        pending=len(told.pending),
        admitted=len(told.admitted),
        broken=tuple(
            FirstBrokenDocument(plugin=one.plugin, reason=one.reason, nodes=one.nodes, pods=one.pods, alone=one.alone)
            for one in told.broken
        ),
    )
