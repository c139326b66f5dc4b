"""Solves one tier of a problem with CP-SAT, from an incumbent, under what earlier tiers have reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.models.options import MANY_WORKERS
from stowplan.models.problem import CURVES, Placement
from stowplan.optimizer.cpsat.builder import Builder, Linear, Model
from stowplan.optimizer.cpsat.rules import post
from stowplan.optimizer.cpsat.task import Limits, Task, answer
from stowplan.optimizer.cpsat.terms import Terms
from stowplan.optimizer.cpsat.variables import Variables
from stowplan.optimizer.cpsat.violations import Places
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free, Scope

LARGEST_SPAN = 2**40
"""How far an objective may reach that weighs several tiers; beyond, the solver's real numbers get inexact."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What CP-SAT made of a tier.

    Parameters
    ----------
    placement
        The best placement found, or ``None``.
    bound
        A proven lower bound of the tier's value, or ``None``.
    optimal
        Whether the placement is proven to be optimal.
    """

    placement: Placement | None
    bound: int | None
    optimal: bool


def solve_tier(
    evaluator: Evaluator,
    tier: int,
    reached: Sequence[int],
    incumbent: Placement,
    deadline: Deadline,
    *,
    workers: int = MANY_WORKERS,
    seed: int = 0,
    free: Free | None = None,
    gap: float = 0.0,
) -> Attempt:
    """Minimise one tier.

    Parameters
    ----------
    reached
        Values of the earlier tiers, which must not get worse.
    incumbent
        A legal placement that has them; it becomes a complete hint.
    free
        What of the incumbent may change; everything if not given. The bound speaks of placements that agree with the
        incumbent in the rest.
    gap
        How far the value may be above the bound, as a share of the value, to be good enough.
    """
    free = free or Free.everything(evaluator.problem)
    values = evaluator.evaluate(incumbent).values
    restricted = build(Index(evaluator), tier, reached, incumbent, values, free)
    if deadline.deterministic:
        limits = Limits(work=deadline.seconds, seed=seed, gap=gap)
    else:
        limits = Limits(max(0.1, deadline.remaining), workers=workers, seed=seed, gap=gap)
    found = answer(Task(restricted.model, limits), deadline.stop.is_set)
    placement = None if found.values is None else restricted.variables.placement(found.values)
    return Attempt(placement, found.bound, found.optimal)


@dataclass(frozen=True, slots=True)
class Restricted:
    """The model of one tier, and the way back from its solutions to placements."""

    model: Model
    variables: Variables


def build(
    index: Index,
    tier: int,
    reached: Sequence[int],
    incumbent: Placement,
    values: Sequence[int],
    free: Free,
    *,
    lexicographic: bool = False,
    curves_held: bool = False,
) -> Restricted:
    """Build the model of one tier over the free part of a placement.

    Parameters
    ----------
    reached
        What the earlier tiers must not exceed.
    values
        Values of the incumbent's tiers. An expression speaks of the free part only; what it is in the incumbent ties
        it to the true value.
    lexicographic
        Let the tiers after it decide among placements that are equal in this one, as far as numbers allow. The
        objective is then no tier's value.
    curves_held
        Hold each term of curves in the tier to what it comes to, and minimise the rest. The objective is then no tier's
        value either, and among equals in the rest later tiers decide before the curves.
    """
    problem = index.problem
    builder = Builder()
    scope = Scope(index, incumbent, free)
    touched = index.rules_of.of(free.classes)
    variables = Variables(builder, scope, [problem.rules[i] for i in touched])
    violation = Linear()
    for i in touched:
        rule = problem.rules[i]
        post(rule, builder, variables, Places(rule, index.before.get(i), builder, variables, violation))
    terms = Terms(builder, variables, violation)

    def total(number: int, *, hold: bool = False) -> Linear:
        whole = Linear()
        for k in index.terms_of[number].of(free.classes):
            weighted = problem.tiers[number].terms[k]
            expression = terms.expression(weighted.term)
            if hold and isinstance(weighted.term, CURVES):
                builder.at_most(expression, builder.value(expression))
            else:
                whole.extend(expression, weighted.weight)
        return whole

    for earlier, value in enumerate(reached):
        expression = total(earlier)
        builder.at_most(expression, value - values[earlier] + builder.value(expression))
    objective = total(tier, hold=curves_held)
    if lexicographic:
        for later in range(tier + 1, len(problem.tiers)):
            following = total(later)
            span = builder.highest(following) - builder.lowest(following) + 1
            if (builder.highest(objective) - builder.lowest(objective) + 1) * span > LARGEST_SPAN:
                break
            objective = following.plus_all(objective, span)
    elif not curves_held:
        objective.constant += values[tier] - builder.value(objective)
    return Restricted(builder.minimize(objective), variables)
