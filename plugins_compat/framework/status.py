"""Status codes of the scheduling framework, with upstream's names and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from stowplan.models.kubernetes import Pod


class Code(IntEnum):
    """How a plugin answered."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5

    @property
    def upstream(self) -> str:
        """The name upstream prints."""
        names = ("Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip")
        return names[self]


SUCCESS, UNSCHEDULABLE, UNRESOLVABLE = int(Code.SUCCESS), int(Code.UNSCHEDULABLE), int(Code.UNRESOLVABLE)
"""Plain integers for arrays of codes, which NumPy fills and compares several times faster than with members."""


@dataclass(frozen=True, slots=True)
class Status:
    """An answer other than success, with upstream's reasons."""

    code: Code
    reasons: Sequence[str] = ()
    plugin: str = ""


class ScoreError(Exception):
    """A score plugin cannot answer; the cycle ends with this message."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A Permit answer: the pod waits for the plugin's permission, for so many seconds at most."""

    seconds: float


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A PreFilter answer that leaves only the named nodes."""

    names: frozenset[str]


SKIP = Status(Code.SKIP)
"""A PreFilter answer: the plugin has nothing to say about the pod, and its Filter does not run."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """A PostFilter answer.

    Parameters
    ----------
    status
        Success, or why there is no help.
    nominated
        The node on which the pod would fit.
    victims
        The pods that have to leave it, the most important first.
    clears
        The pod loses a nomination that it had.
    """

    status: Status
    nominated: int | None = None
    victims: Sequence[Pod] = ()
    clears: bool = False
