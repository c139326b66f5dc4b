"""Divides the nodes among workers, round after round, and puts together what they find."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.options import Options
from stowplan.models.problem import Capacity, MovePeak, Placement
from stowplan.optimizer.backend import RayBackend
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.cost import constant
from stowplan.optimizer.lns.features import Features
from stowplan.optimizer.lns.lns import OperatorState
from stowplan.optimizer.parts.elsewhere import SolveAlone
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.regions.budgets import budgets
from stowplan.optimizer.regions.drawing import Division, dealt
from stowplan.optimizer.regions.elsewhere import RegionsElsewhere
from stowplan.optimizer.regions.parameters import RegionParameters
from stowplan.optimizer.regions.region import joined
from stowplan.optimizer.run import Run

NAME = "regions in the cluster"
"""What results call it."""


class RegionEngine:
    """Has regions solved by workers, and drawn anew across the borders of the last ones.

    Parameters
    ----------
    walking
        How regions walk.
    backend
        Whose workers they are; if not given, there is nothing to do.
    solve
        Solves a region.
    state
        Returns what large neighborhood search knows of the problem, such as reduced costs.
    bound
        Bounds a tier in a share of the time that is left, while workers solve the first regions of it.

    Attributes
    ----------
    bounded
        The tiers that were, and the values of the tiers above then.
    """

    def __init__(
        self,
        run: Run,
        options: Options,
        parameters: RegionParameters,
        walking: RearrangementParameters,
        backend: RayBackend | None,
        solve: SolveAlone,
        state: Callable[[], OperatorState],
        bound: Callable[[int, float], None],
    ) -> None:
        self._run, self._options, self._parameters = run, options, parameters
        self._walking, self._backend, self._solve, self._state = walking, backend, solve, state
        self._bound = bound
        self._rng = np.random.default_rng(options.seed)
        self.bounded: dict[int, tuple[int, ...]] = {}

    @property
    def regions(self) -> int:
        """How many regions there can be now, if nodes are enough; 1 or none where there is one worker alone."""
        chosen, backend = self._parameters, self._backend
        workers = backend.workers if backend and backend.cluster.alive else 1
        most = workers * chosen.per_worker if workers > 1 else 1
        return min(most, len(self._run.evaluator.problem.nodes) // chosen.least_nodes)

    @property
    def tier(self) -> int | None:
        """The first open tier that moves can improve, if there is one: unscheduled pods stay so."""
        run, tiers = self._run, self._run.evaluator.problem.tiers
        return next((t for t in range(len(tiers)) if run.is_open(t) and not constant(tiers[t])), None)

    @property
    def suits(self) -> bool:
        """Whether there are regions to solve, time for it, and nothing counts for which all are one."""
        run, problem = self._run, self._run.evaluator.problem
        terms = [weighted.term for tier in problem.tiers for weighted in tier.terms]
        one = any(isinstance(term, MovePeak) for term in terms)
        one = one or any(isinstance(rule, Capacity) and rule.held_on_source for rule in problem.rules)
        worth = run.left * self._parameters.share >= 2 * self._parameters.least_seconds
        return worth and not run.stop.is_set() and self.tier is not None and not one and self.regions > 1

    def work(self) -> None:
        """Solve regions, as long as rounds gain something."""
        run, chosen = self._run, self._parameters
        if self._backend is None or not self.suits:
            return
        elsewhere = RegionsElsewhere(self._backend, run.evaluator.problem, self._options, self._walking, self._solve)
        end = run.left * (1 - chosen.share)
        rounds = min(chosen.rounds, int((run.left - end) / chosen.least_seconds))
        whole = False
        for turn in range(rounds):
            tier, regions, left = self.tier, self.regions, run.left - end
            if run.over or tier is None or regions < 2 or left < chosen.least_seconds:
                return
            # Pods that have moved hold others where they are: until there were answers of all regions, rounds begin
            # before all moves, and so does each one where moves are limited, with as many as were made in the region.
            limited = run.evaluator.problem.limits_any_moves
            anew = self._anew(tier) if limited or not whole else None
            if limited and anew is None:
                return
            before = run.values
            whole = self._round(elsewhere, Deadline(left / (rounds - turn), stop=run.stop), tier, regions, turn, anew)
            if anew is None and self._poor(before):
                return

    def _round(
        self,
        elsewhere: RegionsElsewhere,
        deadline: Deadline,
        tier: int,
        regions: int,
        turn: int,
        anew: Placement | None,
    ) -> bool:
        """Draw regions, have them solved, and offer what comes of it; return whether all have answered.

        Parameters
        ----------
        anew
            Where to begin, if not at the best placement.
        """
        run, problem = self._run, self._run.evaluator.problem
        began = time.monotonic()
        now = run.best if anew is None else anew
        region = dealt(Features(self._state().shared(tier), now).node_cost, regions, self._rng)
        division = Division(
            region,
            regions,
            int(self._rng.integers(1 << 31)),
            frozenset(run.evaluator.violated(now)),
            budgets(problem, now, run.best, region, regions),
        )
        temperature = self._parameters.later_temperature if anew is None else 1.0
        with elsewhere.begin(now, division, tier, deadline, turn, temperature) as under_way:
            handed = time.monotonic()
            if self.bounded.get(tier) != run.values[:tier]:
                self._bound(tier, run.share_of(deadline.remaining))
                if run.has_bound(tier):
                    self.bounded[tier] = run.values[:tier]
            with run.stage(NAME, run.share_of(deadline.remaining), tier) as watched:
                answers = dict(under_way.answers(deadline, lambda: run.closed or watched.stop.is_set()))
            answered = time.monotonic()
        for note in elsewhere.notes:
            run.note(note)
        together = joined(now, region, answers, len(region))
        if not run.offer(together, NAME, trusted=False) and not run.evaluator.evaluate(together).legal:
            run.offer(self._legal(now, region, answers, elsewhere), NAME)
        elsewhere.spent(time.monotonic() - began, answered - handed)
        return len(answers) == regions

    def _legal(
        self, now: Placement, region: Ints, answers: Mapping[int, Placement], elsewhere: RegionsElsewhere
    ) -> Placement:
        """Return a placement with as many answers as go together, and as there is time to try."""
        evaluator, kept = self._run.evaluator, dict[int, Placement]()
        for number, answer in answers.items():
            trial = {**kept, number: answer}
            if not self._run.over and evaluator.evaluate(joined(now, region, trial, len(region))).legal:
                kept = trial
            else:
                elsewhere.drop()
        return joined(now, region, kept, len(region))

    def _anew(self, tier: int) -> Placement | None:
        """Return today's placement, with pods that were let in where they are; none if that is worse above a tier."""
        run, problem = self._run, self._run.evaluator.problem
        start, best = problem.start, run.best
        waiting = start.placed(len(problem.classes)) < problem.size
        parts = start.where(~waiting[start.cls]), best.where(waiting[best.cls])
        placement = Placement.together(parts, len(problem.nodes))
        found = run.evaluator.evaluate(placement)
        return placement if found.legal and found.values[:tier] <= run.values[:tier] else None

    def _poor(self, before: tuple[int, ...]) -> bool:
        """Whether a round has gained next to nothing in the first tier that it changed."""
        changed = [(old, new) for old, new in zip(before, self._run.values, strict=True) if new != old]
        return not changed or changed[0][0] - changed[0][1] < self._parameters.poor_gain * abs(changed[0][0])
