"""Questions about the final state of a problem as it is today."""

from __future__ import annotations

from stowplan.models.problem import Problem
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.bounding import Question


def asked_today(problem: Problem) -> Question:
    """Ask for a bound of the tier with a cost of the final state, from today's placement."""
    tier = next(t for t, one in enumerate(problem.tiers) if one.final is not None)
    values = Evaluator(problem).evaluate(problem.start).values
    return Question(problem, upper_bounds(problem), tier, values[:tier], problem.start, values[tier], kernels=False)
