"""Pins that the script of ``emit --to pin`` left on pods, which say nothing of what the pods' owners want."""

from __future__ import annotations

from dataclasses import replace

from stowplan.models.interning import FrozenMap
from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.pod import Affinity, NodeAffinity
from stowplan.models.kubernetes.selectors import NodeSelector, NodeSelectorTerm

TOKEN = "stowplan.io/token"
"""The label of pods that a plan has pinned, until what it left is taken off."""
PINNED_BY = "stowplan.io/pinned-by"
"""The annotation of pods that a plan has pinned, after the label was taken off: the affinity stays."""


def without_pin(pod: Pod) -> Pod:
    """Return a pod as its controller made it, without the node that a plan chose for it.

    The script adds ``metadata.name In [node]`` as the last of ``matchFields`` to each required term, or makes a term
    of it alone. A bound pod keeps both for as long as it lives, since the API server changes no affinity of a pod that
    has a node; its replacement has neither. Of a pod that still waits the pin counts: kube-scheduler obeys it.
    """
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if not pod.node_name or (TOKEN not in labels and PINNED_BY not in annotations):
        return pod
    metadata = replace(pod.metadata, labels=_less(labels, TOKEN), annotations=_less(annotations, PINNED_BY))
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    if affinity is None or affinity.node_affinity is None or required is None:
        return replace(pod, metadata=metadata)
    terms = required.node_selector_terms
    if not terms or not all(_ends_with_pin(term, pod.node_name) for term in terms):
        return replace(pod, metadata=metadata)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, affinity=_without(affinity, terms)))


def _less(content: FrozenMap[str], key: str) -> FrozenMap[str]:
    return FrozenMap({name: value for name, value in content.items() if name != key})


def _ends_with_pin(term: NodeSelectorTerm, node: str) -> bool:
    last = term.match_fields[-1] if term.match_fields else None
    return last is not None and (last.key, last.operator, last.values) == ("metadata.name", "In", (node,))


def _without(affinity: Affinity, terms: tuple[NodeSelectorTerm, ...]) -> Affinity | None:
    """Return what is left of an affinity without the last field of each required term; ``None`` if nothing is."""
    assert affinity.node_affinity is not None
    left = tuple(replace(term, match_fields=term.match_fields[:-1]) for term in terms)
    alone = len(left) == 1 and left[0].empty
    required = None if alone else NodeSelector(node_selector_terms=left)
    preferred = affinity.node_affinity.preferred
    node_affinity = NodeAffinity(required=required, preferred=preferred) if required or preferred else None
    if node_affinity is None and affinity.pod_affinity is None and affinity.pod_anti_affinity is None:
        return None
    return replace(affinity, node_affinity=node_affinity)
