"""Convex functions as piecewise linear curves with whole slopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import FAR, Curves

SLOPE_LIMIT = 1 << 40


def convex(function: Callable[[float], float], points: Iterable[int], anchor: int) -> Curves:
    """Return the curve through a convex function at the given whole numbers.

    Slopes are rounded to whole numbers, which keeps the values whole; the curve is exact at ``anchor``, which should be
    near the function's minimum, and at each other point it is off by no more than half the distance to the last one,
    as long as the slopes before rounding differ by 2 from piece to piece.
    """
    start, slope, value = _pieces(function, sorted(set(points) | {0, anchor}), anchor)
    return Curves(start[None, :], slope[None, :], value[None, :])


def exact(function: Callable[[float], float], points: Iterable[int]) -> Curves:
    """Return a convex curve that has the values of a convex function, rounded to whole numbers, at the given points.

    A chord whose slope is not whole is made of two pieces, of the whole slopes below and above it. Where points lie so
    close together that this would not be convex, the one between is left out: there the curve is above the function by
    less than half the distance of its neighbors. Slopes that differ by 1 from chord to chord prevent that.
    """
    xs = sorted(set(points))
    if len(xs) == 1:
        xs.append(xs[0] + 1)
    values = {x: round(function(x)) for x in xs}
    chords: list[tuple[int, int, int, int]] = []  # begin, end, whole slope, and the length that rises by one more
    for end in xs[1:]:
        begin = chords[-1][1] if chords else xs[0]
        while True:
            slope, rest = divmod(values[end] - values[begin], end - begin)
            if not chords or slope >= chords[-1][2] + (chords[-1][3] > 0):
                break
            begin = chords.pop()[0]
        chords.append((begin, end, slope, rest))
    pieces: list[tuple[int, int, int]] = []
    for begin, end, slope, rest in chords:
        pieces.append((begin, slope, values[begin]))
        if rest:
            pieces.append((end - rest, slope + 1, values[begin] + slope * (end - rest - begin)))
    start, slopes, value = np.array(pieces, dtype=np.int64).T
    return Curves(start[None, :].copy(), slopes[None, :].copy(), value[None, :].copy())


def stack(curves: Sequence[Curves]) -> Curves:
    """Put single curves together as one family."""
    width = max((c.start.shape[1] for c in curves), default=1)

    def padded(array: Ints, fill: int | None) -> Ints:
        extra = width - array.shape[1]
        return (
            np.pad(array, ((0, 0), (0, extra)), "constant", constant_values=fill)
            if fill is not None
            else (np.pad(array, ((0, 0), (0, extra)), "edge"))
        )

    return Curves(
        np.vstack([padded(c.start, FAR) for c in curves]),
        np.vstack([padded(c.slope, None) for c in curves]),
        np.vstack([padded(c.value, 0) for c in curves]),
    )


def _pieces(function: Callable[[float], float], xs: list[int], anchor: int) -> tuple[Ints, Ints, Ints]:
    middle = xs.index(anchor)
    values = [0] * len(xs)
    values[middle] = round(function(anchor))
    rises = [0] * max(1, len(xs) - 1)
    # Each slope makes up for what was lost by rounding the last one, as far as the curve stays convex.
    for i in range(middle, len(xs) - 1):
        rise = _whole((function(xs[i + 1]) - values[i]) / (xs[i + 1] - xs[i]))
        rises[i] = max(rise, rises[i - 1]) if i > middle else rise
        values[i + 1] = values[i] + rises[i] * (xs[i + 1] - xs[i])
    for i in range(middle - 1, -1, -1):
        rise = _whole((values[i + 1] - function(xs[i])) / (xs[i + 1] - xs[i]))
        rises[i] = min(rise, rises[i + 1]) if i + 1 < len(xs) - 1 else rise
        values[i] = values[i + 1] - rises[i] * (xs[i + 1] - xs[i])
    kept = len(rises)  # the last piece goes on with its slope forever
    return (
        np.array(xs[:kept], dtype=np.int64),
        np.array(rises, dtype=np.int64),
        np.array(values[:kept], dtype=np.int64),
    )


def _whole(slope: float) -> int:
    return max(-SLOPE_LIMIT, min(SLOPE_LIMIT, round(slope)))
