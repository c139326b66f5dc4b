"""What every benchmark offers: instances, problems made of them, written solutions, and their checks."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from stowplan.models.problem import Placement, Problem


class Kind(StrEnum):
    """What a suite is made of."""

    REASSIGNMENT = "machine reassignment"
    PACKING = "vector bin packing"
    PRIORITIES = "priority-matters"
    DEVICES = "openb"


@dataclass(frozen=True, slots=True)
class Reference:
    """What others found.

    Parameters
    ----------
    best, best_by
        Smallest value known, and whose it is.
    bound, bound_by
        Largest lower bound known, and how it was found.
    others
        Further values by name.
    """

    best: int | None = None
    best_by: str = ""
    bound: int | None = None
    bound_by: str = ""
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checker of a format says of a written solution.

    Parameters
    ----------
    values
        The value of every tier, the first being the most urgent.
    violations
        One line for each rule that is broken.
    """

    values: tuple[int, ...]
    violations: tuple[str, ...] = ()


class Stated(Protocol):
    """An instance as a problem."""

    @property
    def problem(self) -> Problem:
        """What engines solve."""

    def write(self, placement: Placement) -> str:
        """Write a placement in the format of the benchmark."""


class Instance(ABC):
    """One instance. It can be sent to another process, and is read there.

    Parameters
    ----------
    name
        Unlike any other of the suite; also the path of its solution, without the suffix.
    group
        The part of the suite it belongs to.
    """

    name: str
    group: str
    suffix = ".txt"
    """Ends the name of a file with a solution."""

    @property
    def reference(self) -> Reference:
        """What others found."""
        return Reference()

    def measures(self, values: Sequence[int]) -> Mapping[str, float]:
        """Return values of the tiers in words of the benchmark, where it has its own."""
        return {}

    @abstractmethod
    def state(self) -> Stated:
        """Read it, and state it as a problem.

        Raises
        ------
        InputError
            If it is malformed.
        """

    @abstractmethod
    def check(self, file: str, data: bytes) -> Verdict:
        """Check a written solution by the format's own rules, without the problem.

        Raises
        ------
        InputError
            If it is not a solution at all.
        """


@dataclass(frozen=True, slots=True)
class Suite:
    """Instances of one format."""

    kind: Kind
    name: str
    instances: tuple[Instance, ...]


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a key that sorts numbers inside names by their size."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
