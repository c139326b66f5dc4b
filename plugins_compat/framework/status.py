"""Status codes of the scheduling framework, with upstream's names and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Code(IntEnum):
    """How a plugin answered."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3

    @property
    def upstream(self) -> str:
        """The name upstream prints."""
        return {0: "Success", 1: "Error", 2: "Unschedulable", 3: "UnschedulableAndUnresolvable"}[self]


@dataclass(frozen=True, slots=True)
class Status:
    """An answer other than success, with upstream's reasons."""

    code: Code
    reasons: Sequence[str] = ()
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A PreFilter answer that leaves only the named nodes."""

    names: frozenset[str]
