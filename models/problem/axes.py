"""Which arrays of a rule or term run over classes and nodes, and how to rewrite them for others.

A field is declared `PerClass` (one entry a class), `ClassSet` (a sorted list of classes), `PerNode` (one entry, or
column, a node), or `NodeList` (a list of nodes); all else in this module follows from those declarations, for every
kind there is and every kind to come.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import numpy as np

from stowplan.models.arrays import Bools, Ints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")


class Axis(Enum):
    """How an array refers to classes or nodes."""

    EACH = "one entry for each class"
    SOME = "indices of classes, sorted, without repetition"
    NODE = "the last axis has one entry for each node"
    LISTED = "indices of nodes"


PerClass = Annotated[Ints, Axis.EACH]
ClassSet = Annotated[Ints, Axis.SOME]
PerNode = Annotated[Ints, Axis.NODE]
NodeMask = Annotated[Bools, Axis.NODE]
NodeList = Annotated[Ints, Axis.LISTED]


def dense_columns(part: Any) -> list[Ints]:
    """Return every ``[c]`` array that a rule or term, or a part of one, reads."""
    return [array for axis, array in _columns(part) if axis is Axis.EACH]


def class_sets(part: Any) -> list[Ints]:
    """Return every set of classes that a rule or term, or a part of one, names."""
    return [array for axis, array in _columns(part) if axis is Axis.SOME]


def project(part: D, class_of: Ints, representative: Ints) -> D:
    """Rewrite a rule or term from fine classes to the coarse classes they fall into; as it is where it has none.

    Parameters
    ----------
    class_of
        ``[fine]`` the coarse class of each fine one.
    representative
        ``[coarse]`` a fine class in each coarse one; all members must look alike to ``part``.
    """
    axes = _axes(type(part))
    changes: dict[str, Any] = {}
    for f in fields(part):
        value = getattr(part, f.name)
        match axes.get(f.name):
            case Axis.EACH:
                changes[f.name] = value[representative]
            case Axis.SOME:
                changes[f.name] = np.unique(class_of[value])
            case None if isinstance(value, tuple) and _parts(value):
                changes[f.name] = tuple(project(item, class_of, representative) for item in value)
            case None if _parts(value):
                changes[f.name] = project(value, class_of, representative)
    # What reads no classes, such as a topology, stays the one object that it is: thousands of rules share it.
    if all(value is getattr(part, name) for name, value in changes.items()):
        return part
    return replace(part, **changes)


class Restriction:
    """Rewrites rules and terms for some of the classes on some of the nodes.

    What many of them share, such as a topology, is rewritten once and shared again.

    Parameters
    ----------
    classes, nodes
        ``[c]``, ``[n]`` whether each is kept. Nodes that a `NodeList` names must be.
    twice
        ``[c]`` which of the classes there are twice, so that some of their pods can be told from the others.

    Attributes
    ----------
    classes, nodes
        Which are kept; those that there are twice come once more after all others.
    class_position, second_position, node_position
        ``[c]``, ``[n]`` the position among them of each that is kept, and where it comes once more.
    """

    def __init__(self, classes: Bools, nodes: Bools, twice: Bools | None = None) -> None:
        self._kept, self._twice = classes, np.zeros_like(classes) if twice is None else twice
        first = np.flatnonzero(classes)
        self.classes: Ints = np.concatenate([first, np.flatnonzero(self._twice)])
        self.nodes = np.flatnonzero(nodes)
        self.class_position, self.node_position = np.cumsum(classes) - 1, np.cumsum(nodes) - 1
        self.second_position = len(first) + np.cumsum(self._twice) - 1
        self._shared: dict[int, tuple[Any, Any]] = {}

    def of(self, part: D) -> D:
        """Return a rule or term, or a part of one, for what is kept."""
        axes = _axes(type(part))
        changes: dict[str, Any] = {}
        for f in fields(part):
            value = getattr(part, f.name)
            if isinstance(value, tuple) and _parts(value):
                changes[f.name] = tuple(self._once(None, item) for item in value)
            elif f.name in axes or _parts(value):
                changes[f.name] = self._once(axes.get(f.name), value)
        if all(value is getattr(part, name) for name, value in changes.items()):
            return part
        return replace(part, **changes)

    def _once(self, axis: Axis | None, value: Any) -> Any:
        known = self._shared.get(id(value))
        if known is None:
            # The value is kept beside what became of it, so that no other can have its identity.
            known = self._shared[id(value)] = value, self.of(value) if axis is None else self._rewritten(axis, value)
        return known[1]

    def _rewritten(self, axis: Axis, value: Ints) -> Ints:
        match axis:
            case Axis.EACH:
                return value[self.classes]
            case Axis.SOME:
                first, second = value[self._kept[value]], value[self._twice[value]]
                both: Ints = np.concatenate([self.class_position[first], self.second_position[second]])
                return both
            case Axis.NODE:
                return value[..., self.nodes]
            case Axis.LISTED:
                return self.node_position[value]


def refine(size: int, parts: Iterable[object], extra: Iterable[Ints] = ()) -> Ints:
    """Partition ``size`` fine classes as coarsely as what reads them allows; return the coarse class of each.

    Two of them share a class exactly if every array that any of ``parts`` reads says the same about both.

    Parameters
    ----------
    parts
        Rules and terms over the fine classes.
    extra
        Further arrays, with one entry for each, that must not be mixed inside a class.
    """
    block = np.zeros(size, dtype=np.int64)
    sets: list[list[int]] = [[] for _ in range(size)]
    number = 0
    for column in extra:
        block = _split(block, column)
    for part in parts:
        for column in dense_columns(part):
            block = _split(block, column)
        for members in class_sets(part):
            for s in members.tolist():
                sets[s].append(number)
            number += 1
    keys: dict[Hashable, int] = {}
    return np.array([keys.setdefault((int(block[s]), tuple(sets[s])), len(keys)) for s in range(size)], dtype=np.int64)


@cache
def _axes(kind: type) -> dict[str, Axis]:
    """Map each field of a dataclass that refers to classes to the way it does."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: extra for name, hint in hints.items() for extra in get_args(hint) if isinstance(extra, Axis)}


def _columns(part: DataclassInstance) -> list[tuple[Axis, Ints]]:
    axes = _axes(type(part))
    found: list[tuple[Axis, Ints]] = []
    for f in fields(part):
        value = getattr(part, f.name)
        if f.name in axes:
            found.append((axes[f.name], value))
        else:
            found.extend(column for inner in _parts(value) for column in _columns(inner))
    return found


def _parts(value: Any) -> list[Any]:
    """Return the dataclasses directly inside a field's value."""
    items = value if isinstance(value, tuple) else (value,)
    # All items of a tuple are of one kind, so the first speaks for them: a topology alone names thousands of nodes.
    return list(items) if items and is_dataclass(items[0]) and not isinstance(items[0], type) else []


def _split(block: Ints, column: Ints) -> Ints:
    """Split every block by the values of a column."""
    if not len(block):
        return block
    pairs = np.stack([block, column])
    finer: Ints = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
    return finer
