"""Compiled search on the exact cost of a final state, for costs that are known as `ScoreTables`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement, Problem, ScoreTables
from stowplan.optimizer.annealing.budgets import with_budgets_kept
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import place_all
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.annealing.state_builder import build_state, placement_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.cooling import Cooling
from stowplan.optimizer.final_state.kernel.arrays import scores_of
from stowplan.optimizer.final_state.kernel.following import begin
from stowplan.optimizer.final_state.kernel.walk import LONGEST, MADE, MEASURED, TRIED, Walk, run
from stowplan.optimizer.final_state.parameters import FinalStateParameters

NO_MARGIN = 1 << 59
"""The margin until it is known how much better steps are than they seem at first."""


class FinalStateWalk:
    """Search in one tier that has a cost of the final state. Pods without a node stay without one.

    Parameters
    ----------
    problem
        The problem itself.
    placement
        A legal placement.
    found
        Called now and then, and at the end, with the best placement so far if it is better than the one before.

    Attributes
    ----------
    state
        Where pods are.
    """

    def __init__(
        self,
        problem: Problem,
        tier: int,
        tables: ScoreTables,
        placement: Placement,
        found: Callable[[Placement], object],
        parameters: FinalStateParameters,
        seed: int = 0,
    ) -> None:
        tiers = (*problem.tiers[:tier], replace(problem.tiers[tier], final=None))
        # Rules and earlier tiers are followed as they are; what the score costs is added by the kernels.
        evaluator = with_budgets_kept(Evaluator(replace(problem, tiers=tiers)), placement)
        self._problem, self._parameters, self._found = problem, parameters, found
        self.state = build_state(evaluator, placement)
        self._scores = scores_of(tables, problem.pods)
        begin(self._scores, placement.cls, placement.node, placement.count)
        self._walk = self._begin(seed)
        self._said = self.best_value

    def run(self, deadline: Deadline, enough: Callable[[], bool] = lambda: False) -> None:
        """Search until time is up, cooling down; ``enough`` is asked now and then whether to end before."""
        chosen, walk = self._parameters, self._walk
        limit, begun_with = max(1.0, chosen.work * deadline.seconds), int(self._scores.work[0])
        work, batch, said, cooled = 0, chosen.first_batch, time.monotonic(), 0
        schedule: Cooling | None = None
        margin, estimated = NO_MARGIN, chosen.measured
        while not deadline.over and not (deadline.deterministic and work >= limit):
            spent = work / limit if deadline.deterministic else 1 - deadline.remaining / deadline.seconds
            if time.monotonic() - said > chosen.pause:
                self._say()
                said = time.monotonic()
                if enough():
                    return
            if schedule is None and chosen.knows_changes(int(walk.steps[MEASURED]), spent):
                schedule = self._schedule(spent)
            if schedule is not None and walk.steps[MEASURED] >= estimated:
                # Steps that are given up are not measured, so what is measured later would only raise it.
                margin, estimated = min(margin, self._margin()), 2 * int(walk.steps[MEASURED])
            if schedule is not None and schedule.round(spent) > cooled:
                cooled = schedule.round(spent)
                self._return()
            temperature = 0.0 if schedule is None else schedule.temperature(spent)
            begun = time.monotonic()
            done = run(self.state, self._with_moved(), self._scores, batch, temperature, margin, chosen.swaps)
            work = int(self._scores.work[0]) - begun_with
            if deadline.deterministic:
                batch = min(2 * batch, chosen.longest_batch // 40)
            else:
                took = max(time.monotonic() - begun, 1e-6)
                batch = int(min(max(done * chosen.batch_seconds / took, 1), 4 * batch, chosen.longest_batch))
        self._say()

    def _schedule(self, spent: float) -> Cooling:
        """Return temperatures for the rest of the time, by what moves change, and how many have been tried so far."""
        walk = self._walk
        changes = np.abs(self._measured[:, 0])
        changes = changes[changes > 0]
        median = float(np.median(changes)) if len(changes) else 0.0
        pairs = max(1, int((self._scores.pods > 0).sum()))
        trials = float(walk.steps[TRIED]) / max(spent, 1e-6) * (1 - spent) / pairs
        if self._problem.limits_any_moves:
            trials = 0.0  # most of what is hot moves pods home and away again
        return Cooling.of(self._parameters.compiled_temperatures, median, spent, trials)

    def _margin(self) -> int:
        """Return how much better a step may be than it seems at first, but for few."""
        return int(max(0.0, np.quantile(self._measured[:, 1], self._parameters.sure)))

    @property
    def _measured(self) -> Ints:
        walk = self._walk
        found: Ints = walk.measured[: min(len(walk.measured), int(walk.steps[MEASURED]))]
        return found

    @property
    def best_value(self) -> tuple[int, ...]:
        """The tiers of the best placement, the last with the price of all points taken off."""
        return tuple(self._walk.best_value.tolist())

    def _say(self) -> None:
        if self.best_value < self._said:
            self._said = self.best_value
            self._found(placement_of(self.state, self._walk.best))

    def _return(self) -> None:
        """Go on from the best placement."""
        place_all(self.state, self._walk.best)
        placement = placement_of(self.state)
        begin(self._scores, placement.cls, placement.node, placement.count)

    def _with_moved(self) -> Walk:
        """Return the walk with the pods that may go home, where moves are limited."""
        if not self._problem.limits_any_moves:
            return self._walk
        return self._walk._replace(moved=np.append(moved(self.state), 0))

    def _begin(self, seed: int) -> Walk:
        tiers = int(self.state.head[at.H_TIERS])
        value = self.state.value[:tiers].copy()
        value[-1] -= self._scores.total[0]
        return Walk(
            random=np.random.default_rng(seed).integers(1 << 63, size=1, dtype=np.uint64),
            best=self.state.pod[:, at.P_NODE].copy(),
            best_value=value,
            moved=np.zeros(1, dtype=np.int64),
            measured=np.zeros((self._parameters.measured_steps, 2), dtype=np.int64),
            steps=np.zeros(1 + max(TRIED, MADE, MEASURED), dtype=np.int64),
            before=np.zeros(tiers, dtype=np.int64),
            path=np.zeros(LONGEST, dtype=np.int64),
            moves=np.zeros((LONGEST, 3), dtype=np.int64),
        )


def moved(state: SearchState) -> Ints:
    """Return pods on nodes that hold more of their class than at the start."""
    cls, node = state.pod[:, at.P_CLASS], state.pod[:, at.P_NODE]
    row, there = state.cls[cls, at.C_ROW], node < state.head[at.H_NODES]
    more = there & (state.cls[cls, at.C_HOME] != node)
    several = there & (row >= 0)
    more[several] = state.delta[row[several], node[several]] > 0
    found: Ints = np.flatnonzero(more)
    return found
