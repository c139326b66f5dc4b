"""Constraint violations of pods that the user or the executor keeps: they count, whichever pods may move.

The problem of an executor holds only the pods that it can evict. What a placement is worth must not depend on that. So
the rules are compiled once more as if every pod could move that nothing of its own ties to its node, and what today's
placement violates of them, beyond what it violates in the problem, is the constant of the tier.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from stowplan.models.objective import FEASIBILITY, Objective, TierSettings
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.compiler.goals import DrainAndAdmit

_RULES_ALONE = (TierSettings(name="moves", moves=1),)


def with_violations_of_kept_pods(compiled: Compiled, drained: Collection[str]) -> Compiled:
    """Return a problem whose tier of constraint violations shows those of kept pods too.

    Parameters
    ----------
    drained
        Names of the nodes to drain.
    """
    if not any(compiled.participants.kept):
        return compiled
    whole = compile_problem(
        compiled.snapshot,
        compiled.profile,
        Objective(repair=compiled.objective.repair, tiers=_RULES_ALONE),
        drain_and_admit=DrainAndAdmit(drain=frozenset(drained)),
    )
    constant = _violations_today(whole) - _violations_today(compiled)
    tiers = tuple(
        replace(tier, constant=constant) if tier.name == FEASIBILITY else tier for tier in compiled.problem.tiers
    )
    return replace(compiled, problem=replace(compiled.problem, tiers=tiers))


def _violations_today(compiled: Compiled) -> int:
    """Return the value of the tier of constraint violations; its scale is the same in every problem."""
    problem = compiled.problem
    position = next(t for t, tier in enumerate(problem.tiers) if tier.name == FEASIBILITY)
    return Evaluator(problem).evaluate(problem.start).values[position]
