"""Lower bounds: values that no legal placement is below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.models.result import TRIVIAL
from stowplan.optimizer.bounds.bound import Bound, BoundRequest, CostClass
from stowplan.optimizer.bounds.capacity import CapacityBound
from stowplan.optimizer.bounds.emptying import EmptyingBound, EmptyingMovesBound
from stowplan.optimizer.bounds.evictions import EvictionBound
from stowplan.optimizer.bounds.few_moves import FewMovesBound
from stowplan.optimizer.bounds.lagrangian import LagrangianBound
from stowplan.optimizer.bounds.leaving import LeavingBound
from stowplan.optimizer.bounds.linear import LinearBound
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.bounds.room import RoomBound
from stowplan.optimizer.bounds.surrogate import SurrogateBound
from stowplan.optimizer.bounds.waiting import WaitingBound
from stowplan.optimizer.bounds.water_filling import WaterFillingBound
from stowplan.optimizer.bounds.workload_spread import WorkloadSpreadBound
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator

BOUNDS: tuple[Bound, ...] = (
    CapacityBound(),
    WaitingBound(),
    EmptyingBound(),
    EmptyingMovesBound(),
    RoomBound(),
    EvictionBound(),
    LeavingBound(),
    FewMovesBound(),
    WaterFillingBound(),
    WorkloadSpreadBound(),
    SurrogateBound(),
    LagrangianBound(),
    LinearBound(),
)
"""All bounds, in the order in which they are computed: cheap ones first. Add a bound here."""

CHEAP = tuple(bound for bound in BOUNDS if bound.cost is CostClass.CHEAP)
"""Those that take no time."""

WITHOUT_KERNELS = tuple(bound for bound in BOUNDS if not isinstance(bound, LagrangianBound))
"""Those that need no compiled kernels."""


def best_bound(
    evaluator: Evaluator,
    upper: NDArray[np.int32],
    tier: int,
    reached: Sequence[int],
    value: int,
    deadline: Deadline,
    parameters: BoundParameters | None = None,
    cpsat: CpSatParameters | None = None,
    bounds: Sequence[Bound] = BOUNDS,
    proven: Sequence[int] = (),
) -> tuple[int, str]:
    """Return the best lower bound of one tier and its name; among equal ones that of the first.

    No bound is computed any more once one meets ``value``, or dominates those that follow. An expensive bound that
    does not read the whole tier is not worth it where a cheap one is near. Without time, one that reads the whole tier
    still begins where nothing is known.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold; see `stowplan.optimizer.domains.upper_bounds`.
    reached
        Values of the earlier tiers, which must not get worse.
    value
        A value of this tier that is known to be reachable.
    bounds
        The bounds to compute, in their order.
    proven
        Lower bounds of the earlier tiers, if they are known.
    """
    parameters = parameters or BoundParameters()
    request = BoundRequest(
        evaluator, upper, tier, reached, value, deadline, parameters, cpsat or CpSatParameters(), proven
    )
    small = np.count_nonzero(upper) <= parameters.small
    best, name = 0, TRIVIAL
    for bound in bounds:
        if best >= value:
            break
        if not bound.supports(evaluator.problem, tier):
            continue
        dominates = bound.dominates(evaluator.problem, tier)
        if bound.cost is CostClass.EXPENSIVE:
            near = value - best <= parameters.near * value
            late = deadline.over and (best > 0 or deadline.stop.is_set() or not dominates)
            if late or (near and not small and not dominates):
                break
        found = bound(request)
        if found is not None and found > best:
            best, name = found, bound.name
        if found is not None and dominates:
            break
    return best, name
