"""How firmly a pod is steered to its node."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What the extender answers about the nodes that a pod is not planned for."""

    PRIORITIZE = "prioritize"
    """They score less."""

    FILTER = "filter"
    """They are filtered out."""
