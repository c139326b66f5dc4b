"""Divides the nodes among workers, round after round, and puts together what they find."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.options import Options
from stowplan.models.problem import MovePeak, Placement
from stowplan.optimizer.backend import RayBackend
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.lns.features import Features
from stowplan.optimizer.lns.lns import OperatorState
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.regions.budgets import budgets, limits_moves
from stowplan.optimizer.regions.drawing import dealt
from stowplan.optimizer.regions.elsewhere import RegionsElsewhere, SolveRegion
from stowplan.optimizer.regions.parameters import RegionParameters
from stowplan.optimizer.regions.region import Division, joined
from stowplan.optimizer.run import Run

NAME = "regions in the cluster"
"""What results call it."""


class RegionEngine:
    """Has regions solved by workers, and drawn anew across the borders of the last ones.

    Parameters
    ----------
    backend
        Whose workers they are; if not given, there is nothing to do.
    solve
        Solves a region.
    state
        Returns what large neighborhood search knows of the problem, such as reduced costs.
    bound
        Bounds a tier, while workers solve the first regions of it.

    Attributes
    ----------
    bounded
        The tiers that were.
    """

    def __init__(
        self,
        run: Run,
        options: Options,
        parameters: RegionParameters,
        walking: RearrangementParameters,
        backend: RayBackend | None,
        solve: SolveRegion,
        state: Callable[[], OperatorState],
        bound: Callable[[int], None],
    ) -> None:
        self._run, self._options, self._parameters = run, options, parameters
        self._walking, self._backend, self._solve, self._state = walking, backend, solve, state
        self._bound = bound
        self.bounded: set[int] = set()

    @property
    def regions(self) -> int:
        """How many regions there are, if nodes are enough; 1 or none where there is one worker alone."""
        chosen, workers = self._parameters, self._backend.workers if self._backend else 1
        most = workers * chosen.per_worker if workers > 1 else 1
        return min(most, len(self._run.evaluator.problem.nodes) // chosen.least_nodes)

    @property
    def suits(self) -> bool:
        """Whether there are regions to solve, time for it, and nothing counts for which all are one."""
        run = self._run
        terms = [weighted.term for tier in run.evaluator.problem.tiers for weighted in tier.terms]
        worth = run.left * self._parameters.share >= 2 * self._parameters.least_seconds
        return self.regions > 1 and worth and not run.closed and not any(isinstance(term, MovePeak) for term in terms)

    def work(self) -> None:
        """Solve regions, as long as rounds gain something."""
        run, chosen = self._run, self._parameters
        if self._backend is None or not self.suits:
            return
        elsewhere = RegionsElsewhere(self._backend, run.evaluator.problem, self._options, self._walking, self._solve)
        rng = np.random.default_rng(self._options.seed)
        end = run.left * (1 - chosen.share)
        rounds = min(chosen.rounds, int((run.left - end) / chosen.least_seconds))
        for turn in range(rounds):
            if run.over or run.closed or self.regions < 2:
                return
            before, part = run.values, (run.left - end) / (rounds - turn)
            with run.stage(NAME, part / run.left) as deadline:
                self._round(elsewhere, deadline, rng, turn)
            if self._poor(before):
                return

    def _round(self, elsewhere: RegionsElsewhere, deadline: Deadline, rng: np.random.Generator, turn: int) -> None:
        """Draw regions, have them solved, and offer what comes of it: all together, else one by one."""
        run, problem = self._run, self._run.evaluator.problem
        nodes = len(problem.nodes)
        tier = next(t for t in range(len(run.values)) if run.is_open(t))
        region = dealt(Features(self._state().shared(tier), run.best).node_cost, self.regions, rng)
        # Pods that have moved hold others where they are: the first round begins before all moves, and so does each one
        # where moves are limited, with as many as were made in the region.
        anew = self._anew(tier) if not turn or limits_moves(problem) else None
        if anew is None and limits_moves(problem):
            return
        now = run.best if anew is None else anew
        division = Division(
            region,
            self.regions,
            int(rng.integers(1 << 31)),
            tuple(run.evaluator.violated(now)),
            budgets(problem, now, run.best, region, self.regions),
        )
        elsewhere.begin(now, division, tier, deadline, self._options.seed + turn + 1, turn)
        if tier not in self.bounded:
            self._bound(tier)
            self.bounded.add(tier)
        answers = dict(elsewhere.end(deadline))
        together = joined(now, region, answers, nodes)
        if not run.evaluator.evaluate(together).legal:
            together = self._legal(now, region, answers, elsewhere)
        run.offer(together, NAME)

    def _legal(
        self, now: Placement, region: Ints, answers: Mapping[int, Placement], elsewhere: RegionsElsewhere
    ) -> Placement:
        """Return a placement with as many answers as go together."""
        evaluator, kept = self._run.evaluator, dict[int, Placement]()
        for number, answer in answers.items():
            trial = {**kept, number: answer}
            if evaluator.evaluate(joined(now, region, trial, len(region))).legal:
                kept = trial
            else:
                elsewhere.drop()
        return joined(now, region, kept, len(region))

    def _anew(self, tier: int) -> Placement | None:
        """Return today's placement, with pods that were let in where they are; none if that is worse above a tier."""
        run, problem = self._run, self._run.evaluator.problem
        start, best = problem.start, run.best
        waiting = start.placed(len(problem.classes)) < problem.size
        parts = [(start, ~waiting[start.cls]), (best, waiting[best.cls])]
        key = np.concatenate([part.cls[keep] * len(problem.nodes) + part.node[keep] for part, keep in parts])
        count = np.concatenate([part.count[keep] for part, keep in parts])
        placement = Placement.summed(key, count, len(problem.nodes))
        found = run.evaluator.evaluate(placement)
        return placement if found.legal and found.values[:tier] <= run.values[:tier] else None

    def _poor(self, before: tuple[int, ...]) -> bool:
        """Whether a round has gained next to nothing in the first tier that it changed."""
        changed = [(old, new) for old, new in zip(before, self._run.values, strict=True) if new != old]
        return not changed or changed[0][0] - changed[0][1] < self._parameters.poor_gain * abs(changed[0][0])
