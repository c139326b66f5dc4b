"""A bound of a tier with loads and a cost of the final state: each by itself, added up.

What no placement has less of than ``a`` of the one and ``b`` of the other, none has less of than ``a + b`` of both.
Curves of loads are bounded by pricing whole nodes, which is far sharper than tangents are, above all where moves are
limited; the cost of the final state is left with multipliers that serve it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stowplan.models.problem import NodeCurve, Part, Placement, Problem
from stowplan.optimizer.bounds import BOUNDS, WITHOUT_KERNELS, best_bound
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.bound import FinalStateBound, whole
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.node_changes.engine import NodeChangeEngine


def splits(problem: Problem, tier: int) -> bool:
    """Whether a tier has both: a cost of the final state, and curves of loads."""
    terms = [weighted.term for weighted in problem.tiers[tier].terms]
    return problem.tiers[tier].final is not None and any(isinstance(term, NodeCurve) for term in terms)


def split_bound(
    problem: Problem,
    upper: NDArray[np.int32],
    tier: int,
    parts: Sequence[Part],
    reached: Sequence[int],
    incumbent: Placement,
    deadline: Deadline,
    parameters: FinalStateParameters,
    *,
    kernels: bool,
) -> int:
    """Return a lower bound of a tier for which `splits` holds.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    parts
        What each plugin costs at least.
    reached
        Values of the earlier tiers, which must not get worse.
    incumbent
        A legal placement that has them.
    kernels
        Whether bounds that need compiled kernels are asked.
    """
    both = problem.tiers[tier]
    final = both.final
    assert final is not None
    first = deadline.share(parameters.loads_share)
    found = loads_bound(problem, upper, tier, reached, incumbent, first, kernels=kernels)
    cost = final.cost(incumbent)
    alone = FinalStateBound(
        problem, replace(both, terms=()), parts, upper, incumbent, cost, parameters, kernels=kernels
    )
    return found + whole(alone.solve(deadline), cost, final.step)


def loads_bound(
    problem: Problem,
    upper: NDArray[np.int32],
    tier: int,
    reached: Sequence[int],
    incumbent: Placement,
    deadline: Deadline,
    *,
    kernels: bool,
) -> int:
    """Return a lower bound of a tier without its cost of the final state, which is never less than nothing.

    Its parameters are those of `split_bound`.
    """
    both = problem.tiers[tier]
    loads = replace(problem, tiers=(*problem.tiers[:tier], replace(both, final=None, surrogate=())))
    evaluator = Evaluator(loads)
    value = evaluator.evaluate(incumbent).values[tier]
    if kernels and NodeChangeEngine.suits(loads, tier):
        return NodeChangeEngine(evaluator, upper, tier, reached, incumbent).bound(deadline, value) or 0
    bounds = BOUNDS if kernels else WITHOUT_KERNELS
    return best_bound(evaluator, upper, tier, reached, value, deadline, bounds=bounds)[0]
