"""Solves one tier of a problem with CP-SAT, from an incumbent, with earlier tiers held at their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stowplan.models.options import MANY_WORKERS
from stowplan.models.problem import CURVES, DomainCurve, NodeCurve, Placement, Problem
from stowplan.optimizer.cpsat.builder import Builder, Linear, Model
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.rules import limit_moves, post
from stowplan.optimizer.cpsat.task import SolverLimits, Task, solve_task
from stowplan.optimizer.cpsat.terms import Terms
from stowplan.optimizer.cpsat.variables import Variables
from stowplan.optimizer.cpsat.violations import Places
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free, Scope

SECONDS_OF_VARIABLE = 1e-4
"""What it takes to write a (class, node) variable into a model, with its rules and its share of presolve."""

SECONDS_OF_CURVE = 2.5e-4
"""What it takes to write a curve into a model: the curves of domains are most of what models of `spread` consist of."""


def building_seconds(problem: Problem, tier: int, variables: int) -> float:
    """Return about how long it takes to write so many variables, and the curves up to a tier, into a model."""
    terms = [weighted.term for each in problem.tiers[: tier + 1] for weighted in each.terms]
    curves = sum(len(term.held) for term in terms if isinstance(term, NodeCurve | DomainCurve))
    return SECONDS_OF_CURVE * curves + SECONDS_OF_VARIABLE * variables


@dataclass(frozen=True, slots=True)
class TierResult:
    """The result of CP-SAT for a tier.

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
    parameters: CpSatParameters | None = None,
) -> TierResult:
    """Minimize one tier.

    Parameters
    ----------
    reached
        Values of the earlier tiers, which must not get worse.
    incumbent
        A legal placement that has them; it becomes a complete hint.
    free
        What of the incumbent may change; everything if not given. The bound holds for placements that agree with the
        incumbent in the rest.
    gap
        How far the value may be above the bound, as a share of the value, to be good enough.
    """
    free = free or Free.everything(evaluator.problem)
    values = evaluator.evaluate(incumbent).values
    tier_model = build(Index(evaluator), tier, reached, incumbent, values, free)
    if deadline.deterministic:
        limits = SolverLimits(work=deadline.seconds, seed=seed, gap=gap)
    else:
        limits = SolverLimits(max(0.1, deadline.remaining), workers=workers, seed=seed, gap=gap)
    limits = replace(limits, symmetry_variables=(parameters or CpSatParameters()).symmetry_variables)
    found = solve_task(Task(tier_model.model, limits), deadline.stop.is_set)
    placement = None if found.values is None else tier_model.variables.placement(found.values)
    return TierResult(placement, found.bound, found.optimal)


@dataclass(frozen=True, slots=True)
class TierModel:
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
    below: int | None = None,
    most_moves: int | None = None,
    largest_span: int = CpSatParameters().largest_span,
) -> TierModel:
    """Build the model of one tier over the free part of a placement.

    Parameters
    ----------
    reached
        Upper limits of the earlier tiers.
    values
        Values of the incumbent's tiers. An expression covers the free part only; its value in the incumbent relates it
        to the true value.
    lexicographic
        Let later tiers break ties, as far as the range of the objective allows. The objective is then not the value of
        a tier.
    curves_held
        Hold each term of curves in the tier at its value, and minimize the rest. The objective is then not the value of
        a tier either, and later tiers break ties before the curves.
    below
        What the tier must be below, where its value is the objective.
    most_moves
        A limit on moves besides those of the problem.
    largest_span
        Range of the objective up to which later tiers are added.
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
    if most_moves is not None:
        limit_moves(problem.start, variables.started(), most_moves, builder, variables)
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
            if (builder.highest(objective) - builder.lowest(objective) + 1) * span > largest_span:
                break
            objective = following.plus_all(objective, span)
    elif not curves_held:
        objective.constant += values[tier] - builder.value(objective)
        if below is not None:
            builder.at_most(objective, below - 1)
    return TierModel(builder.minimize(objective), variables)
