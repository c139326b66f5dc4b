"""The generated clusters, objectives and limits that are asked about, and how they are written on the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.models.errors import InputError
from stowplan.models.objective import PRESETS

PATTERN = re.compile(r"(\d{1,5})x(\d{1,6})(?::seed(\d{1,9}))?(?::fill(\d(?:\.\d{1,4})?))?")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A generated cluster, written ``NODESxPODS[:seedS][:fillF]``; see `stowplan.instances.synthetic`."""

    nodes: int
    pods: int
    seed: int = 0
    fill: float = 0.65

    @property
    def name(self) -> str:
        """The cluster as it is written."""
        return f"{self.nodes}x{self.pods}:seed{self.seed}:fill{self.fill:g}"


CLUSTERS = (ClusterSpec(20, 150, 1), ClusterSpec(50, 420, 2, 0.85), ClusterSpec(100, 900, 102, 0.45))
"""Small enough for minutes: half full, nearly full with pending pods, and mostly empty."""

OBJECTIVES = ("balance", "pack", "spread", "kube", "global")

LIMITS: tuple[int | None, ...] = (1, 5, 20, 50, 200, None)
"""Limits on moves; ``None`` is any number."""


def clusters_of(words: Sequence[str]) -> tuple[ClusterSpec, ...]:
    """Return the clusters that words name; those of `CLUSTERS` without a word.

    Raises
    ------
    InputError
        If a word names no cluster.
    """
    return tuple(map(_cluster, words)) or CLUSTERS


def objectives_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the presets that words name; those of `OBJECTIVES` without a word.

    Raises
    ------
    InputError
        If there is no such preset.
    """
    for word in words:
        if word not in PRESETS:
            raise InputError(f"is {word!r}; must be one of {', '.join(PRESETS)}", field="--preset")
    return tuple(words) or OBJECTIVES


def limits_of(words: Sequence[str]) -> tuple[int | None, ...]:
    """Return the limits that words name; those of `LIMITS` without a word.

    Raises
    ------
    InputError
        If a word is neither a number of moves nor ``any``.
    """
    for word in words:
        if word != "any" and not re.fullmatch(r"\d{1,9}", word):
            raise InputError(f"is {word!r}; must be a number of moves or 'any'", field="--moves")
    return tuple(None if word == "any" else int(word) for word in words) or LIMITS


def _cluster(word: str) -> ClusterSpec:
    match = PATTERN.fullmatch(word)
    if match is None or not int(match[1]) or (match[4] is not None and not 0.01 <= float(match[4]) <= 2):
        form = "must be NODESxPODS[:seedS][:fillF], such as 100x900:seed102:fill0.45, with a fill from 0.01 to 2"
        raise InputError(f"is {word!r}; {form}", field="--cluster")
    return ClusterSpec(int(match[1]), int(match[2]), int(match[3] or 0), float(match[4] or 0.65))
