"""All constructive heuristics one after the other."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.models.problem import Placement
from stowplan.optimizer.constructive.clearing import Clearing
from stowplan.optimizer.constructive.descent import Descent
from stowplan.optimizer.constructive.ejection import make_room
from stowplan.optimizer.constructive.emptying import costs_of_nodes, empty_nodes
from stowplan.optimizer.constructive.insertion import insert
from stowplan.optimizer.constructive.leveling import Leveling
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.spreading import Spreading
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator


def warm_start(
    evaluator: Evaluator,
    placement: Placement,
    deadline: Deadline,
    found: Callable[[Placement], object],
    *,
    tiers: int | None = None,
    parameters: ConstructiveParameters | None = None,
) -> None:
    """Improve a legal placement by insertion and ejection, by emptying nodes, and by descent in one tier after another.

    Tiers that count pods in domains are improved by spreading, which is a descent without tables; where moves are
    limited, once more by descent.

    Parameters
    ----------
    found
        Called with the placement that each heuristic comes to. It is legal, and no worse than the one before in the
        tiers that the heuristic improves; tiers after these may be worse.
    tiers
        How many of the first tiers to improve; all if not given. Moves that later tiers would spend are then left.
    """
    problem, parameters = evaluator.problem, parameters or ConstructiveParameters()
    improved = range(len(problem.tiers) if tiers is None else tiers)
    if max(problem.pods, len(problem.nodes)) > parameters.largest or not problem.nodes:
        return
    state = State(evaluator, placement)
    if insert(state, deadline, parameters):
        found(state.placement)
    if make_room(state, deadline, parameters):
        found(state.placement)
    for tier in improved:
        if deadline.over:
            return
        counts_nodes = bool(costs_of_nodes(problem.tiers[tier], state.nodes).any())
        if Clearing.suits(problem, tier, parameters) and _improved(Clearing(state, tier, parameters), tier, deadline):
            found(state.placement)
        if counts_nodes and empty_nodes(state, tier, deadline, parameters):
            found(state.placement)
    first = next((tier for tier in improved if Spreading.suits(problem, tier)), len(improved))
    _level(state, improved[:first], deadline, found, parameters, spreads=False)
    before, spread = state.placement, improved[first:]
    _level(state, spread, deadline, found, parameters, spreads=True)
    if problem.limits_any_moves and spread:
        # Which of the two spends few moves better is not known before.
        state.replace(before)
        _level(state, spread, deadline, found, parameters, spreads=False)


def _level(
    state: State,
    improved: range,
    deadline: Deadline,
    found: Callable[[Placement], object],
    parameters: ConstructiveParameters,
    *,
    spreads: bool,
) -> None:
    """Improve one tier after another by leveling, and by descent; or, if it ``spreads``, by spreading where it can."""
    problem = state.problem
    for tier in improved:
        if deadline.over:
            return
        if Leveling.suits(problem, tier, parameters) and _improved(Leveling(state, tier, parameters), tier, deadline):
            found(state.placement)
        if spreads and Spreading.suits(problem, tier):
            improves = Spreading(state, tier, parameters).run(deadline)
        else:
            improves = Descent.suits(problem, tier, parameters) and Descent(state, tier, parameters).run(deadline)
        if improves:
            found(state.placement)


def _improved(heuristic: Clearing | Leveling, tier: int, deadline: Deadline) -> bool:
    """Run a heuristic of many moves at once; go back if it did not improve the tiers up to this one.

    A violation that was repaired since the start may come back with moves that are legal together.
    """
    state, before = heuristic.state, heuristic.state.placement
    heuristic.run(deadline)
    if state.placement is before:
        return False
    values = [state.evaluator.evaluate(placement).values[: tier + 1] for placement in (before, state.placement)]
    if values[1] < values[0]:
        return True
    state.replace(before)
    return False
