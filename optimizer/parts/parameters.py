"""Parameters of the split into exact parts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartParameters:
    """When a problem is split, and how the time is divided.

    Parameters
    ----------
    least_pairs
        (class, node) pairs below which parts are solved together, so that there are not hundreds of solves.
    least_share
        Share of all pairs that the parts beside the largest one must have together for a split to be worth it.
    provable
        (class, node) pairs of the largest part up to which parts are proven sooner than the whole.
    time_exponent
        A part gets time in proportion to its pairs to the power of this. Small ones get more than their share, since
        they are proven soon and leave what they do not need to those that follow.
    """

    least_pairs: int = 200
    least_share: float = 0.01
    provable: int = 2_000
    time_exponent: float = 0.75
