"""The turns that CP-SAT has: one tier of the whole problem at a time, to improve it and to prove how good it can be."""

from __future__ import annotations

from stowplan.models.errors import InternalError
from stowplan.models.options import Options
from stowplan.models.problem import NodeCurve
from stowplan.optimizer.cpsat.solve import building_seconds, solve_tier
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.run import Run

NAME = "CP-SAT"
"""What results call it."""


class ProofTurns:
    """The turns of a run in which CP-SAT has a whole tier."""

    def __init__(self, run: Run, options: Options, parameters: Parameters) -> None:
        self._run, self._options = run, options
        self._parameters, self._cpsat = parameters.portfolio, parameters.cpsat

    def take(self, tier: int, share: float | None = None) -> bool:
        """Improve and bound a tier, in a share of the time; return whether there is a better answer.

        Parameters
        ----------
        share
            If not given, an equal one for each open tier from here on, or the part of it that a proof may be worth.
        """
        run, options = self._run, self._options
        if run.over or not run.is_open(tier):
            return False
        if not run.memory.admits(run.variables * self._parameters.bytes_per_variable):
            run.note("skipped the exact model: it would not fit into memory")
            return False
        share = self._share(tier) if share is None else share
        building = building_seconds(run.evaluator.problem, tier, run.variables)
        if not options.deterministic and building > share * run.left:
            return False
        with run.stage(NAME, share, tier) as deadline:
            try:
                found = solve_tier(
                    run.evaluator,
                    tier,
                    run.values[:tier],
                    run.best,
                    deadline,
                    workers=options.workers,
                    seed=options.seed,
                    gap=options.gap,
                    parameters=self._cpsat,
                )
            except InternalError as error:
                run.note(f"{NAME} was not used for tier {run.evaluator.problem.tiers[tier].name}: {error}")
                return False
        run.raise_bound(tier, found.bound, NAME)
        return found.placement is not None and run.offer(found.placement, NAME)

    def _share(self, tier: int) -> float:
        """Return CP-SAT's share of the time: where proofs are out of reach, LNS makes better use of it."""
        run, chosen = self._run, self._parameters
        share = 1 / max(1, sum(run.is_open(later) for later in range(tier, len(run.values))))
        terms = [weighted.term for weighted in run.evaluator.problem.tiers[tier].terms]
        if run.variables > chosen.largest_curved_model and any(isinstance(term, NodeCurve) for term in terms):
            return share * chosen.curved_cpsat_share
        small = run.variables <= self._options.largest_model // 2
        return share * (chosen.cpsat_share if small else chosen.large_cpsat_share)
