"""Which pods and which nodes the words of a scenario name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from stowplan.models.errors import InputError
from stowplan.models.kubernetes import LabelSelector, Node, Pod
from stowplan.models.kubernetes.selectors import LabelSelectorRequirement, parse_selector
from stowplan.models.move_limits import read_pods
from stowplan.models.snapshot import Snapshot
from stowplan.scenarios.changes import SHORT
from stowplan.settings.pod_groups import membership, owners_of


def topology_key(snapshot: Snapshot, word: str) -> str:
    """Return the label that a word means: itself, unless it is short for another and no node has it."""
    return SHORT[word] if word in SHORT and not any(word in node.labels for node in snapshot.nodes) else word


def node_selector(snapshot: Snapshot, word: str) -> LabelSelector:
    """Return a selector of nodes.

    Raises
    ------
    InputError
        If the word is none.
    """
    try:
        selector = parse_selector(word)
    except ValueError as error:
        raise InputError(str(error)) from None
    return LabelSelector(match_expressions=tuple(_in_full(snapshot, one) for one in selector.match_expressions))


def _in_full(snapshot: Snapshot, requirement: LabelSelectorRequirement) -> LabelSelectorRequirement:
    return replace(requirement, key=topology_key(snapshot, requirement.key))


def nodes_of(snapshot: Snapshot, word: str) -> Sequence[Node]:
    """Return the nodes that a word names: one by its name, or those that a label selector matches.

    Raises
    ------
    InputError
        If there is none.
    """
    if word in snapshot.node_index:
        return [snapshot.nodes[snapshot.node_index[word]]]
    selector = node_selector(snapshot, word)
    found = [node for node in snapshot.nodes if selector.matches(node.labels)]
    if not found:
        raise InputError(f"{word!r} is no node of the snapshot, and no label selector that matches one")
    return found


def of_pods(snapshot: Snapshot, word: str | None) -> Callable[[Pod], bool]:
    """Return whether a pod is one of those that a word names; ``None`` names all.

    Raises
    ------
    InputError
        If no pod is.
    """
    if word is None:
        return lambda pod: True
    try:
        holds = membership(read_pods(word), owners_of(snapshot))
    except ValueError as error:
        raise InputError(str(error)) from None
    if not any(holds(pod) for pod in snapshot.pods if not pod.finished):
        raise InputError(f"{word!r} names no pod of the snapshot")
    return holds
