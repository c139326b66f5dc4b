"""Initial duals: those of the surrogate relaxation, which aggregates all nodes of a group into one."""

from __future__ import annotations

import numpy as np

from stowplan.optimizer.column_generation.master.restricted import INFINITE, Duals
from stowplan.optimizer.column_generation.structure import Structure
from stowplan.optimizer.highs import linear_program


def surrogate_duals(structure: Structure, tier: int, reached: tuple[int, ...]) -> Duals:
    """Return the duals of the surrogate relaxation: the Lagrangian bound at them is at least as good as its value.

    Columns are the pods without a node, the nodes in use of each group, and the pods of each kind in each group;
    rows the kinds, the room in each group, and the earlier tiers.
    """
    s = structure
    lp = linear_program()
    rows_of_node = s.demand.shape[1]
    first_tier = s.kinds + s.groups * rows_of_node
    rows = first_tier + tier
    lower = np.concatenate([s.size * 1.0, np.full(rows - s.kinds, -INFINITE)])
    limits = np.array(reached, dtype=np.int64) - s.constant[:tier]
    upper = np.concatenate([np.full(s.kinds, INFINITE), np.zeros(s.groups * rows_of_node), limits * 1.0])
    empty = np.zeros(0, dtype=np.int32)
    lp.addRows(rows, lower, upper, 0, empty, empty, np.zeros(0))

    def column(cost: float, most: float, entries: list[tuple[int, float]]) -> None:
        index = np.array([row for row, _ in entries], dtype=np.int32)
        lp.addCol(cost, 0.0, most, len(entries), index, np.array([amount for _, amount in entries]))

    for k in range(s.kinds):
        tiers = [(first_tier + t, float(s.missing[t, k])) for t in range(tier) if s.missing[t, k]]
        column(float(s.missing[tier, k]), float(s.optional[k]), [(k, 1.0), *tiers])
    for g in range(s.groups):
        space = [(s.kinds + g * rows_of_node + r, -1.0) for r in range(rows_of_node)]
        tiers = [(first_tier + t, float(s.opening[t, g])) for t in range(tier) if s.opening[t, g]]
        column(float(s.opening[tier, g]), float(s.nodes[g]), space + tiers)
        # Rows are divided by the capacity, so that bytes and cores have the same scale.
        share = s.demand / np.maximum(s.residual[g], 1)
        for k in np.flatnonzero(s.upper[g]).tolist():
            used = [(s.kinds + g * rows_of_node + r, float(share[k, r])) for r in np.flatnonzero(s.demand[k]).tolist()]
            column(0.0, float(s.upper[g, k] * s.nodes[g]), [(k, 1.0), *used])
    lp.run()
    row_duals = np.asarray(lp.getSolution().row_dual)
    if len(row_duals) != rows or not np.isfinite(row_duals).all():
        return Duals(np.zeros(s.kinds), np.zeros(tier))
    return Duals(np.maximum(0.0, row_duals[: s.kinds]), np.maximum(0.0, -row_duals[first_tier:]))
