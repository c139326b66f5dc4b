"""Solve: search finds, patterns and neighbourhoods improve, bounds prove; whatever happens, there is an answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property
from itertools import takewhile

from stowplan.models.errors import InternalError
from stowplan.models.options import Options
from stowplan.models.problem import NodeCurve, Open, Placement, Problem, Unplaced
from stowplan.models.result import Outcome
from stowplan.models.stop import Stop
from stowplan.optimizer.annealing.anneal import anneal
from stowplan.optimizer.annealing.schedule import Calibration
from stowplan.optimizer.backend import Backend, ProcessBackend, SerialBackend
from stowplan.optimizer.bounds import best_bound
from stowplan.optimizer.column_generation.engine import PatternEngine
from stowplan.optimizer.cpsat.solve import solve_tier
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.lns.lns import OperatorState, improve
from stowplan.optimizer.run import Progress, Run, silent

__all__ = ["Options", "solve"]

CURVED_MODEL = 2_000
"""What `Options.largest_model` is at most for tiers with curves of loads: their values lie so close together that
larger models are not proven."""

BYTES_PER_VARIABLE = 6_000
"""What CP-SAT needs for each of them, all workers together."""

BEFORE_PATTERNS = 0.12
"""Share of the time that annealing gets where nothing counts but tiers that patterns know best."""

COUNTED = 0.06
"""Share of the time that each engine gets for such tiers where others follow."""

BYTES_PER_PROCESS = 120 << 20
"""What a process for neighbourhoods holds before it has done much."""

POOL_WORTH = 8.0
"""Seconds of neighbourhood search that pay for processes of its own, which take seconds to begin."""

TURNS = (0.4, 0.3, 0.5, 0.5, 1.0)
"""Shares of the time that is left which annealing and neighbourhoods get, turn by turn; long ones gain most."""

BOUND_WORTH = 3.0
"""Seconds that the bound of the last open tier gets, if that is not most of what is left."""

MOST_FAILED = 3
"""Turns in a row that gain nothing, after which nothing more is hoped for."""


def solve(
    problem: Problem,
    options: Options | None = None,
    *,
    candidates: Sequence[Placement] = (),
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Outcome:
    """Find the best placement there is, or the best that time allows, with a bound for every tier.

    Parameters
    ----------
    candidates
        Placements to start from beside the problem's own start; illegal ones are passed over.
    stop
        Set it from anywhere to get the best answer so far.
    backend
        Who works on neighbourhoods; processes of its own if not given.
    """
    options = options or Options()
    stop = stop or Stop()
    run = Run(
        Evaluator(problem), options.time_limit, options.deterministic, stop, options.memory, progress, options.gap
    )
    for candidate in candidates:
        run.offer(candidate, "candidate", trusted=False)
    _Portfolio(run, options, backend).work()
    return run.outcome()


class _Portfolio:
    """Who works when."""

    def __init__(self, run: Run, options: Options, backend: Backend | None) -> None:
        self.run = run
        self.options = options
        self.backend = backend
        self.tiers = range(len(run.values))
        self.exact = run.variables <= options.largest_model
        self.rounds = 0
        self.calibrations: dict[int, Calibration] = {}

    @cached_property
    def operator_state(self) -> OperatorState:
        """What neighbourhood search learns from turn to turn."""
        return OperatorState(self.run.evaluator)

    def work(self) -> None:
        """Settle tiers that count pods and nodes; search, bound and prove the others; improve what is still open."""
        run = self.run
        leading = self._leading()
        only = leading == len(self.tiers)
        patterns = None
        if leading:
            # Long walks are for what comes after them: nobody knows before there is a bound what they could gain here.
            self.anneal(BEFORE_PATTERNS if only else COUNTED, leading)
            patterns = self._patterns()
            for tier in range(leading):
                self._close_by_columns(patterns, tier, 0.8 if only else COUNTED, leading)
                if not only and not run.over and run.is_open(tier):
                    # Who makes room for a pod has to move just the right ones: a model sees that, a walk does not.
                    self._lns(self.backend or SerialBackend(run.stop), COUNTED, tier)
        if not only:
            self.anneal(0.35 if self.exact else 0.55)
            patterns = patterns or self._patterns()
        if not self.exact:
            run.note("too large for the exact model: solved by local search, with bounds from relaxations")
        for tier in self.tiers:
            if tier >= leading:
                self._close_by_columns(patterns, tier, 0.6, len(self.tiers))
            self._bound(tier)
            if self.exact:
                self._prove(tier)
        if not run.closed and not run.over:
            self._improve()
            for tier in self.tiers:
                if not run.has_bound(tier):
                    self._bound(tier)  # what was known may have been for worse values of the tiers before
        if run.closed and any(value > bound for value, bound in zip(run.values, run.bounds, strict=True)):
            run.note(
                f"ended before the time limit: every tier is within the gap of {self.options.gap:g} that was allowed"
            )

    def _leading(self) -> int:
        """Return how many tiers come first that only count pods without a node and nodes in use, or are settled."""
        tiers = self.run.evaluator.problem.tiers
        counts = [all(isinstance(weighted.term, Open | Unplaced) for weighted in tier.terms) for tier in tiers]
        return len(list(takewhile(lambda tier: counts[tier] or not self.run.is_open(tier), self.tiers)))

    def anneal(self, share: float, tiers: int | None = None) -> None:
        """Anneal the tiers that are open, or of so many that come first, from the best placement."""
        run = self.run
        if run.over or run.closed:
            return
        with run.stage("annealing", share) as deadline:
            # Every round's best is offered as it is found, the last one's too.
            anneal(
                run.evaluator,
                run.best,
                deadline,
                self.options.seed + self.rounds,
                floor=run.enough,
                tiers=tiers,
                calibrations=self.calibrations,
                found=lambda placement: run.offer(placement, "annealing"),
            )
            self.rounds += 1

    def _patterns(self) -> PatternEngine | None:
        """Return the pattern engine if it suits the problem."""
        run = self.run
        tiers = [run.evaluator.problem.tiers[tier] for tier in self.tiers if run.is_open(tier)]
        terms = [weighted.term for tier in tiers for weighted in tier.terms]
        if run.over or not any(isinstance(term, Open | Unplaced) for term in terms):
            return None
        engine = PatternEngine(run.evaluator, 1 if self.options.deterministic else self._processes)
        return engine if engine.suits else None

    def _close_by_columns(self, engine: PatternEngine | None, tier: int, share: float, repaired: int) -> None:
        run = self.run
        if engine is None or run.over or not run.is_open(tier):
            return
        with run.stage("column generation", share, tier) as deadline:
            try:
                outcome = engine.close_tier(tier, run.values[:tier], run.best, deadline)
            except InternalError as error:
                run.note(f"column generation was not used for tier {run.evaluator.problem.tiers[tier].name}: {error}")
                return
        if outcome is None:
            return
        run.raise_bound(tier, outcome.bound, "column generation")
        if outcome.placement is not None and run.offer(outcome.placement, "column generation"):
            self._mend_after(tier, repaired)

    def _bound(self, tier: int) -> None:
        run = self.run
        if run.is_open(tier) and not run.stop.is_set() and run.affords("bounds"):
            # The first bound is made in any case, so that there is one. Cut off, a bound is far from what it would be.
            last = not any(run.is_open(later) for later in self.tiers[tier + 1 :])
            share = max(0.3, min(0.6, BOUND_WORTH / max(run.left, BOUND_WORTH))) if last else 0.3
            with run.stage("bounds", share, tier) as deadline:
                found = best_bound(run.evaluator, run.upper, tier, run.values[:tier], run.values[tier], deadline)
            run.raise_bound(tier, *found)

    def _prove(self, tier: int) -> None:
        """Let CP-SAT improve and bound a tier as a whole."""
        run = self.run
        if run.over or not run.is_open(tier):
            return
        if not run.memory.admits(run.variables * BYTES_PER_VARIABLE):
            run.note("skipped the exact model: it would not fit into memory")
            return
        share = 1 / max(1, sum(run.is_open(later) for later in self.tiers[tier:]))
        # Where proofs are out of reach, neighbourhoods make more of the time.
        terms = [weighted.term for weighted in run.evaluator.problem.tiers[tier].terms]
        if run.variables > CURVED_MODEL and any(isinstance(term, NodeCurve) for term in terms):
            share *= 0.2
        else:
            share *= 0.9 if run.variables <= self.options.largest_model // 2 else 0.3
        with run.stage("CP-SAT", share, tier) as deadline:
            try:
                attempt = solve_tier(
                    run.evaluator,
                    tier,
                    run.values[:tier],
                    run.best,
                    deadline,
                    workers=self.options.workers,
                    seed=self.options.seed,
                    gap=self.options.gap,
                )
            except InternalError as error:
                run.note(f"CP-SAT was not used for tier {run.evaluator.problem.tiers[tier].name}: {error}")
                return
        run.raise_bound(tier, attempt.bound, "CP-SAT")
        if attempt.placement is not None and run.offer(attempt.placement, "CP-SAT"):
            self._mend_after(tier, len(self.tiers))

    def _mend_after(self, tier: int, tiers: int) -> None:
        """Search again: who improves one tier alone leaves later ones worse, and they are quickly mended."""
        if tier + 1 < tiers:
            self.anneal(0.15 if tiers == len(self.tiers) else COUNTED, tiers)

    def _improve(self) -> None:
        """Let annealing and neighbourhoods take turns; who has gained more last time gets the next turn.

        Among equals it is whose turn is longer ago. The first one goes to annealing, unless the problem is small: then
        annealing has mostly gained what walks gain, and a model sees what they pass by.
        """
        run = self.run
        with closing(self._backend()) as backend:
            turns: dict[str, Callable[[float], None]] = {
                "annealing": self.anneal,
                "large neighborhood search": lambda share: self._lns(backend, share),
            }
            first = "large neighborhood search" if self.exact else "annealing"
            gains: dict[str, tuple[int, ...]] = {}
            failed = 0
            for share in TURNS:
                if run.over or run.closed:
                    return
                untried = sorted((name for name in turns if name not in gains), key=lambda name: name != first)
                name = untried[0] if untried else max(gains, key=lambda name: gains[name])
                before = run.values
                turns[name](share)
                gains.pop(name, None)
                gains[name] = tuple(a - b for a, b in zip(before, run.values, strict=True))
                failed = 0 if any(gains[name]) else failed + 1
                if failed == MOST_FAILED:
                    return

    def _lns(self, backend: Backend, share: float, only: int | None = None) -> None:
        """Search neighbourhoods, for the first tier that is open or for one tier only, until it is settled."""
        run = self.run
        tier = next(tier for tier in self.tiers if run.is_open(tier)) if only is None else only
        later = any(run.is_open(following) for following in self.tiers[tier + 1 :])
        with run.stage("large neighborhood search", share, tier) as deadline:
            found = improve(
                run.evaluator,
                run.best,
                tier,
                deadline,
                backend,
                seed=self.options.seed + self.rounds,
                offer=lambda placement: run.offer(placement, "large neighborhood search"),
                operator_state=self.operator_state,
                enough=run.enough[tier] if only is not None or not later else None,
            )
            self.rounds += 1
            for note in found.notes:
                run.note(note)

    @property
    def _processes(self) -> int:
        return self.options.processes or max(2, os.cpu_count() or 2)

    def _backend(self) -> Backend:
        """Return who works on neighbourhoods."""
        if self.backend is not None:
            return self.backend
        processes = self._processes
        if processes == 1 or self.run.left < POOL_WORTH:
            return SerialBackend(self.run.stop)
        if not self.run.memory.admits(processes * BYTES_PER_PROCESS):
            self.run.note("one process ran large neighborhood search: more would not fit into memory")
            return SerialBackend(self.run.stop)
        return ProcessBackend(processes, self.run.stop)
