"""Stand-in."""

import numpy as np

from optimizer.search.kernel.image import Int64
from optimizer.search.kernel.jit import compiled


@compiled
def least_bins(parts: Int64, n: int, size: int, at_most: int) -> int:
    xs = np.sort(parts[:n])[::-1]
    free = np.zeros(n, dtype=np.int64)
    used = 0
    for i in range(n):
        placed = False
        for b in range(used):
            if free[b] >= xs[i]:
                free[b] -= xs[i]
                placed = True
                break
        if not placed:
            free[used] = size - xs[i]
            used += 1
    return min(used, at_most + 1)
