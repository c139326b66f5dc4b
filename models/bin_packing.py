"""Bin packing: the fewest devices of one size that hold some parts, and which part goes on which.

Parts come in decreasing order. First-fit decreasing gives a packing, Martello and Toth's bound L2 says how good it
can be, and between the two a depth-first search decides, number by number from below, whether so many devices will
do. The search fills one device after the other, each beginning with the largest part left, and leaves none while a
part would still fit. It gives a number up after `EFFORT` steps and asks for the next: the answer is then a legal
packing that may not be the smallest, the same one on every machine.

`fewest_bins` keeps to what both plain Python and an array compiler understand, so that there is one source for both.

References: S. Martello and P. Toth, *Knapsack Problems* (1990), chapter 8 (first-fit decreasing, bound L2); R. Korf,
*A new algorithm for optimal bin packing*, AAAI 2002 (filling bin by bin); S. Fekete and J. Schepers, *New classes of
fast lower bounds for bin packing problems*, Mathematical Programming 91 (2001) (dual feasible functions).
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from functools import lru_cache

EFFORT = 10_000
"""Parts that the search takes up before it gives up on a number of devices."""

FINEST = 5
"""The highest step of the functions that `dual_weights` takes."""


def fewest_bins(
    parts: Sequence[int], n: int, size: int, at_most: int, where: MutableSequence[int], effort: int = EFFORT
) -> int:
    """Return the fewest devices that hold the first ``n`` parts, or ``at_most + 1`` if that is more than ``at_most``.

    Parameters
    ----------
    parts
        Between 1 and ``size``, in decreasing order.
    where
        ``[n]`` receives the device of each part, if the answer is not above ``at_most``; if it is, the first entry
        is negative where a search was given up, so that ``at_most`` may do after all.
    effort
        Parts that the search takes up before it gives up on a number of devices.
    """
    room = [0] * n
    opened = 0
    total = 0
    large = 0
    for i in range(n):
        total += parts[i]
        if 2 * parts[i] > size:
            large += 1
        k = 0
        while k < opened and room[k] < parts[i]:
            k += 1
        if k == opened:
            room[k] = size
            opened += 1
        room[k] -= parts[i]
        where[i] = k

    # L2: with a threshold, parts too large to share a device with it stand alone, and smaller ones are left out.
    least = max(large, -(-total // size))
    i = large
    while i < n and least < opened:
        threshold = parts[i]
        alone = 0
        beside = 0
        small = 0
        for k in range(n):
            if parts[k] > size - threshold:
                alone += 1
            elif k < large:
                beside += size - parts[k]
            elif parts[k] >= threshold:
                small += parts[k]
        least = max(least, large + max(0, -(-(small - beside) // size)))
        while i < n and parts[i] == threshold:
            i += 1

    if least > at_most:
        return at_most + 1
    if least == opened:
        return opened

    kinds = 0
    value = [0] * n
    number = [0] * n
    first = [0] * n
    for i in range(n):
        if i == 0 or parts[i] != parts[i - 1]:
            value[kinds] = parts[i]
            first[kinds] = i
            kinds += 1
        number[kinds - 1] += 1

    taken = [0] * n  # the kind of each part taken up, in order
    given_up = False
    gap = [0] * n  # room left on the device before, where the part begins a device; else -1
    for target in range(least, opened):
        if target > at_most:
            break
        left = number[:]
        slack = target * size - total
        depth = 0
        rest = 0
        waste = 0
        kind = 0
        steps = 0
        exhausted = False
        while depth < n and not exhausted and steps < effort:
            smallest = kinds - 1
            while left[smallest] == 0:
                smallest -= 1
            full = value[smallest] > rest
            if full:
                kind = 0
                while left[kind] == 0:
                    kind += 1
                possible = waste + rest <= slack
            else:
                while kind < kinds and (left[kind] == 0 or value[kind] > rest):
                    kind += 1
                possible = kind < kinds
            if possible:
                gap[depth] = -1
                if full:
                    gap[depth] = rest
                    waste += rest
                    rest = size
                rest -= value[kind]
                left[kind] -= 1
                taken[depth] = kind
                depth += 1
                steps += 1
                continue
            # Take parts back up to one that did not begin a device, and go on with the next smaller kind there.
            exhausted = True
            while depth > 0 and exhausted:
                depth -= 1
                kind = taken[depth]
                left[kind] += 1
                if gap[depth] >= 0:
                    rest = gap[depth]
                    waste -= rest
                else:
                    rest += value[kind]
                    kind += 1
                    exhausted = False
        if depth == n:
            device = -1
            for i in range(n):
                if gap[i] >= 0:
                    device += 1
                where[first[taken[i]] + left[taken[i]]] = device
                left[taken[i]] += 1
            return target
        given_up |= not exhausted
    if given_up and opened > at_most:
        where[0] = -1
    return min(opened, at_most + 1)


@lru_cache(maxsize=1 << 16)
def pack(parts: tuple[int, ...], size: int) -> tuple[int, tuple[int, ...]]:
    """Return the fewest devices of a size that hold some parts, and the device of each part.

    Parameters
    ----------
    parts
        Between 1 and ``size``, in decreasing order.
    """
    where = [0] * len(parts)
    return fewest_bins(parts, len(parts), size, len(parts), where), tuple(where)


@lru_cache(maxsize=1 << 10)
def dual_weights(parts: tuple[int, ...], size: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return weights of parts such that on every device of a size they add up to a limit at most.

    So, of any set of parts, weight over limit is a lower bound of the devices that it takes; and weights may be added
    up over many nodes, which the number of devices may not. The first are the parts themselves.

    Parameters
    ----------
    parts
        Different sizes, from 1 to ``size``.

    Returns
    -------
    tuple
        Pairs of a limit, and the weight of each part. None says less than another about every part.
    """
    found = [(size, parts)]
    for k in range(1, FINEST + 1):
        # u(k) of Fekete and Schepers: the steps of 1/(k+1) that go into the part, each worth 1/k unless they fill it.
        steps = [(k + 1) * part // size for part in parts]
        even = [(k + 1) * part % size == 0 for part in parts]
        found.append((k * (k + 1), tuple(n * (k if e else k + 1) for n, e in zip(steps, even, strict=True))))
    for threshold in sorted(part for part in parts if 2 * part <= size):
        # Parts that leave less than the threshold take the device, smaller parts than it count nothing.
        cut = [0 if part < threshold else size if part > size - threshold else part for part in parts]
        found.append((size, tuple(cut)))
    kept: list[tuple[int, tuple[int, ...]]] = []
    for limit, weights in found:
        if not any(all(w * other <= v * limit for w, v in zip(weights, vs, strict=True)) for other, vs in kept):
            kept.append((limit, weights))
    return tuple(kept)
