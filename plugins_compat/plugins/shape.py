"""Broken lines from utilization to score, as configurations write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from stowplan.models.arrays import Ints


class ShapePoint(BaseModel):
    """A point of a ratio shape: utilization 0 to 100, score 0 to 10."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    utilization: Annotated[int, Field(ge=0, le=100)]
    score: Annotated[int, Field(ge=0, le=10)]


def broken_line(percent: Ints, points: Sequence[ShapePoint]) -> Ints:
    """Interpolate between shape points (scores times 10), dividing toward zero as Go does."""
    xs = np.array([p.utilization for p in points], dtype=np.int64)
    ys = np.array([p.score * 10 for p in points], dtype=np.int64)
    right = np.clip(np.searchsorted(xs, percent), 0, len(xs) - 1)
    left = np.maximum(right - 1, 0)
    rise = (ys[right] - ys[left]) * (percent - xs[left])
    run = np.maximum(xs[right] - xs[left], 1)
    between = ys[left] + np.sign(rise) * (np.abs(rise) // run)
    values: Ints = np.where(percent <= xs[0], ys[0], np.where(percent > xs[-1], ys[-1], between))
    return values
