"""Points of priority functions: from 0 to 10, where plugins of the scheduling framework give 0 to 100."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from stowplan.models.problem import POINTS, Weighted

if TYPE_CHECKING:
    from stowplan.models.arrays import Ints
    from stowplan.plugins_compat.framework.signatures import Signature
    from stowplan.plugins_compat.framework.view import ScoreView

MOST = 10
"""Highest score of a priority function."""


def prefer_ten(
    view: ScoreView,
    name: str,
    raw: Callable[[Signature], Ints],
    normalize: Callable[[Ints], Ints] = lambda scores: scores,
) -> Iterator[Weighted]:
    """Yield a score from 0 to 10 that depends on pod and node alone as a `Prefer`; see `ScoreView.prefer_score`.

    A score of 10 misses nothing, so scores are moved up to end at 100.
    """
    yield from view.prefer_score(name, raw, lambda scores: normalize(scores) + (POINTS - MOST))
