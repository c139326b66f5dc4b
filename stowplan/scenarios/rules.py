"""Rules of pods that are dropped or relaxed, and nodes that pods must be on or must not be on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from stowplan.models.interning import freeze
from stowplan.models.kubernetes import Affinity, LabelSelector, NodeSelector, Pod, Toleration
from stowplan.models.kubernetes.pod import Container, NodeAffinity, PodAffinity, PodSpec, TopologySpreadConstraint
from stowplan.models.kubernetes.selectors import NodeOperator, NodeSelectorRequirement, NodeSelectorTerm
from stowplan.models.snapshot import Snapshot
from stowplan.scenarios.changes import Rule

HARD = "DoNotSchedule"
NODE_NAME = "metadata.name"

OPPOSITES: dict[str, NodeOperator] = {
    "In": "NotIn",
    "NotIn": "In",
    "Exists": "DoesNotExist",
    "DoesNotExist": "Exists",
}

Requirements = Sequence[NodeSelectorTerm]
"""Alternatives, each of which is to hold beside what a pod requires already."""


def drop_rule(snapshot: Snapshot, rule: Rule, holds: Callable[[Pod], bool]) -> Snapshot:
    """Return a snapshot in which pods no longer have a rule.

    Anti-affinity that other pods have toward them stays.

    Parameters
    ----------
    holds
        Whether a pod is one of those.
    """
    return with_specs(snapshot, holds, _DROPPED[rule])


def set_max_skew(
    snapshot: Snapshot, max_skew: int, holds: Callable[[Pod], bool], topology_key: str | None = None
) -> Snapshot:
    """Return a snapshot in which hard spread constraints of pods have another ``maxSkew``.

    Parameters
    ----------
    topology_key
        Of the constraints; ``None`` for all.
    """

    def changed(constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        concerned = constraint.when_unsatisfiable == HARD and topology_key in (None, constraint.topology_key)
        return replace(constraint, max_skew=max_skew) if concerned else constraint

    def relaxed(spec: PodSpec) -> PodSpec:
        return replace(spec, topology_spread_constraints=tuple(map(changed, spec.topology_spread_constraints)))

    return with_specs(snapshot, holds, relaxed)


def pin(snapshot: Snapshot, holds: Callable[[Pod], bool], to: Requirements) -> Snapshot:
    """Return a snapshot in which pods have to be on certain nodes.

    Parameters
    ----------
    to
        As `on_nodes`, `on_selected`, `off_nodes` or `off_selected` returns it.
    """
    return with_specs(snapshot, holds, lambda spec: replace(spec, affinity=requiring(spec.affinity, to)))


def on_nodes(names: Sequence[str]) -> Requirements:
    """Return that a node must be one of some."""
    return [NodeSelectorTerm(match_fields=(NodeSelectorRequirement(NODE_NAME, "In", (name,)),)) for name in names]


def on_selected(selector: LabelSelector) -> Requirements:
    """Return that a node must be one that a selector matches."""
    requirements = (NodeSelectorRequirement(one.key, one.operator, one.values) for one in selector.match_expressions)
    return [NodeSelectorTerm(match_expressions=tuple(requirements))]


def off_nodes(names: Sequence[str]) -> Requirements:
    """Return that a node must be none of some."""
    fields = (NodeSelectorRequirement(NODE_NAME, "NotIn", (name,)) for name in names)
    return [NodeSelectorTerm(match_fields=tuple(fields))]


def off_selected(selector: LabelSelector) -> Requirements:
    """Return that a node must be none that a selector matches: it fails one of the requirements."""
    return [
        NodeSelectorTerm((NodeSelectorRequirement(one.key, OPPOSITES[one.operator], one.values),))
        for one in selector.match_expressions
    ]


def requiring(affinity: Affinity | None, to: Requirements) -> Affinity:
    """Return an affinity that requires more of a node than it did: what it did, and one of some alternatives."""
    affinity = affinity or Affinity()
    own = affinity.node_affinity or NodeAffinity()
    terms = tuple(to)
    if own.required is not None:
        # Of terms one has to hold, and a term holds if all of its requirements do.
        terms = tuple(
            NodeSelectorTerm(
                (*term.match_expressions, *more.match_expressions), (*term.match_fields, *more.match_fields)
            )
            for term in own.required.node_selector_terms
            if not term.empty
            for more in to
        )
    return replace(affinity, node_affinity=replace(own, required=NodeSelector(terms)))


def with_specs(snapshot: Snapshot, holds: Callable[[Pod], bool], changed: Callable[[PodSpec], PodSpec]) -> Snapshot:
    """Return a snapshot with other specs of unfinished pods; pods whose spec stays equal stay the same objects."""

    def with_spec(pod: Pod) -> Pod:
        if pod.finished or not holds(pod):
            return pod
        spec = changed(pod.spec)
        return pod if spec == pod.spec else replace(pod, spec=spec)

    return replace(snapshot, pods=tuple(map(with_spec, snapshot.pods)))


def _without_spread(spec: PodSpec) -> PodSpec:
    soft = tuple(one for one in spec.topology_spread_constraints if one.when_unsatisfiable != HARD)
    return replace(spec, topology_spread_constraints=soft)


def _without_affinity(spec: PodSpec) -> PodSpec:
    own = spec.affinity
    return spec if own is None else _with_affinity(spec, replace(own, pod_affinity=_preferring(own.pod_affinity)))


def _without_anti_affinity(spec: PodSpec) -> PodSpec:
    own = spec.affinity
    if own is None:
        return spec
    return _with_affinity(spec, replace(own, pod_anti_affinity=_preferring(own.pod_anti_affinity)))


def _without_node_affinity(spec: PodSpec) -> PodSpec:
    spec = replace(spec, node_selector=freeze({}))
    own = spec.affinity
    if own is None:
        return spec
    nodes = own.node_affinity
    preferred = replace(nodes, required=None) if nodes is not None and nodes.preferred else None
    return _with_affinity(spec, replace(own, node_affinity=preferred))


def _preferring(affinity: PodAffinity | None) -> PodAffinity | None:
    """Return what pods prefer, without what they require."""
    return replace(affinity, required=()) if affinity is not None and affinity.preferred else None


def _with_affinity(spec: PodSpec, affinity: Affinity) -> PodSpec:
    return replace(spec, affinity=None if affinity == Affinity() else affinity)


def _tolerating(spec: PodSpec) -> PodSpec:
    everything = Toleration(operator="Exists")
    return spec if everything in spec.tolerations else replace(spec, tolerations=(*spec.tolerations, everything))


def _without_host_ports(spec: PodSpec) -> PodSpec:
    def free(container: Container) -> Container:
        return replace(container, ports=tuple(replace(port, host_port=None) for port in container.ports))

    return replace(
        spec,
        containers=tuple(map(free, spec.containers)),
        init_containers=tuple(map(free, spec.init_containers)),
    )


def _without_gates(spec: PodSpec) -> PodSpec:
    return replace(spec, scheduling_gates=())


_DROPPED: dict[Rule, Callable[[PodSpec], PodSpec]] = {
    "spread": _without_spread,
    "anti-affinity": _without_anti_affinity,
    "affinity": _without_affinity,
    "node-affinity": _without_node_affinity,
    "taints": _tolerating,
    "host-ports": _without_host_ports,
    "gates": _without_gates,
}
