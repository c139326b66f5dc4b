"""Which nodes a selector selects, as masks over all nodes.

A requirement is evaluated once for each distinct value of its label, then spread over the nodes.
"""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.models.interning import FrozenMap
from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState


def everywhere(state: ClusterState) -> Bools:
    """Return the mask of all nodes."""
    return np.ones(state.size, dtype=np.bool_)


def with_labels(state: ClusterState, labels: FrozenMap[str]) -> Bools:
    """Return the nodes that carry all of these labels."""
    mask = everywhere(state)
    for key, value in labels.items():
        topology = state.topology(key)
        mask &= (topology.domain == topology.names.index(value)) if value in topology.names else False
    return mask


def with_keys(state: ClusterState, keys: set[str]) -> Bools:
    """Return the nodes that carry all of these label keys."""
    mask = everywhere(state)
    for key in keys:
        mask &= state.topology(key).domain >= 0
    return mask


def selected(state: ClusterState, selector: NodeSelector, *, fields: bool = True) -> Bools:
    """Return the nodes that some term of the selector selects; without ``fields``, by their labels alone."""
    mask = np.zeros(state.size, dtype=np.bool_)
    for term in selector.node_selector_terms:
        mask |= matching(state, term, fields=fields)
    return mask


def matching(state: ClusterState, term: NodeSelectorTerm, *, fields: bool = True) -> Bools:
    """Return the nodes that a term selects; an empty or unusable term selects none.

    Parameters
    ----------
    fields
        ``False`` lets every node meet the term's requirements on fields.
    """
    if term.empty or not term.valid:
        return np.zeros(state.size, dtype=np.bool_)
    mask = everywhere(state)
    for requirement in term.match_expressions:
        mask &= _labeled(state, requirement)
    for requirement in term.match_fields if fields else ():
        mask &= np.array([requirement.matches(node.name) for node in state.nodes], dtype=np.bool_)
    return mask


def required_selector(pod: Pod) -> NodeSelector | None:
    """Return the pod's required node affinity, if it has one."""
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def required_nodes(state: ClusterState, signature: Signature) -> Bools:
    """Return the nodes that the node selector and the required node affinity of a signature both select."""

    def make() -> Bools:
        mask = with_labels(state, signature.pod.spec.node_selector)
        required = required_selector(signature.pod)
        return mask if required is None else mask & selected(state, required)

    return state.memo(("required nodes", signature), make)


def _labeled(state: ClusterState, requirement: NodeSelectorRequirement) -> Bools:
    topology = state.topology(requirement.key)
    # One answer a value, and a last one (index -1) for nodes without the label.
    answers = [requirement.matches(value) for value in topology.names] + [requirement.matches(None)]
    mask: Bools = np.array(answers, dtype=np.bool_)[topology.domain]
    return mask
