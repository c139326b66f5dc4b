"""Bin packing in compiled code; the source is that of `models.bin_packing`, so both give the same answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arrays import Ints
from models.bin_packing import fewest_bins
from optimizer.search.kernel.jit import allocating

_fewest_bins: Any = allocating(fewest_bins)


@allocating
def least_bins(parts: Ints, n: int, size: int, at_most: int) -> int:
    """Return the fewest devices of a size that hold some parts, or ``at_most + 1`` if that is more than ``at_most``.

    Parameters
    ----------
    parts
        The first ``n`` count, each between 1 and ``size``, in any order; they are not changed.
    """
    if n <= 1:
        return min(n, at_most + 1)
    descending = np.sort(parts[:n])[::-1]
    return int(_fewest_bins(descending, n, size, at_most, np.empty(n, np.int64)))
