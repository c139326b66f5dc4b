"""One thing that a dump lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAMED = 5
"""Names that a gap lists at most; it counts the others."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that a dump lacks.

    Parameters
    ----------
    what
        What is missing, and what therefore cannot be known.
    fatal
        Whether a plan made in spite of it is no plan for the cluster: pods are missing, or what is free on nodes.
    """

    what: str
    fatal: bool = False


def named(names: Sequence[str]) -> str:
    """List some names, the first ones if there are many."""
    shown = ", ".join(names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown}, and {len(names) - NAMED} more"
