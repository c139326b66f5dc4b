"""The stages of a solve whose tiers read the final state: surrogates first, then the exact cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from stowplan.models.options import Options
from stowplan.models.problem import Placement, ScoreTables
from stowplan.models.result import Outcome, bound_holds
from stowplan.models.stop import Either, Stop
from stowplan.optimizer.constructive.descent import Descent
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.constructive.warm_start import warm_start
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import move_prices
from stowplan.optimizer.final_state.bounding import (
    LATE,
    LATE_AFTER_STOP,
    BoundBeside,
    Found,
    NotSentError,
    Question,
    branches,
    lower_bounds,
)
from stowplan.optimizer.final_state.branch_and_bound import KEPT
from stowplan.optimizer.final_state.descent import FinalStateDescent
from stowplan.optimizer.final_state.enumeration import Enumeration
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.position import Position
from stowplan.optimizer.final_state.search import FinalStateSearch
from stowplan.optimizer.final_state.split_bound import loads_bound, splits
from stowplan.optimizer.final_state.start_bound import start_bound
from stowplan.optimizer.final_state.walking import FinalStateWalk
from stowplan.optimizer.processes import allowed_processors
from stowplan.optimizer.run import Run, Step

ENUMERATION, DESCENT, SEARCH, BOUND = "enumeration", "final-state descent", "final-state search", "final-state bound"


class Served(Either):
    """A stop signal that is set once the tiers above are closed and surrogates have had their least time.

    Parameters
    ----------
    above
        Number of tiers above.
    seconds
        The least time.
    """

    def __init__(self, other: Stop, above: int, seconds: float) -> None:
        super().__init__(other)
        self._above, self._end, self._closed = above, time.monotonic() + seconds, False

    def hear(self, step: Step) -> None:
        """Take note of what the solve has reached and proven."""
        self._closed = self._closed or step.values[: self._above] == step.bounds[: self._above]

    def is_set(self) -> bool:
        """Whether to end."""
        return super().is_set() or (self._closed and time.monotonic() >= self._end)


class FinalStateStages:
    """Search and bounds for a problem with a tier that reads the final state.

    Parameters
    ----------
    run
        Of the problem with its exact costs.
    """

    def __init__(self, run: Run, options: Options, parameters: FinalStateParameters) -> None:
        self._run, self._options, self._parameters = run, options, parameters
        problem = run.evaluator.problem
        self._tier = next(t for t, tier in enumerate(problem.tiers) if tier.final is not None)
        self._steered = Evaluator(problem.steered)

    def work(self, steer: Callable[..., Outcome], candidates: Sequence[Placement]) -> None:
        """Enumerate if that is possible; else steer by surrogates, search, and bound.

        Parameters
        ----------
        steer
            Solves the problem with surrogates, with options, and with placements to start from beside its own.
        candidates
            Such placements.
        """
        run, tier = self._run, self._tier
        if self._enumerate():
            return
        chosen = self._parameters
        above = self._open_above()
        descended = self._descend(chosen.short_descent_share if above else chosen.descent_share)
        early = None if above or not run.is_open(tier) else self._begin_beside(small=True)
        if early is not None:
            share = min(chosen.surrogate_share, chosen.small_surrogate_share)
            with early:
                self._steer(steer, candidates, share, share)
                self._finish_beside(early)
            return
        share = chosen.long_surrogate_share if above else chosen.surrogate_share
        if not descended:
            share = chosen.limited_surrogate_share
        self._steer(steer, candidates, share, min(share, chosen.surrogate_share))
        if run.stop.is_set() or not run.is_open(tier):
            return
        if not descended and not self._open_above():
            self._descend(chosen.short_descent_share)
        # Surrogates have all processors; what follows is the search of one.
        beside = self._begin_beside()
        if beside is None:
            self._bound(chosen.bound_share)
            self._search()
            return
        with beside:
            self._finish_beside(beside)

    def _steer(
        self, steer: Callable[..., Outcome], candidates: Sequence[Placement], share: float, least: float
    ) -> None:
        """Solve the problem with surrogates; once the tiers above are closed, the least share of the time is enough."""
        run = self._run
        with run.stage("search on surrogates", share, self._tier) as deadline:
            # Few moves are best spent by descents; without a limit, annealing finds more where it begins anew.
            limited = run.evaluator.problem.move_limit is not None
            more = (run.best,) if limited else ()
            options = replace(self._options, time_limit=deadline.seconds)
            served = Served(
                run.stop, self._tier, math.inf if deadline.deterministic else deadline.seconds * least / share
            )
            outcome = steer(options, candidates=(*candidates, *more), stop=served, progress=served.hear)
            run.offer(outcome.placement, "surrogates")
            self._take_bounds(outcome)

    def _finish_beside(self, beside: BoundBeside) -> None:
        """Search with the bound beside, and take what it has in the end."""
        run, tier, chosen = self._run, self._tier, self._parameters
        self._take(beside)
        self._search(lambda: self._take(beside))
        if run.is_open(tier):
            beside.end(LATE_AFTER_STOP if run.stop.is_set() else LATE)
            self._take(beside)
        if beside.failure is not None and run.is_open(tier) and not run.stop.is_set():
            run.note(f"the bound of {run.evaluator.problem.tiers[tier].name} failed in its process: {beside.failure}")
            self._bound(chosen.bound_share)
            self._search()

    def _take_bounds(self, outcome: Outcome) -> None:
        """Take over what is proven of the tiers that have no surrogates, as far as it holds for the incumbent."""
        run = self._run
        for t, found in enumerate(outcome.tiers[: self._tier]):
            run.raise_bound(t, min(found.bound, run.values[t]), found.bound_by, outcome.values[:t])
        for note in outcome.notes:
            run.note(note)

    def _enumerate(self) -> bool:
        """List all placements if they are few; return whether the best of them is known then."""
        run = self._run
        problem = run.evaluator.problem
        every = Enumeration(problem, run.upper.astype(np.int64), self._parameters.enumerated)
        if run.over or not every.few:
            return False
        with run.stage(ENUMERATION, self._parameters.enumeration_share) as deadline:
            best: tuple[int, ...] = run.values
            for placement in every.placements():
                if deadline.over:
                    return False
                # Surrogates tell what is legal; the exact cost, which takes longer, is asked for where it matters.
                seen = self._steered.evaluate(placement)
                if seen.legal and seen.values[: self._tier] <= best[: self._tier]:
                    run.offer(placement, ENUMERATION)
                    best = run.values
        for t, value in enumerate(best):
            run.raise_bound(t, value, ENUMERATION)
        return True

    def _open_above(self) -> bool:
        return any(self._run.is_open(earlier) for earlier in range(self._tier))

    @property
    def _waits(self) -> bool:
        """Whether moves are limited, and pods wait that may need them."""
        run, problem = self._run, self._run.evaluator.problem
        waits = any(run.is_open(t) and problem.tiers[t].counts_unscheduled for t in range(self._tier))
        return waits and problem.move_limit is not None

    def _descend(self, share: float) -> bool:
        """Descend from the best placement so far: by the surrogates alone, then by what moves gain exactly.

        Few moves are left to pods that wait, until it is known how many these take; return whether none had to be left.
        """
        run, problem = self._run, self._run.evaluator.problem
        if not run.is_open(self._tier):
            return True
        with run.stage(DESCENT, share, self._tier) as deadline:

            def offered(placement: Placement) -> None:
                run.offer(placement, DESCENT)

            warm = deadline.share(self._parameters.waiting_share) if self._waits else deadline
            warm_start(self._steered, run.best, warm, offered, tiers=self._tier)
            if self._waits:
                return False
            first = run.best
            state = State(self._steered, first)
            if not deadline.over and Descent(state, self._tier).run(deadline):
                offered(state.placement)
            if not deadline.over:
                position, steered = Position(self._steered, problem, self._tier, first), State(self._steered, first)
                FinalStateDescent(position, steered, self._tier, offered, self._parameters).run(deadline)
        return True

    def _question(self) -> Question:
        run, tier = self._run, self._tier
        reached, value = run.values[:tier], run.values[tier]
        return Question(run.evaluator.problem, run.upper, tier, reached, run.best, value, self._options.kernels)

    def _begin_beside(self, *, small: bool = False) -> BoundBeside | None:
        """Have a process bound, if there is a processor for it, time, and memory.

        Parameters
        ----------
        small
            Only if the problem is small enough for branch and bound.
        """
        run, chosen, options = self._run, self._parameters, self._options
        asked = self._question()
        if small and not branches(asked, chosen):
            return None
        spare = not options.deterministic and options.processes != 1 and allowed_processors() > 1
        # Its first multipliers take as long as its tables.
        worth = run.left >= chosen.beside_seconds + 2 * asked.pairs / chosen.prepared
        needed = (
            chosen.library_bytes + chosen.bytes_per_pair * asked.pairs + (8 * KEPT if branches(asked, chosen) else 0)
        )
        if not spare or not worth or not run.memory.admits(needed):
            return None
        try:
            return BoundBeside(asked, run.left - chosen.beside_margin, chosen)
        except NotSentError as error:
            run.note(f"the bound of {run.evaluator.problem.tiers[self._tier].name} has no process of its own: {error}")
            return None

    def _take(self, beside: BoundBeside) -> bool:
        """Take bounds that have come and hold for what earlier tiers are; return whether to end the search."""
        run, tier = self._run, self._tier
        if bound_holds(run.values[:tier], beside.asked.reached):
            for found in beside.new():
                self._take_found(found, beside.asked.reached)
        return not run.is_open(tier) or beside.failure is not None

    def _search(self, enough: Callable[[], bool] = lambda: False) -> None:
        run = self._run
        if run.over or not run.is_open(self._tier):
            return
        with run.stage(SEARCH, 1.0, self._tier) as deadline:
            problem, tier, chosen, seed = run.evaluator.problem, self._tier, self._parameters, self._options.seed

            def offered(placement: Placement) -> None:
                run.offer(placement, SEARCH)

            tables = self._tables
            if tables is not None:
                FinalStateWalk(problem, tier, tables, run.best, offered, chosen, seed).run(deadline, enough)
            elif deadline.deterministic or deadline.remaining >= self._preparation:
                FinalStateSearch(self._steered, problem, tier, run.best, offered, chosen, seed).run(deadline, enough)

    @cached_property
    def _tables(self) -> ScoreTables | None:
        """What the cost is made of, for the compiled search; ``None`` where it is too large, or not known."""
        run, chosen = self._run, self._parameters
        pairs = math.prod(run.evaluator.problem.shape)
        few = pairs <= chosen.most_walked_pairs and run.memory.admits(chosen.walked_bytes_per_pair * pairs)
        few = few and (self._options.deterministic or pairs <= chosen.tabled_pairs * run.left / 4)
        final = run.evaluator.problem.tiers[self._tier].final
        return final.tables() if final is not None and few and self._options.kernels else None

    @property
    def _preparation(self) -> float:
        """Seconds that a view of the final state takes by asking plugins, and the bound from the start."""
        return math.prod(self._run.evaluator.problem.shape) / self._parameters.prepared_from_start

    def _bound(self, share: float) -> None:
        run, asked = self._run, self._question()
        needed = asked.pairs / self._parameters.prepared
        if needed > 1 and run.left * share < needed:
            # Where plugins would have to be asked, a search needs as long for its own view of the final state.
            searched = self._options.deterministic or self._tables is not None or run.left >= 3 * self._preparation
            self._bound_from_start(asked, share if searched else 1.0)
            return
        with run.stage(BOUND, share, self._tier) as deadline:
            for found in lower_bounds(asked, deadline, self._parameters):
                self._take_found(found, asked.reached)

    def _bound_from_start(self, asked: Question, share: float) -> None:
        """Bound without tables of all plugins, where these alone would take the time of the search, or more."""
        run, tier, chosen = self._run, self._tier, self._parameters
        problem, reached, kernels = asked.problem, asked.reached, asked.kernels
        if run.over:
            return
        with run.stage(BOUND, share, tier) as deadline:
            move, bound = move_prices(problem.tiers[tier], len(problem.size)), 0
            if splits(problem, tier):  # loads are bounded with all that is not a part of the final state
                loads = deadline.share(chosen.loads_share)
                bound += loads_bound(problem, asked.upper, tier, reached, asked.incumbent, loads, kernels=kernels)
                move = np.zeros_like(move)
            worth = not deadline.over and deadline.left >= self._preparation
            if worth and run.memory.admits(chosen.start_bytes_per_pair * asked.pairs):
                resting = deadline.deterministic or deadline.remaining >= 2 * self._preparation
                bound += start_bound(problem, asked.final, move, asked.upper, deadline, resting=resting)
        if bound:
            run.raise_bound(tier, bound, BOUND, reached)

    def _take_found(self, found: Found, given: Sequence[int]) -> None:
        if found.placement is not None:
            self._run.offer(found.placement, BOUND)
        self._run.raise_bound(self._tier, found.bound, BOUND, given)
