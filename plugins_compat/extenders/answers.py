"""What extenders answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


class ExtenderError(Exception):
    """An extender could not be reached, or its answer makes no sense; ``str()`` says which and why."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """What an extender made of a list of nodes.

    Parameters
    ----------
    passed
        Names of the nodes that are left.
    failed, unresolvable
        Why others failed, by name; the second kind is one that preemption cannot resolve.
    """

    passed: Sequence[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
