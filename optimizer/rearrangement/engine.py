"""When the walk has its turns: shortly before the last tier is bounded, and for long afterwards."""

from __future__ import annotations

from functools import cached_property

from stowplan.models.options import Options
from stowplan.optimizer.rearrangement.model_builder import suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.walking import walk
from stowplan.optimizer.run import Run

NAME = "rearranging walk"


class WalkEngine:
    """Improves the last tier of a run, where it is the only open one and the walk knows all that it consists of."""

    def __init__(self, run: Run, options: Options, parameters: RearrangementParameters) -> None:
        self.run, self.options, self.parameters = run, options, parameters
        self.tier = len(run.values) - 1
        self.turns = 0

    @cached_property
    def _suits(self) -> bool:
        problem = self.run.evaluator.problem
        return self.options.kernels and suits(problem, self.tier, self.parameters.largest_table)

    @property
    def _ready(self) -> bool:
        above = any(self.run.is_open(tier) for tier in range(self.tier))
        return not above and self._suits

    def begin(self) -> bool:
        """Walk for a short time, so that there is an answer to bound; return whether that is this engine's task."""
        if self._ready:
            self._improve(self.parameters.first_share)
        return self._ready

    def go_on(self, tier: int) -> bool:
        """Walk for a long time if it is the turn of the last tier.

        Returns
        -------
        bool
            Whether the tier was so far from its bound before that a proof by CP-SAT is out of reach.
        """
        if tier != self.tier or not self._ready:
            return False
        value, bound = self.run.values[tier], self.run.bounds[tier]
        large = self.run.variables > self.parameters.provable
        far = large and value - bound > self.parameters.far_gap * value
        self._improve(self.parameters.far_share if far else self.parameters.near_share)
        return far

    def _improve(self, share: float) -> None:
        run = self.run
        if run.over or not run.is_open(self.tier):
            return
        self.turns += 1
        with run.stage(NAME, share, self.tier) as deadline:
            walk(
                run.evaluator,
                run.best,
                self.tier,
                deadline,
                self.options.seed + self.turns,
                floor=run.enough[self.tier],
                found=lambda placement: run.offer(placement, NAME),
                parameters=self.parameters,
            )
