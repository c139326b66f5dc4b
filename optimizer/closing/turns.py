"""When nodes are closed: in a tier that counts them, before column generation is asked for better."""

from __future__ import annotations

from stowplan.models.options import Options
from stowplan.models.problem import Placement
from stowplan.optimizer.closing.engine import NAME, ClosingEngine
from stowplan.optimizer.closing.parameters import ClosingParameters
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.run import Run


class ClosingTurns:
    """The turns that the closing of nodes has in a run."""

    def __init__(
        self, run: Run, options: Options, parameters: ClosingParameters, rearrangement: RearrangementParameters
    ) -> None:
        self.run, self.options, self.parameters, self.rearrangement = run, options, parameters, rearrangement

    def suit(self, tier: int) -> bool:
        """Whether the nodes that a tier counts can be closed, and that is worth it.

        Where no tier follows, all is packed anew, which column generation does best; where moves have run out, changes
        of nodes find better ones.
        """
        problem = self.run.evaluator.problem
        return (
            self.options.kernels
            and tier + 1 < len(problem.tiers)
            and self.run.is_open(tier)
            and ClosingEngine.suits(problem, tier, self.rearrangement)
            and self._engine(tier).has_moves(self.run.best)
        )

    def begin(self, tiers: int) -> bool:
        """Close nodes before their changes are searched, under a limit on moves; return whether that was tried.

        The first open one of so many tiers is to count them.
        """
        tier = next((tier for tier in range(tiers) if self.run.is_open(tier)), tiers)
        limited = self.run.evaluator.problem.move_limit is not None
        return limited and tier < tiers and self.close(tier, self.parameters.first_share)

    def close(self, tier: int, share: float | None = None) -> bool:
        """Close nodes that a tier counts; return whether that was tried."""
        if self.run.over or not self.suit(tier):
            return False
        with self.run.stage(NAME, self.parameters.share if share is None else share, tier) as deadline:
            self._engine(tier).close(self.run.best, deadline, self.options.seed, self.run.enough[tier], self._offer)
        return True

    def leave(self) -> bool:
        """Take pods away from the nodes where the first open tier charges them; return whether that was tried.

        Where proofs are in reach, CP-SAT is quicker.
        """
        run, problem = self.run, self.run.evaluator.problem
        tier = next((tier for tier in range(len(run.values) - 1) if run.is_open(tier)), None)
        if tier is None or run.over or not self.options.kernels or problem.move_limit == 0:
            return False
        if run.variables <= self.rearrangement.provable:
            return False
        if not ClosingEngine.names_nodes(problem, tier, self.rearrangement):
            return False
        with run.stage(NAME, self.parameters.leaving_share, tier) as deadline:
            self._engine(tier).leave(run.best, deadline, self.options.seed, self._offer)
        return True

    def spare(self, tier: int) -> None:
        """Improve the tier that follows one whose nodes were closed, which has cost many moves."""
        run, engine = self.run, self._engine(tier)
        if run.over or not run.is_open(tier + 1) or not engine.settles:
            return
        with run.stage(NAME, self.parameters.settling_share, tier + 1) as deadline:
            engine.settle(run.best, deadline, self.options.seed, self._offer, run.enough[tier + 1])

    def _engine(self, tier: int) -> ClosingEngine:
        return ClosingEngine(self.run.evaluator, tier, self.parameters, self.rearrangement)

    def _offer(self, found: Placement) -> bool:
        return self.run.offer(found, NAME)
