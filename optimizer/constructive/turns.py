"""When constructive heuristics run in a solve, and for how long."""

from __future__ import annotations

from stowplan.optimizer.constructive.clearing import Clearing
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
        waits = self._waits(tiers)
        with run.stage(NAME, self._share(tiers)) as deadline:
            warm_start(
                run.evaluator,
                run.best,
                deadline,
                lambda placement: run.offer(placement, NAME),
                tiers=tiers,
                parameters=self._parameters,
            )
        cut = waits and deadline.over  # all tiers have a longer turn once it is known which pods have to wait
        if tiers == len(run.values) and not cut:
            self._done = run.values[:-1]

    def take_once(self) -> None:
        """Improve all tiers, unless that was done and no tier but the last one has changed since."""
        if self._done != self._run.values[:-1]:
            self.take(len(self._run.values))

    def _waits(self, tiers: int) -> bool:
        """Whether moves are limited, and pods wait that one of the first tiers counts."""
        run, problem = self._run, self._run.evaluator.problem
        waits = any(run.is_open(tier) and problem.tiers[tier].counts_unscheduled for tier in range(tiers))
        return waits and problem.move_limit is not None

    def _share(self, tiers: int) -> float:
        run, chosen, problem = self._run, self._parameters, self._run.evaluator.problem
        if problem.move_limit is not None:
            if not self._waits(tiers):
                return chosen.share
            # Few moves that let pods in are found by engines that look further.
            most = max(chosen.waiting_seconds, chosen.waiting_of_node * len(problem.nodes))
            return min(chosen.share, run.share_of(most))
        share, of_node = self._first_turn(tiers) if self._done is None else (chosen.share, chosen.of_node)
        most = max(chosen.seconds, of_node * len(problem.nodes))
        return min(share, run.share_of(most))

    def _first_turn(self, tiers: int) -> tuple[float, float]:
        """Return share and seconds for each node of the first turn.

        Annealing gains more where nothing limits moves, but less than what makes many moves in large clusters.
        """
        chosen, problem = self._parameters, self._run.evaluator.problem
        if any(Spreading.suits(problem, tier) for tier in range(tiers)):
            return chosen.spreading_share, chosen.spreading_of_node
        if any(Clearing.suits(problem, tier, chosen) for tier in range(tiers)):
            return chosen.clearing_share, chosen.clearing_of_node
        if any(Leveling.suits(problem, tier, chosen) for tier in range(tiers)):
            return chosen.leveling_share, chosen.of_node
        return chosen.share, chosen.of_node
