"""Weights of shares that bound the number of devices: an optimal dual of the cutting stock program.

`stowplan.models.bin_packing.dual_weights` knows families of weights that suit no shares in particular. The dual of
Gilmore and Gomory's linear program (1961) gives those at which the given shares have the largest total: a dual feasible
function made for them.
"""

from __future__ import annotations

import highspy
import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.highs import linear_program

UNIT = 720_720
"""Weights are integer multiples of this fraction of a device; duals are mostly fractions of small numbers."""


def demanded_weights(parts: Ints, number: Ints, size: int, grid: int, rounds: int) -> tuple[int, Ints]:
    """Return weights of shares whose total on any device is at most a limit.

    Parameters
    ----------
    parts, number
        Different shares, from 1 to ``size``, and how often each of them is demanded.
    grid
        Steps of a device that are distinguished; smaller shares are rounded down, which only adds patterns.
    rounds
        Columns that are generated at most.

    Returns
    -------
    tuple
        The limit, and ``[i]`` the weight of each share.
    """
    step = max(int(np.gcd.reduce(parts)), -(-size // grid))
    steps, residual = parts // step, size // step
    lp = linear_program()
    rows, empty = len(parts), np.zeros(0, dtype=np.int32)
    lp.addRows(rows, number * 1.0, np.full(rows, highspy.kHighsInf), 0, empty, empty, np.zeros(0))
    for i, often in enumerate((size // parts).tolist()):
        lp.addCol(1.0, 0.0, highspy.kHighsInf, 1, np.array([i], dtype=np.int32), np.array([float(often)]))
    dual = np.zeros(rows)
    for _ in range(rounds):
        lp.run()
        duals = np.asarray(lp.getSolution().row_dual)
        if len(duals) != rows or not np.isfinite(duals).all():
            break
        dual = np.maximum(0.0, duals)
        filling = _filling(steps, dual, residual)
        if filling @ dual <= 1 + 1e-9:
            break
        used = np.flatnonzero(filling).astype(np.int32)
        lp.addCol(1.0, 0.0, highspy.kHighsInf, len(used), used, filling[used] * 1.0)
    weight: Ints = np.rint(dual * UNIT).astype(np.int64)
    # Whatever the quality of the duals, the weight of the best filling is a valid limit.
    return int(_filling(steps, weight, residual) @ weight), weight


def _filling(steps: Ints, worth: Ints | Floats, residual: int) -> Ints:
    """``[i]`` how often each share is in the most valuable filling of a device, by dynamic programming."""
    best = np.zeros(residual + 1, dtype=worth.dtype)
    last = np.full(residual + 1, -1, dtype=np.int64)
    for space in range(1, residual + 1):
        best[space] = best[space - 1]
        fits = np.flatnonzero(steps <= space)
        if len(fits):
            gain = best[space - steps[fits]] + worth[fits]
            most = int(np.argmax(gain))
            if gain[most] > best[space]:
                best[space], last[space] = gain[most], fits[most]
    filling = np.zeros(len(steps), dtype=np.int64)
    space = residual
    while space > 0:
        if last[space] < 0:
            space -= 1
        else:
            filling[last[space]] += 1
            space -= int(steps[last[space]])
    return filling
