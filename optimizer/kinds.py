"""Kinds: classes that a relaxation does not tell apart, counted together.

`stowplan.models.problem.refine` finds them; the functions here read and add up what is given for each class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement


def alike(rows: NDArray[Any]) -> Ints:
    """``[i]`` a number that two rows share exactly if they are equal, from 0 in the order of the first of each."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows], dtype=np.int64)


def reach(upper: NDArray[np.int32]) -> Ints:
    """``[c]`` a number that two classes share exactly if they can be on the same nodes.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold; see `stowplan.optimizer.domains.upper_bounds`.
    """
    return alike(np.packbits(upper > 0, axis=1))


def merged(per_class: NDArray[np.signedinteger[Any]], kind: Ints) -> Ints:
    """Add up ``[c, …]`` over the classes of each kind: ``[k, …]``."""
    total = np.zeros((int(kind.max(initial=-1)) + 1, *per_class.shape[1:]), dtype=np.int64)
    if per_class.ndim == 1:
        np.add.at(total, kind, per_class)
    else:
        # Row by row: a table has an entry for each class and node, so that a copy would fill the memory.
        for k, row in zip(kind.tolist(), per_class, strict=True):
            total[k] += row
    return total


def pods_by_kind(placement: Placement, kind: Ints, kinds: int, nodes: int) -> Ints:
    """``[n, k]`` how many pods of each kind a placement has on each node."""
    table = np.zeros((nodes, kinds), dtype=np.int64)
    np.add.at(table, (placement.node, kind[placement.cls]), placement.count)
    return table
