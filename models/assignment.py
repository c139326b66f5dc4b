"""Which node each pod is on."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping
from typing import TypeVar, overload

from stowplan.models.html import html_table
from stowplan.models.words import plural

T = TypeVar("T")
ROWS = 20
"""Pods that a notebook shows."""


class Assignment(Mapping[str, str]):
    """Node name by pod key (``namespace/name``); unscheduled pods are not in it. Immutable.

    Every answer is one: where pods are today, where kube-scheduler would put them, the best placement, and what each
    wave of a plan leaves behind. Methods that change something return a new assignment.

    Parameters
    ----------
    nodes
        Node name by pod key, or pairs of both. A pod whose node name is empty has no node.
    """

    __slots__ = ("_nodes",)

    def __init__(self, nodes: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        pairs = nodes.items() if isinstance(nodes, Mapping) else nodes
        self._nodes = {key: node for key, node in pairs if node}

    def __getitem__(self, key: str) -> str:
        return self._nodes[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Assignment):
            return self._nodes == other._nodes
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment] # as of every mapping

    def __repr__(self) -> str:
        nodes = len(set(self._nodes.values()))
        return f"<Assignment of {plural(len(self), 'pod')} to {plural(nodes, 'node')}>"

    def _repr_html_(self) -> str:
        rows = list(itertools.islice(self._nodes.items(), ROWS))
        more = [(f"and {len(self) - ROWS} more", "")] if len(self) > ROWS else []
        return html_table(repr(self).strip("<>"), [*rows, *more], ("pod", "node"))

    @overload
    def get(self, key: str, default: None = None, /) -> str | None: ...
    @overload
    def get(self, key: str, default: T, /) -> str | T: ...
    def get(self, key: str, default: T | None = None, /) -> str | T | None:
        """Return the node of a pod, or ``default`` if it has none."""
        return self._nodes.get(key, default)

    def items(self) -> ItemsView[str, str]:
        """Return pairs of pod key and node name."""
        return self._nodes.items()

    def __or__(self, other: Mapping[str, str]) -> Assignment:
        """Return this assignment with the pods of another one where that has them."""
        return Assignment(self._nodes | dict(other))

    def moved(self, changes: Mapping[str, str | None] | Iterable[tuple[str, str | None]]) -> Assignment:
        """Return the assignment after some pods have moved.

        Parameters
        ----------
        changes
            Pod keys with their new nodes, in the order of the moves; a pod without a new node loses its own.
        """
        nodes = dict(self._nodes)
        for key, node in changes.items() if isinstance(changes, Mapping) else changes:
            nodes.pop(key, None)
            if node:
                nodes[key] = node
        return Assignment(nodes)

    def without(self, keys: Collection[str]) -> Assignment:
        """Return the assignment without some pods."""
        gone = set(keys)
        return Assignment({key: node for key, node in self._nodes.items() if key not in gone})

    def moved_from(self, before: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Return source and target, by pod key, of every pod that is on another node than before; empty is no node."""
        changed = {key: (before.get(key, ""), node) for key, node in self._nodes.items() if before.get(key) != node}
        lost = {key: (node, "") for key, node in before.items() if node and key not in self._nodes}
        return changed | lost

    def count(self, counts: Callable[[str], bool] = lambda key: True) -> Counter[str]:
        """Return how many pods each node holds, of those whose key `counts` accepts; nodes without any are left out."""
        return Counter(node for key, node in self._nodes.items() if counts(key))
