"""When constructive heuristics run in a solve, and for how long."""

from __future__ import annotations

from stowplan.optimizer.constructive.leveling import Leveling
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.spreading import Spreading
from stowplan.optimizer.constructive.warm_start import warm_start
from stowplan.optimizer.run import Run

NAME = "constructive heuristics"


class ConstructiveTurns:
    """The turns that constructive heuristics have in a run."""

    def __init__(self, run: Run, parameters: ConstructiveParameters) -> None:
        self._run, self._parameters = run, parameters
        self._done: tuple[int, ...] | None = None

    def take(self, tiers: int) -> None:
        """Improve the first tiers, from the incumbent."""
        run = self._run
        if run.over or run.closed:
            return
        with run.stage(NAME, self._share(tiers)) as deadline:
            warm_start(
                run.evaluator,
                run.best,
                deadline,
                lambda placement: run.offer(placement, NAME),
                tiers=tiers,
                parameters=self._parameters,
            )
        if tiers == len(run.values):
            self._done = run.values[:-1]

    def take_once(self) -> None:
        """Improve all tiers, unless that was done and no tier but the last one has changed since."""
        if self._done != self._run.values[:-1]:
            self.take(len(self._run.values))

    def _share(self, tiers: int) -> float:
        run, chosen, problem = self._run, self._parameters, self._run.evaluator.problem
        if problem.move_limit is not None:
            return chosen.share
        # Annealing gains more where nothing limits moves, but less than spreading, of which the first turn gains most.
        spreads = self._done is None and any(Spreading.suits(problem, tier) for tier in range(tiers))
        levels = self._done is None and any(Leveling.suits(problem, tier, chosen) for tier in range(tiers))
        of_node = chosen.spreading_of_node if spreads else chosen.of_node
        most = max(chosen.seconds, of_node * len(problem.nodes))
        share = chosen.spreading_share if spreads else chosen.leveling_share if levels else chosen.share
        return min(share, most / max(run.left, most))
