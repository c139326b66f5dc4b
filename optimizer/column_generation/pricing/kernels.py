"""Exact pricing by depth-first branch and bound over patterns: multisets of kinds that fit on one node.

A partial pattern is pruned when the bound of what it can still gain is too low. The gain is bounded by a fractional
knapsack in one surrogate row, the weighted sum of all rows, over the kinds that still fit; and, where only a few pods
more can fit, by the most valuable ones. Kinds whose reduced cost in that knapsack is too high are fixed to zero in the
subtree (reduced-cost fixing).

Where there are shares of devices to pack, each pod is assigned its share when it is added; where none is left, all
shares are packed again. ``whole`` and ``part`` are what a pod of each kind takes of the devices, ``size`` is that of a
device and 0 if there is nothing to pack, ``count`` says how many there are, and ``held`` lists the shares held by pods
outside the problem. A pod that certainly cannot be added to a partial pattern cannot be added to its extensions, nor
can any pod that takes more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.models.bin_packing import EFFORT
from stowplan.optimizer.compiled.bin_packing import QUICK_EFFORT, REPACKED, admit, distribute
from stowplan.optimizer.compiled.jit import allocating, compiled

SAFE = 1e-9
"""Relative error granted to floating-point sums of values, which are whole numbers below 2⁵⁰."""

DEEPEST = 4096
"""Pods on a node at most; beyond, the search gives up."""


@compiled
def _gain_bound(
    value: Ints,
    weight: Floats,
    fits: Ints,
    times: Ints,
    first: int,
    middle: int,
    last: int,
    left: float,
    count: int,
    top: Ints,
) -> tuple[float, float]:
    """Bound what the candidates ``first … last`` can add, if ``left`` of the surrogate row is free.

    Those before ``middle`` and those from there on are each sorted by decreasing value per weight. Also return the
    value per weight of the critical item, the first that no longer fits whole; 0 if all do.
    """
    total = 0.0
    critical = 0.0
    i = first
    while i < middle and weight[fits[i]] <= 0:
        total += value[fits[i]] * times[i]
        left -= weight[fits[i]] * times[i]
        i += 1
    j = max(first, middle)
    while i < middle or j < last:
        if j >= last or (i < middle and value[fits[i]] * weight[fits[j]] >= value[fits[j]] * weight[fits[i]]):
            at = i
            i += 1
        else:
            at = j
            j += 1
        k = fits[at]
        load = weight[k] * times[at]
        if load <= left:
            total += value[k] * times[at]
            left -= load
        else:
            critical = value[k] / weight[k]
            total += critical * max(0.0, left)
            break
    total += SAFE * total + 1e-3
    if count <= 3:
        most = 0.0
        for c in range(count):
            most += top[c]
        if most < total:
            return most, 0.0
    return total, critical


@allocating
def _maximal(
    x: Ints,
    upper: Ints,
    demand: Ints,
    rem: Ints,
    waste: Ints,
    extra: int,
    whole: Ints,
    part: Ints,
    size: int,
    held: Ints,
    residual: Ints,
) -> tuple[bool, int]:
    """Whether a pattern, with one more pod of kind ``extra`` unless that is -1, is maximal; and the work.

    A pod that frees capacity is not added where more than ``waste`` would be left.

    Parameters
    ----------
    residual
        ``[i]`` is written.
    """
    kinds, rows = demand.shape
    if extra >= 0:
        x[extra] += 1
    maximal = True
    looked = kinds
    refused = np.array([size + 1, len(residual) + 1], dtype=np.int64)
    for k in range(kinds):
        if x[k] >= upper[k]:
            continue
        fit = True
        for r in range(rows):
            left = rem[r] - demand[k, r] - (demand[extra, r] if extra >= 0 else 0)
            if left < 0 or (demand[k, r] < 0 and left > waste[r]):
                fit = False
                break
        if fit:
            admitted, work = admit(x, k, whole, part, size, held, False, residual, residual, refused, EFFORT)
            looked += work
            if admitted > 0:
                maximal = False
                break
    if extra >= 0:
        x[extra] -= 1
    return maximal, looked


@compiled
def _fits(demand: Ints, rem: Ints, waste: Ints) -> bool:
    """Whether a pod fits into the remaining capacity, and leaves no more than ``waste`` of it."""
    fit = True
    for r in range(len(rem)):
        left = rem[r] - demand[r]
        fit = fit and 0 <= left <= waste[r]
    return fit


@allocating
def search(
    value: Ints,
    weight: Floats,
    surrogate: float,
    demand: Ints,
    residual: Ints,
    upper: Ints,
    whole: Ints,
    part: Ints,
    size: int,
    devices: int,
    held: Ints,
    makers: int,
    least: int,
    all_maximal: bool,
    waste: Ints,
    work: int,
    found: NDArray[np.int16],
) -> tuple[int, int, int, int, bool]:
    """Solve the pricing problem, or enumerate all good maximal patterns, by depth-first branch and bound.

    Parameters
    ----------
    value, weight, upper
        ``[k]`` value, surrogate weight and most pods of each kind; values not negative. The first ``makers`` kinds
        are those that free capacity in some row, those without weight first. They, and the others, are sorted by
        decreasing value per weight.
    surrogate
        Capacity of the surrogate row.
    demand, residual
        ``[k, r]`` and ``[r]``.
    whole, part, size, devices, held
        ``[k]`` devices that a pod has for itself, and its share of one more; size of a device, 0 if there is nothing to
        pack; number of devices; ``[h]`` shares held by pods outside the problem.
    least
        Patterns of at most this value are of no interest; of less than this value, if ``all_maximal`` is wanted.
    all_maximal
        Find all maximal patterns, not only better and better ones.
    waste
        ``[r]`` patterns that leave more than so much of a row are of no interest.
    work
        Candidates to examine before giving up.
    found
        ``[p, k]`` filled with patterns: all of them, or the last ones found, in a ring.

    Returns
    -------
    tuple
        Number of patterns found, the best value (``least`` if none is better), a proven upper bound of the value of
        any pattern (``least`` if none is better), candidates examined, and whether the search is complete.
    """
    kinds, rows = demand.shape
    depth = 1
    for k in range(kinds):
        depth = min(DEEPEST, depth + upper[k])
    rem = np.empty((depth + 1, rows), dtype=np.int64)
    fits = np.empty((depth + 1, kinds), dtype=np.int64)
    times = np.empty((depth + 1, kinds), dtype=np.int64)
    top = np.zeros((depth + 1, 3), dtype=np.int64)
    number = np.zeros(depth + 1, dtype=np.int64)
    count = np.zeros(depth + 1, dtype=np.int64)
    place = np.zeros(depth + 1, dtype=np.int64)
    left = np.zeros(depth + 1)
    worth = np.zeros(depth + 1, dtype=np.int64)
    taken = np.zeros(depth + 1, dtype=np.int64)
    x = np.zeros(kinds, dtype=np.int64)
    smallest = np.empty(rows, dtype=np.int64)
    middle = np.zeros(depth + 1, dtype=np.int64)
    relief = np.zeros(rows, dtype=np.int64)
    # Free capacity of every device, whether it is known, and the least that cannot be added: a share, whole devices.
    space_on = np.zeros((depth + 1, devices), dtype=np.int64)
    known = np.ones(depth + 1, dtype=np.bool_)
    refused = np.empty((depth + 1, 2), dtype=np.int64)
    refused[0, 0], refused[0, 1] = size + 1, devices + 1
    scratch = np.zeros(devices, dtype=np.int64)
    no_limit = np.iinfo(np.int64).max
    best = least
    patterns = 0
    looked = 0
    rem[0] = residual
    left[0] = surrogate
    if size > 0:
        known[0] = distribute(x, -1, whole, part, size, held, EFFORT, space_on[0]) > 0
    d = 0
    start = 0
    fresh = True
    while d >= 0:
        if fresh:
            fresh = False
            above = d - 1
            end = number[above] if d else kinds
            looked += end - start + 4
            # How much capacity can the kinds with negative demand free?
            makes = False
            kept = True
            for r in range(rows):
                kept = kept and 0 <= rem[d, r] <= waste[r]
            if makers:
                relief[:] = 0
                for j in range(start, middle[above] if d else makers):
                    k = fits[above, j] if d else j
                    for r in range(rows):
                        if demand[k, r] < 0:
                            relief[r] -= demand[k, r] * (upper[k] - x[k])
                            makes = makes or upper[k] > x[k]
            # Which kinds still fit, and how often?
            fitting = 0
            split = 0
            for j in range(start, end):
                k = fits[above, j] if d else j
                often = upper[k] - x[k]
                if size > 0 and (part[k] >= refused[d, 0] or whole[k] >= refused[d, 1]):
                    often = 0
                for r in range(rows):
                    space = rem[d, r] + relief[r]
                    if demand[k, r] > space and demand[k, r] > 0:
                        often = 0
                        break
                    if demand[k, r] * often > space and demand[k, r] > 0:
                        often = space // demand[k, r]
                if often > 0:
                    fits[d, fitting] = k
                    times[d, fitting] = often
                    fitting += 1
                    if k < makers:
                        split = fitting
            # Which of them can be part of a pattern that is good enough?
            gain, critical = _gain_bound(value, weight, fits[d], times[d], 0, split, fitting, left[d], no_limit, top[d])
            slack = worth[d] + gain - (least if all_maximal else best + 1)
            number[d] = 0
            middle[d] = 0
            top[d, :] = 0
            smallest[:] = no_limit
            if all_maximal and slack >= 0:
                # Can the kinds that fit fill every row as far as it must be filled?
                for r in range(rows):
                    lacking = rem[d, r] - waste[r]
                    if lacking > 0:
                        for j in range(fitting):
                            lacking -= max(0, demand[fits[d, j], r]) * times[d, j]
                            if lacking <= 0:
                                break
                        if lacking > 0:
                            slack = -1.0
                            break
            if slack >= 0:
                for j in range(fitting):
                    k = fits[d, j]
                    if critical * weight[k] - value[k] > slack * (1 + SAFE) + 1e-3 * (1 + critical):
                        continue
                    often = times[d, j]
                    fits[d, number[d]] = k
                    times[d, number[d]] = often
                    number[d] += 1
                    if k < makers:
                        middle[d] = number[d]
                    for r in range(rows):
                        if demand[k, r] < smallest[r]:
                            smallest[r] = demand[k, r]
                    if value[k] > top[d, 2]:
                        for _ in range(min(often, 3)):
                            v = value[k]
                            for c in range(3):
                                if v > top[d, c]:
                                    v, top[d, c] = top[d, c], v
            count[d] = no_limit if number[d] else 0
            for r in range(rows):
                if number[d] and smallest[r] > 0:
                    count[d] = min(count[d], max(0, rem[d, r]) // smallest[r])
            place[d] = 0
            good = kept and worth[d] >= (least if all_maximal else best + 1)
            if good and not known[d]:
                looked += REPACKED + EFFORT // 20
                known[d] = distribute(x, -1, whole, part, size, held, EFFORT, space_on[d]) > 0
                good = known[d]
            if good and all_maximal and (makes or not fitting or size > 0):
                good, more = _maximal(x, upper, demand, rem[d], waste, -1, whole, part, size, held, scratch)
                looked += more
                if good:
                    if patterns == len(found):
                        return patterns, best, no_limit, looked, False
                    found[patterns, :] = x
                    patterns += 1
            elif good and not all_maximal:
                best = worth[d]
                found[patterns % len(found), :] = x
                patterns += 1
            if count[d] == 1:
                for j in range(number[d]):
                    k = fits[d, j]
                    if worth[d] + value[k] < (least if all_maximal else best + 1) or not _fits(
                        demand[k], rem[d], waste
                    ):
                        continue
                    admitted, more = admit(
                        x, k, whole, part, size, held, known[d], space_on[d], scratch, refused[d], EFFORT
                    )
                    looked += more
                    if admitted <= 0:
                        continue
                    if all_maximal:
                        good, more = _maximal(x, upper, demand, rem[d], waste, k, whole, part, size, held, scratch)
                        looked += more
                        if not good:
                            continue
                        if patterns == len(found):
                            return patterns, best, no_limit, looked, False
                    else:
                        best = worth[d] + value[k]
                    found[patterns % len(found), :] = x
                    found[patterns % len(found), k] += 1
                    patterns += 1
                number[d] = 0
            if d >= depth - 1 and number[d]:
                return patterns, best, no_limit, looked, False
        i = place[d]
        back = i >= number[d]
        if not back:
            gain, critical = _gain_bound(
                value, weight, fits[d], times[d], i, middle[d], number[d], left[d], count[d], top[d]
            )
            gain += worth[d]
            back = gain < least if all_maximal else gain < best + 1
            looked += 2
        if back:
            d -= 1
            if d >= 0:
                x[taken[d]] -= 1
            continue
        if looked > work:
            # Cut off: the bounds of the open subtrees bound all patterns that were not seen.
            bound = float(best)
            for e in range(d + 1):
                gain, critical = _gain_bound(
                    value, weight, fits[e], times[e], place[e], middle[e], number[e], left[e], count[e], top[e]
                )
                bound = max(bound, worth[e] + gain)
            return patterns, best, int(np.floor(bound)), looked, False
        k = fits[d, i]
        place[d] = i + 1
        admitted, more = admit(
            x, k, whole, part, size, held, known[d], space_on[d], space_on[d + 1], refused[d], QUICK_EFFORT
        )
        looked += more
        if admitted < 0:
            continue
        known[d + 1] = admitted > 0
        refused[d + 1, 0], refused[d + 1, 1] = refused[d, 0], refused[d, 1]
        start = i
        taken[d] = k
        x[k] += 1
        worth[d + 1] = worth[d] + value[k]
        left[d + 1] = left[d] - weight[k]
        for r in range(rows):
            rem[d + 1, r] = rem[d, r] - demand[k, r]
        d += 1
        fresh = True
    return patterns, best, best, looked, True
