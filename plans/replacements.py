"""Which pods are interchangeable: the one rule that plans, tokens, replays, checks and executors share.

A controller makes its pods from one template, so they differ in nothing but their names. It does not matter which of
them is on which node, only how many are on each. That holds for the replacements of evicted pods and for pods that wait
for a node alike: the scheduler gives a place to whichever of them it tries first. A pod that keeps its name, as those
of a StatefulSet do, and a pod without a controller are interchangeable with no other.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from stowplan.models.kubernetes import Pod
from stowplan.models.plan import MoveDocument, TokenDocument
from stowplan.plans.movability.workloads import keeps_name


class HasNameAndUid(Protocol):
    """A reference to a controller."""

    @property
    def kind(self) -> str:
        """The kind of the controller."""

    @property
    def name(self) -> str:
        """Its name; its namespace is the pod's."""

    @property
    def uid(self) -> str:
        """Its uid; empty if it is not known."""


class ReplacementGroup(NamedTuple):
    """Pods of which any can replace any other.

    Parameters
    ----------
    namespace
        Of the pods and of their controller.
    owner
        Identity of the controller, as `owner_identity` gives it; empty if there is none, or if the name suffices.
    template_hash
        Of the pods' template; empty if they have none: then any template will do.
    pod
        Name of the only pod of the group; empty if pods of the controller are interchangeable.
    """

    namespace: str
    owner: str
    template_hash: str = ""
    pod: str = ""

    def shares_owner(self, namespace: str, name: str, owner: str) -> bool:
        """Whether a pod has the controller of the group, and its name where only one pod has it."""
        if namespace != self.namespace:
            return False
        if self.pod:
            return name == self.pod and self.owner in ("", owner)
        return bool(owner) and owner == self.owner

    def admits(self, namespace: str, name: str, owner: str, hashes: Collection[str]) -> bool:
        """Whether a pod belongs to the group.

        Parameters
        ----------
        owner
            Identity of the pod's controller; empty if it has none.
        hashes
            Values of the labels that tell the pod's template.
        """
        return self.shares_owner(namespace, name, owner) and (not self.template_hash or self.template_hash in hashes)


def owner_identity(owner: HasNameAndUid | None) -> str:
    """Return what tells a controller from others of its namespace: its uid, or kind and name where it has none."""
    if owner is None:
        return ""
    return owner.uid or f"{owner.kind}/{owner.name}"


def group_of_move(move: MoveDocument) -> ReplacementGroup:
    """Return the group of the pod that a move is about."""
    alone = move.owner is None or move.same_name or keeps_name(move.owner)
    owner = owner_identity(move.owner)
    return ReplacementGroup(move.pod.namespace, owner, move.template_hash, move.pod.name if alone else "")


def group_of_pod(pod: Pod) -> ReplacementGroup:
    """Return the group of a pod of a snapshot."""
    controller = pod.metadata.controller
    alone = controller is None or keeps_name(controller)
    return ReplacementGroup(pod.namespace, owner_identity(controller), pod.template_hash, pod.name if alone else "")


def group_of_token(token: TokenDocument) -> ReplacementGroup:
    """Return the group of pods that may take a token."""
    return ReplacementGroup(token.namespace, token.owner_uid, token.template_hash, token.pod or "")


def by_group(moves: Iterable[MoveDocument]) -> dict[ReplacementGroup, list[MoveDocument]]:
    """Return moves by their groups, in their order."""
    found: dict[ReplacementGroup, list[MoveDocument]] = {}
    for move in moves:
        found.setdefault(group_of_move(move), []).append(move)
    return found


Item = TypeVar("Item")


def on_targets(
    moves: Iterable[MoveDocument], pods: Iterable[tuple[Item, str]]
) -> tuple[list[tuple[MoveDocument, Item]], list[MoveDocument], list[Item]]:
    """Match moves of one group with pods that are on their targets, each pod with one move.

    Parameters
    ----------
    pods
        Pods, each with the name of its node, which is empty if it has none.

    Returns
    -------
    tuple
        Moves with the pods on their targets; moves that are left without one; pods that are on no target left.
    """
    free: dict[str, list[Item]] = {}
    for pod, node in pods:
        free.setdefault(node, []).append(pod)
    matched: list[tuple[MoveDocument, Item]] = []
    left: list[MoveDocument] = []
    for move in moves:
        there = free.get(move.target or "")
        if there:
            matched.append((move, there.pop(0)))
        else:
            left.append(move)
    return matched, left, [pod for pods_there in free.values() for pod in pods_there]


def pods_of_pending(
    moves: Iterable[MoveDocument], nodes: Mapping[str, str], finished: Container[str] = ()
) -> dict[str, str]:
    """Return the pod that each move of a pending pod is about, by the move's id: the pods may exchange their nodes.

    A move gets the pod that is on its target; else its own pod, if that waits or is on no target of the group; else
    another such pod of the group, those that wait first.

    Parameters
    ----------
    moves
        Moves of kind ``place``, in their order.
    nodes
        Of the moves' own pods that are there and not spoken for, by key: the name of the node, empty if the pod waits.
    finished
        Ids of moves that need no pod any more; their own pods may still be due to others.
    """
    found: dict[str, str] = {}
    for group in by_group(moves).values():
        own = [key for move in group if (key := move.pod.key) in nodes]
        waiting = [move for move in group if move.id not in finished]
        matched, without, left = on_targets(waiting, [(key, nodes[key]) for key in own if nodes[key]])
        found |= {move.id: key for move, key in matched}
        free = [*(key for key in own if not nodes[key]), *left]
        for move in without:
            if move.pod.key in free:
                found[move.id] = move.pod.key
                free.remove(move.pod.key)
        found |= {move.id: free.pop(0) for move in without if move.id not in found and free}
    return found
