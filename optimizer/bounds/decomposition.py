"""Lower bounds by taking the nodes apart: every node answers to prices by itself, in whole pods.

The equations that tie nodes together, ``Σ_n y[k,n] + u[k] = size[k]``, are moved into the objective with a multiplier
for each kind of pods (Lagrangian relaxation). What remains falls into one small program for each node. For any
multipliers the sum of the nodes' minima is a lower bound, so nothing that is inexact in finding them can make the bound
wrong; it is evaluated in whole numbers. Good multipliers come from the linear relaxation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.arrays import Ints
from models.problem import Excess, MoveBudget, MovePeak, Open, Problem, Unplaced
from optimizer.bounds.interior import Dual, linear_dual
from optimizer.bounds.node_search import search_nodes
from optimizer.bounds.programs import LARGEST_NUMBER, Programs, node_programs
from optimizer.control import Deadline
from optimizer.evaluate.evaluation import Judge

NAME = "node decomposition"
"""What results call this bound."""

LARGEST = 4_000_000
"""Kinds times nodes above which this is not tried."""

BUDGETS = (2_000, 20_000)
"""Choices that the search of one node may look into, in rounds over all nodes."""

CHUNK = 16
"""Nodes between two looks at the clock."""


def decomposition_bound(
    judge: Judge, upper: NDArray[np.int32], tier: int, reached: Sequence[int], deadline: Deadline
) -> int | None:
    """Return a lower bound of one tier, or ``None`` if none was found.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold; see `optimizer.cpsat.variables.most`.
    reached
        Values of the earlier tiers, which must not get worse.
    """
    programs = node_programs(judge, upper, tier, reached, LARGEST)
    if programs is None or deadline.over:
        return None
    dual = linear_dual(programs, deadline.share(0.6))
    return evaluate(programs, dual, deadline)


def reads_all(problem: Problem, tier: int) -> bool:
    """Whether the relaxation reads nothing of a tier that is not read here, so that it cannot bound it better."""
    if any(isinstance(rule, MoveBudget) for rule in problem.rules):
        return False
    this = [weighted.term for weighted in problem.tiers[tier].terms]
    earlier = [weighted.term for before in problem.tiers[:tier] for weighted in before.terms]
    return not any(isinstance(term, MovePeak | Open) for term in this) and all(
        isinstance(term, Excess | Unplaced) for term in earlier
    )


def evaluate(programs: Programs, dual: Dual, deadline: Deadline) -> int:
    """Return the bound that multipliers give: at once from their prices, then better by search, as time allows."""
    tables = programs.tables
    earned, prices = whole(programs, dual)
    typical = typical_loads(programs)
    bounds = np.full(len(programs.times), -(1 << 62), dtype=np.int64)
    answers = np.zeros(tables.upper.shape, dtype=np.int64)
    nodes = len(bounds)
    search_nodes(tables, earned, prices, typical, 0, 0, nodes, bounds, answers)
    for budget in BUDGETS:
        for begin in range(0, nodes, CHUNK):
            if deadline.over:
                break
            end = min(nodes, begin + CHUNK)
            search_nodes(tables, earned, prices, typical, budget, begin, end, bounds, answers)
    return in_units(programs, earned, bounds)


def in_units(programs: Programs, earned: Ints, bounds: Ints) -> int:
    """Add up what nodes and waiting pods cost at least, in units of the tier. No sum here can overflow."""
    waiting = np.minimum(0, programs.unplaced - earned).tolist()
    total = programs.constant
    total += sum(count * bound for count, bound in zip(programs.times.tolist(), bounds.tolist(), strict=True))
    total += sum(size * each for size, each in zip(programs.size.tolist(), earned.tolist(), strict=True))
    total += sum(spare * each for spare, each in zip(programs.spare.tolist(), waiting, strict=True))
    bound: int = max(0, -(-total // programs.grain))
    return bound


def typical_loads(programs: Programs) -> Ints:
    """``[r]`` the load of a typical pod."""
    asked = np.abs(programs.tables.demand)
    number = np.maximum(1, ((asked > 0) * programs.size).sum(axis=1))
    typical: Ints = np.maximum(1, (asked * programs.size).sum(axis=1) // number)
    return typical


def whole(programs: Programs, dual: Dual) -> tuple[Ints, Ints]:
    """Round multipliers ``[k]`` and prices ``[m, r]`` to whole grains, kept where no product can overflow."""
    tables = programs.tables
    pods = max(1, int(tables.upper.sum(axis=1).max(initial=1)))
    most = LARGEST_NUMBER // pods
    reach = np.maximum(np.abs(tables.floor), np.abs(tables.wall)).max(axis=0, initial=1)
    heaviest = np.abs(tables.demand).max(axis=1, initial=1) * pods
    dearest = LARGEST_NUMBER // np.maximum(1, np.maximum(reach, heaviest)) if len(tables.demand) else np.zeros(0)
    earned = np.clip(np.nan_to_num(dual.earned), -most, most)
    prices = np.clip(np.nan_to_num(dual.prices), -dearest, dearest)
    return np.rint(earned).astype(np.int64), np.ascontiguousarray(np.rint(prices).astype(np.int64))
