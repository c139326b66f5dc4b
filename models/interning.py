"""One object for equal values while a snapshot is read.

The pods of one workload carry the same containers, labels, affinity and tolerations. Keeping one copy of each
makes a snapshot several times smaller, and makes the later grouping of pods a comparison of identities.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T", bound=Hashable)
V = TypeVar("V")

_table: ContextVar[dict[Any, Any] | None] = ContextVar("interned values", default=None)


class FrozenMap(dict[str, V]):
    """A string-keyed mapping that is never changed after it was built, and can be hashed."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def intern(value: T) -> T:
    """Return the first equal value seen inside `interning`, or ``value`` itself outside of it."""
    table = _table.get()
    if table is None:
        return value
    kept: T = table.setdefault(value, value)
    return kept


def freeze(mapping: Mapping[str, V] | None) -> FrozenMap[V]:
    """Return ``mapping`` (``None`` counts as empty) as an interned `FrozenMap`."""
    return intern(FrozenMap(mapping or {}))


@contextmanager
def interning() -> Iterator[None]:
    """Share equal values built inside the block."""
    token = _table.set({})
    try:
        yield
    finally:
        _table.reset(token)
