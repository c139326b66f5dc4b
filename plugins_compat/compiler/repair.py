"""Which standing violations are worth moves: the others are tolerated where they are, and nowhere else.

kube-scheduler asks its filters once, when a pod is placed. What was true then may be true no more: a node was cordoned
or tainted, labels changed. Kubernetes evicts no pod for that, except by NoExecute taints. So an objective says which
kinds of violations it repairs, and rules of all other kinds are relaxed here so that they hold today:

- Masks of nodes (cordons, taints, node affinity) allow a pod the node that it is on. A pod that a cordon or taint
  would refuse where it is has a signature of its own for each node (`standing_apart`), so its equals elsewhere are
  still refused there.
- Limits, spread, and anti-affinity are relaxed where they are violated, as far as they are. Pods that would come there
  anew are still refused by the filters, which check every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.kubernetes.taints import Taint, tolerated
from stowplan.models.node_health import NOT_READY, UNREACHABLE, dead_by, dead_nodes
from stowplan.models.objective import RepairKind
from stowplan.models.problem import Allow, AtMost, Attract, Capacity, Origin, Repel, Rule, Spread, Topology
from stowplan.models.snapshot import Snapshot
from stowplan.models.words import plural
from stowplan.plugins_compat.framework.view import View

CORDON_TAINT = "node.kubernetes.io/unschedulable"
DEAD_NODE = "dead node"
"""Plugin name of the rule that keeps pods off dead nodes; its violations are always repaired."""

OF_PODS: Collection[RepairKind] = ("cordons", "taints", "no-execute", "node-affinity")
"""Kinds of violations that are counted in pods; others are counted in nodes or domains."""

_KINDS: Mapping[str, RepairKind] = {
    "NodeResourcesFit": "overcommit",
    "NodePorts": "host-ports",
    "PodTopologySpread": "spread",
    "NodeAffinity": "node-affinity",
    "NodeUnschedulable": "cordons",
}


@dataclass(frozen=True, eq=False)
class Standing:
    """Where the pods that are free to move are today.

    Parameters
    ----------
    signature, node, count
        ``[i]`` so many pods of a signature are on a node.
    shape
        Number of signatures and of nodes.
    """

    signature: Ints
    node: Ints
    count: Ints
    shape: tuple[int, int]

    @cached_property
    def table(self) -> Ints:
        """``[s, n]`` the same as a table."""
        found = np.zeros(self.shape, dtype=np.int64)
        found[self.signature, self.node] = self.count
        return found


@dataclass(frozen=True, eq=False)
class Tolerating:
    """Rules that hold today but for the kinds to be repaired, and what was tolerated.

    Parameters
    ----------
    tolerated
        Number of pods or places with violations, by kind.
    """

    rules: Sequence[Rule]
    tolerated: Mapping[RepairKind, int]

    @property
    def notes(self) -> list[str]:
        """What the answer leaves as it is, in words."""
        if not self.tolerated:
            return []
        counts = ", ".join(
            f"{kind} ({plural(count, 'movable pod' if kind in OF_PODS else 'place')})"
            for kind, count in self.tolerated.items()
        )
        return [f"standing violations that the objective does not repair: {counts}"]


def is_repaired(plugin: str, repair: Collection[RepairKind]) -> bool:
    """Whether a pod that a filter would refuse where it is would be worth a move, if it could move."""
    if plugin == "InterPodAffinity":
        return bool({"anti-affinity", "affinity"} & set(repair))
    if plugin == "TaintToleration":
        return "taints" in repair
    kind = _KINDS.get(plugin)
    return kind is None or kind in repair


def standing_apart(snapshot: Snapshot) -> Callable[[Pod], Hashable]:
    """Return what tells apart pods that a cordon or a taint would refuse on their own node: the node."""
    hard = {node.name: taints for node in snapshot.nodes if (taints := _hard(node))}

    def apart(pod: Pod) -> Hashable:
        taints = hard.get(pod.node_name)
        return pod.node_name if taints and _untolerated(pod, taints) else None

    return apart if hard else lambda pod: None


def dead_node_rule(snapshot: Snapshot, signatures: int) -> Iterator[Rule]:
    """Yield the rule that no pod is on a dead node; what is there is a violation, whatever the pod tolerates."""
    dead = dead_nodes(snapshot)
    if dead and signatures:
        alive = np.array([[node.name not in dead for node in snapshot.nodes]], dtype=np.bool_)
        yield Allow(Origin(DEAD_NODE, "pods endangered"), np.zeros(signatures, dtype=np.int64), alive)


def tolerate(
    rules: Sequence[Rule], view: View, start: Standing, repair: Collection[RepairKind], drained: Collection[str] = ()
) -> Tolerating:
    """Relax the rules of the kinds that are not to be repaired so that they hold today.

    Parameters
    ----------
    repair
        Kinds to be repaired.
    drained
        Names of nodes whose pods are to leave anyway; they are not counted.
    """
    found: list[Rule] = []
    counted: dict[RepairKind, int] = {}
    for rule in rules:
        if isinstance(rule, Allow):
            relaxed, kinds = _allow(rule, view, start, repair, drained)
        else:
            relaxed, kinds = _relaxed(rule, start, repair)
        found += relaxed
        for kind, count in kinds.items():
            counted[kind] = counted.get(kind, 0) + count
    return Tolerating(found, counted)


def _relaxed(
    rule: Rule, standing: Standing, repair: Collection[RepairKind]
) -> tuple[list[Rule], dict[RepairKind, int]]:
    kind = _kind(rule)
    if kind is None or kind in repair:
        return [rule], {}
    start = standing.table
    match rule:
        case Capacity():
            load = rule.demand @ start
            over = int((load > np.maximum(0, rule.free)).sum())
            made: list[Rule] = [replace(rule, free=np.maximum(rule.free, load)) if over else rule]
        case AtMost():
            made, over = _at_most(rule, start)
        case Repel():
            made, over = _repel(rule, start)
        case Attract():
            made, over = _attract(rule, start)
        case Spread():
            made, over = _spread(rule, start)
        case _:
            made, over = [rule], 0
    return made, {kind: over} if over else {}


def _kind(rule: Rule) -> RepairKind | None:
    plugin = rule.origin.plugin
    if plugin == "InterPodAffinity":
        return "anti-affinity" if isinstance(rule, Repel) else "affinity"
    return _KINDS.get(plugin)


# -- masks of nodes -----------------------------------------------------------------------------------------------


def _allow(
    rule: Allow, view: View, start: Standing, repair: Collection[RepairKind], drained: Collection[str]
) -> tuple[list[Rule], dict[RepairKind, int]]:
    counted: dict[RepairKind, int] = {}
    row, more = rule.row.copy(), []
    for i in np.flatnonzero(~rule.mask[rule.row[start.signature], start.node]).tolist():
        s, n = int(start.signature[i]), int(start.node[i])
        node = view.state.nodes[n]
        kind = _tolerable(rule, view.signatures[s].pod, node, repair)
        if kind is None:
            continue
        if row[s] < len(rule.mask):
            more.append(rule.mask[row[s]].copy())
            row[s] = len(rule.mask) + len(more) - 1
        more[row[s] - len(rule.mask)][n] = True
        if kind and node.name not in drained:
            counted[kind] = counted.get(kind, 0) + int(start.count[i])
    if not more:
        return [rule], {}
    return [replace(rule, row=row, mask=np.concatenate([rule.mask, np.array(more)]))], counted


def _tolerable(rule: Allow, pod: Pod, node: Node, repair: Collection[RepairKind]) -> RepairKind | Literal[""] | None:
    """Return why a pod may stay on a node that a mask forbids: the kind left out; empty if another rule says it."""
    plugin = rule.origin.plugin
    if plugin == "TaintToleration":
        kinds = {kind for taint in _untolerated(pod, _hard_taints(node)) if (kind := _taint_kind(taint, node))}
        if not kinds:
            return ""
        return None if kinds & set(repair) else min(kinds)
    kind = _KINDS.get(plugin)
    return None if kind is None or kind in repair else kind


def _taint_kind(taint: Taint, node: Node) -> RepairKind | None:
    """Return the kind of violation of a taint that a pod does not tolerate; none if another rule has it."""
    if taint.key == CORDON_TAINT:
        return None if node.unschedulable else "cordons"
    if taint.key in (NOT_READY, UNREACHABLE) and dead_by(node):
        return None
    return "no-execute" if taint.effect == "NoExecute" else "taints"


def _hard(node: Node) -> tuple[Taint, ...]:
    """Return the taints that keep pods off a node, and the one that a cordon brings."""
    cordon = (Taint(CORDON_TAINT, "NoSchedule"),) if node.unschedulable else ()
    return (*_hard_taints(node), *cordon)


def _hard_taints(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.taints if taint.effect != "PreferNoSchedule")


def _untolerated(pod: Pod, taints: Sequence[Taint]) -> list[Taint]:
    return [taint for taint in taints if not tolerated(taint, pod.spec.tolerations)]


# -- relations ----------------------------------------------------------------------------------------------------


def _at_most(rule: AtMost, start: Ints) -> tuple[list[Rule], int]:
    count = rule.topology.total(start[rule.group].sum(axis=0)) + rule.held
    over = count > rule.limit
    if not over.any():
        return [rule], 0
    parts = [(~over, rule.limit), *((over & (count == k), k) for k in np.unique(count[over]).tolist())]
    made: list[Rule] = [
        replace(rule, topology=_only(rule.topology, domains), limit=limit, held=rule.held[domains])
        for domains, limit in parts
        if domains.any()
    ]
    return made, int(over.sum())


def _repel(rule: Repel, start: Ints) -> tuple[list[Rule], int]:
    seekers, targets, both = _both_counts(rule, start)
    # A pod that is seeker and target does not repel itself.
    conflict = (seekers > 0) & (targets > 0) & ~((both == 1) & (seekers == 1) & (targets == 1))
    if not conflict.any():
        return [rule], 0
    kept: list[Rule] = [replace(rule, topology=_only(rule.topology, ~conflict))]
    return ([] if conflict.all() else kept), int(conflict.sum())


def _both_counts(rule: Repel, start: Ints) -> tuple[Ints, Ints, Ints]:
    """``[d]`` seekers, targets, and pods that are both in each domain, fixed ones included."""
    total, held = rule.topology.total, rule.held
    shared = np.intersect1d(rule.seekers, rule.targets)
    seekers = total(start[rule.seekers].sum(axis=0) + held.both + held.seekers)
    targets = total(start[rule.targets].sum(axis=0) + held.both + held.targets)
    return seekers, targets, total(start[shared].sum(axis=0) + held.both)


def _attract(rule: Attract, start: Ints) -> tuple[list[Rule], int]:
    """Leave out the seekers of which a pod is alone today."""
    held = rule.held
    targets = start[rule.targets].sum(axis=0) + held.both + held.targets
    alone = []
    for s in rule.seekers.tolist():
        here = start[s] > 0
        own = 1 if s in rule.targets else 0
        if own and targets.sum() == 1:
            continue  # the first of its kind
        for topology in rule.topologies:
            domain = topology.domain
            enough = np.zeros(len(here), dtype=np.bool_)
            inside = domain >= 0
            enough[inside] = topology.total(targets)[domain[inside]] > own
            if (here & ~enough).any():
                alone.append(s)
                break
    if not alone:
        return [rule], 0
    seekers = np.setdiff1d(rule.seekers, np.array(alone, dtype=np.int64))
    return ([replace(rule, seekers=seekers)] if len(seekers) else []), len(alone)


def _spread(rule: Spread, start: Ints) -> tuple[list[Rule], int]:
    count = rule.topology.total(start[rule.counted].sum(axis=0)) + rule.held_counted
    seeking = rule.topology.total(start[rule.seekers].sum(axis=0)) + rule.held_seekers > 0
    if not seeking.any():
        return [rule], 0
    least = 0 if rule.floor_is_zero else int(count.min(initial=0))
    skew = np.where(seeking, count - least, 0)
    over = int((skew > rule.max_skew).sum())
    return [replace(rule, max_skew=max(rule.max_skew, int(skew.max())))], over


def _only(topology: Topology, domains: Bools) -> Topology:
    """Return a topology with some of its domains; nodes of the others are in none."""
    position = np.cumsum(domains) - 1
    inside = topology.domain >= 0
    domain = np.full(len(topology.domain), -1, dtype=np.int64)
    kept = inside.copy()
    kept[inside] = domains[topology.domain[inside]]
    domain[kept] = position[topology.domain[kept]]
    names = tuple(name for name, keep in zip(topology.names, domains.tolist(), strict=True) if keep)
    return Topology(topology.key, domain, names)
