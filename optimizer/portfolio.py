"""The portfolio: annealing finds, column generation and LNS improve, bounds prove; there is always an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import takewhile

from stowplan.models.errors import InternalError
from stowplan.models.options import LEAST_TIME, Options
from stowplan.models.problem import Open, Placement, Problem, Unplaced, Violation
from stowplan.models.result import BOUNDING, Outcome
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import Backend, RayBackend, SerialBackend, named_backend
from stowplan.optimizer.bounds import BOUNDS, CHEAP, WITHOUT_KERNELS, best_bound
from stowplan.optimizer.bounds.bound import Bound
from stowplan.optimizer.closing.turns import ClosingTurns
from stowplan.optimizer.column_generation.engine import PatternEngine
from stowplan.optimizer.constructive.turns import ConstructiveTurns
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.stages import FinalStateStages
from stowplan.optimizer.lns.lns import OperatorState, improve
from stowplan.optimizer.node_changes.engine import SharedChanges
from stowplan.optimizer.node_changes.turns import NodeChangeTurns
from stowplan.optimizer.parameters import Parameters, parameters_of
from stowplan.optimizer.parts.elsewhere import PartsElsewhere
from stowplan.optimizer.parts.engine import PartEngine
from stowplan.optimizer.proofs import ProofTurns
from stowplan.optimizer.rearrangement.engine import WalkEngine
from stowplan.optimizer.regions.engine import RegionEngine
from stowplan.optimizer.run import Found, KnownBound, Progress, Run, silent, unheard
from stowplan.optimizer.transfers.turns import TransferTurns
from stowplan.optimizer.workplace import Workplace

__all__ = ["Options", "solve"]


def solve(
    problem: Problem,
    options: Options | None = None,
    *,
    candidates: Sequence[Placement] = (),
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
    known: Sequence[KnownBound] = (),
    changes: SharedChanges | None = None,
    found: Found = unheard,
    bounded: bool = True,
) -> Outcome:
    """Find the best placement there is, or the best that time allows, with a bound for every tier.

    Parameters
    ----------
    candidates
        Placements to start from beside the problem's own start; illegal ones are passed over.
    stop
        Set it from any thread to get the best placement so far.
    backend
        Where sub-problems of LNS are solved; processes of its own if not given.
    known
        Bounds that were proven before.
    changes
        Changes of nodes that solves of the same problem under other limits on moves have found, and that this one adds
        to.
    found
        Hears of every placement that becomes the best so far.
    bounded
        Whether time is spent on bounds of the last tier.
    """
    options = options or Options()
    stop = stop or Stop()
    parameters = parameters_of(options)
    evaluator = Evaluator(problem)
    backend = backend or named_backend(options, stop)
    # Of a part's solve nothing is told: its workers are those of the whole.
    elsewhere = backend.told if isinstance(backend, RayBackend) and found is unheard else None
    run = Run.begun(evaluator, options, stop, progress, known, elsewhere, found)
    for candidate in candidates:
        run.offer(candidate, "candidate", trusted=False)
    if any(tier.final is not None for tier in problem.tiers):
        steer = partial(solve, problem.steered, stop=stop, backend=backend, bounded=False)
        FinalStateStages(run, options, parameters.final_state).work(steer, candidates)
    else:
        cluster = None if elsewhere is None or options.deterministic else backend
        _Portfolio(run, options, backend, cluster, parameters, changes, bounded=bounded).work(candidates)
    return run.outcome()


class _Portfolio:
    """The order of the engines, and their shares of the time."""

    def __init__(
        self,
        run: Run,
        options: Options,
        backend: Backend | None,
        cluster: Backend | None = None,
        parameters: Parameters | None = None,
        changes: SharedChanges | None = None,
        *,
        bounded: bool = True,
    ) -> None:
        self.all_parameters = every = parameters or Parameters()
        self.parameters = every.portfolio
        self.run, self.options, self.backend = run, options, backend
        self.cluster = cluster if isinstance(cluster, RayBackend) else None  # its answers depend on time
        self.tiers = range(len(run.values))
        self.unbounded = () if bounded else self.tiers[-1:]
        self.exact = run.variables <= options.largest_model
        self.constructive = ConstructiveTurns(run, every.constructive)
        self.workplace = Workplace(run, options, backend, self.all_parameters)
        self.rounds, self.repairing = 0, len(self.tiers)
        self.node_changes = NodeChangeTurns(run, options, every.node_changes, every.cpsat, changes)
        self.proofs = ProofTurns(run, options, every)
        self.walk = WalkEngine(run, options, every.rearrangement, self.workplace.processes)
        self.transfers = TransferTurns(
            run, options, every.transfers, every.bounds, every.cpsat, self.workplace.processes
        )
        self.closing = ClosingTurns(run, options, every.closing, every.rearrangement)
        self.regions = RegionEngine(
            run,
            options,
            every.regions,
            every.rearrangement,
            self.cluster,
            solve,
            lambda: self.operator_state,
            self._bound,
        )
        self.unspent: tuple[Placement, tuple[int, ...]] | None = None

    @cached_property
    def operator_state(self) -> OperatorState:
        """What LNS learns from turn to turn."""
        return OperatorState(self.run.evaluator, self.all_parameters.lns, self.all_parameters.cpsat)

    def work(self, candidates: Sequence[Placement]) -> None:
        """Construct a first answer; then solve exact parts if that is worth it, else search the whole."""
        run = self.run
        self.repairing = self._repairing()
        self.constructive.take(self.repairing)
        if self.repairing < len(self.tiers):
            # Whatever becomes of the tiers above, the others are not left as they are.
            self.unspent = run.best, run.values[: self.repairing]
            self.constructive.take(len(self.tiers))
        self._bound_cheaply()
        parts = None if run.closed else PartEngine(run, self.all_parameters.parts, candidates)
        if parts and parts.suits(in_cluster=isinstance(self.backend, RayBackend)):
            self._close_leading(self._leading(Unplaced), only=False)
            elsewhere = PartsElsewhere(self.cluster, self.options, solve) if self.cluster else None
            for tier in self.tiers if elsewhere else ():
                # A worker may be lost or late, and then parts bound nothing.
                self._bound(tier, self.parameters.bound_beside_parts)
            parts.work(self._solve_part, elsewhere)
        else:
            self._search()
        for tier in self.tiers:
            if not run.has_bound(tier):
                self._bound(tier)  # the dropped bound may have been for worse values of the earlier tiers
        self._bound_cheaply()
        if not self.options.kernels and not run.closed:
            run.note("annealing, column generation and the Lagrangian bound were left out: they need compiled kernels")
        if run.closed and any(value > bound for value, bound in zip(run.values, run.bounds, strict=True)):
            gap = f"{self.options.gap:g}"
            run.note(f"ended before the time limit: every tier is within the gap of {gap} that was allowed")

    def _solve_part(
        self,
        problem: Problem,
        seconds: float,
        *,
        candidates: Sequence[Placement],
        stop: Stop,
        known: Sequence[KnownBound],
        found: Found,
    ) -> Outcome:
        # The checkpoint of the whole keeps what is found.
        options = replace(self.options, time_limit=max(LEAST_TIME, seconds), checkpoint=None)
        return solve(problem, options, candidates=candidates, stop=stop, backend=self.backend, known=known, found=found)

    def _search(self) -> None:
        """Close tiers that count pods and nodes; anneal, bound and prove the others; improve what is still open."""
        run, chosen = self.run, self.parameters
        leading = self._leading(Open, Unplaced)
        only = leading == len(self.tiers)
        charging = next((tier for tier in self.tiers if run.is_open(tier)), 0)
        if self.closing.leave():
            self._bound_cheaply()
            self.closing.spare(charging)
        if not any(run.is_open(tier) for tier in range(self._leading(Unplaced))):
            self.transfers.take_first(leading)
            if self.closing.begin(leading):
                self.constructive.take(leading)
            self._change_nodes()  # else the tiers above come first, which change what there is to be bounded
        engine = self._close_leading(leading, only=only)
        self.walk.spare_moves()
        self._change_nodes()
        self.regions.work()
        self.transfers.take_first(len(self.tiers))
        if not only:
            if not self.walk.begin():
                self.anneal(chosen.exact_annealing_share if self.exact else chosen.annealing_share)
            engine = engine or self._column_generation()
        self.constructive.take_once()
        if not self.exact:
            run.note("too large for the exact model: solved by local search, with bounds from relaxations")
        self._bound_last()
        for tier in self.tiers:
            if tier >= leading:
                self._close_by_columns(engine, tier, chosen.later_column_share, len(self.tiers))
            self.transfers.take(tier)
            self._bound(tier)
            far = self.walk.go_on(tier)
            if self.exact and not far:
                self._prove(tier)
        if not run.closed and not run.over:
            self._improve()

    def _change_nodes(self) -> None:
        """Under a limit on moves, walk for a while, and then search changes of nodes."""
        self.walk.begin_limited()
        if any(self.run.is_open(tier) for tier in self.tiers if tier not in self.unbounded):
            self.node_changes.take()

    def _close_leading(self, leading: int, *, only: bool) -> PatternEngine | None:
        """Close tiers that count pods and nodes, the first ones, or all there are; return the engine for patterns."""
        run, chosen = self.run, self.parameters
        if not leading:
            return None
        # Long annealing is for later tiers: what it could gain here is unknown before there is a bound.
        annealed = next((tier for tier in range(leading) if self.closing.suit(tier)), leading)
        if not any(self.walk.makes_room(tier) for tier in range(annealed)):
            self.anneal(chosen.counting_share if only else chosen.leading_share, annealed)
        engine = self._column_generation()
        rooms = 0
        for tier in range(leading):
            self._bound_cheaply()
            self.transfers.take(tier)
            if not run.over and self.closing.suit(tier):
                self._bound(tier, self.all_parameters.closing.bounding)
            closed = self.closing.close(tier)
            share = chosen.column_share if only else chosen.leading_share
            exactly = self._few_moves_let_in(tier)
            if not (exactly and self.exact):  # patterns know nothing of moves
                self._close_by_columns(engine, tier, chosen.closed_column_share if closed else share, leading)
            if closed:
                self.constructive.take(tier + 1)  # with most nodes closed, others can be emptied that could not
                self.closing.spare(tier)
            self.walk.make_room(tier, chosen.room_share)
            if exactly:
                rooms += 1
                self._let_in(tier, chosen.limited_room_share / rooms, leading)
            if not only and not run.over and run.is_open(tier):
                # Making room for a pod takes just the right moves: CP-SAT finds them, annealing does not.
                self._lns(self.backend or SerialBackend(run.stop), chosen.leading_share, tier)
        return engine

    def _leading(self, *counting: type) -> int:
        """Return the number of leading tiers that have only such terms, or are closed."""
        tiers = self.run.evaluator.problem.tiers
        leads = [tiers[tier].counts(*counting) or not self.run.is_open(tier) for tier in self.tiers]
        return len(list(takewhile(bool, leads)))

    def _repairing(self) -> int:
        """Return the number of tiers up to the first one that counts violations or unplaced pods and has some.

        Tiers after it must not spend moves before it is known how many it takes.
        """
        tiers = self.run.evaluator.problem.tiers
        for tier in self.tiers:
            repairs = any(isinstance(weighted.term, Violation | Unplaced) for weighted in tiers[tier].terms)
            if repairs and self.run.is_open(tier):
                return tier + 1
        return len(tiers)

    def _beginning(self, tier: int) -> Placement:
        """Return the placement from which a tier is searched: the incumbent, or one as good that spent fewer moves."""
        if self.unspent is not None and tier < self.repairing:
            placement, values = self.unspent
            if values == self.run.values[: self.repairing]:
                return placement
        return self.run.best

    def anneal(self, share: float, tiers: int | None = None) -> None:
        """Anneal the open tiers, or those of the first ``tiers``, from the incumbent."""
        run = self.run
        if run.over or run.closed or not self.options.kernels or tiers == 0:
            return
        with run.stage("annealing", share) as deadline:
            start = run.best if tiers is None else self._beginning(0)
            self.workplace.anneal(start, deadline, self.options.seed + self.rounds, tiers)
            self.rounds += 1

    def _column_generation(self) -> PatternEngine | None:
        """Return the column generation engine if it suits the problem."""
        run = self.run
        tiers = [run.evaluator.problem.tiers[tier] for tier in self.tiers if run.is_open(tier)]
        terms = [weighted.term for tier in tiers for weighted in tier.terms]
        counts = any(isinstance(term, Open | Unplaced) for term in terms)
        if run.over or not counts or not self.options.kernels:
            return None
        threads = 1 if self.options.deterministic else self.workplace.processes
        engine = PatternEngine(run.evaluator, threads, self.all_parameters.column_generation)
        return engine if engine.suits else None

    def _close_by_columns(self, engine: PatternEngine | None, tier: int, share: float, repaired: int) -> None:
        run = self.run
        if engine is None or run.over or not run.is_open(tier):
            return
        with run.stage("column generation", share, tier) as deadline:
            try:
                outcome = engine.close_tier(tier, run.values[:tier], self._beginning(tier), deadline)
            except InternalError as error:
                run.note(f"column generation was not used for tier {run.evaluator.problem.tiers[tier].name}: {error}")
                return
        if outcome is None:
            return
        run.raise_bound(tier, outcome.bound, "column generation")
        if outcome.placement is not None and run.offer(outcome.placement, "column generation"):
            self._repair_after(tier, repaired)

    def _bound_cheaply(self) -> None:
        """Bound all open tiers by what takes no time."""
        run = self.run
        for tier in self.tiers:
            if run.is_open(tier):
                found = self._best_bound(tier, Deadline(0.0, stop=run.stop), CHEAP)
                if found[0] > run.bounds[tier]:
                    run.raise_bound(tier, *found)

    def _bound(self, tier: int, most: float = 1.0) -> None:
        run, chosen = self.run, self.parameters
        if run.is_open(tier) and not run.stop.is_set() and run.affords(BOUNDING):
            # The first bound is always computed, so that there is one. Cut off, it is far from its final value.
            share = chosen.bound_share
            if not any(run.is_open(later) for later in self.tiers[tier + 1 :]):
                worth = run.share_of(chosen.bound_worth)
                share = max(share, min(chosen.last_bound_share, worth))
            with run.stage(BOUNDING, min(share, most), tier) as deadline:
                found = self._best_bound(tier, deadline, self._bounds_of(tier))
            run.raise_bound(tier, *found)

    def _bound_last(self) -> None:
        """Bound the last open tier if little is known of it, and open tiers before it could use up the time."""
        run = self.run
        *before, last = [tier for tier in self.tiers if run.is_open(tier)] or [0]
        little = run.bounds[last] < self.parameters.little * run.values[last]
        if before and little and self._bounds_of(last) is not CHEAP:
            self._bound(last, self.parameters.bound_share)

    def _best_bound(self, tier: int, deadline: Deadline, bounds: Sequence[Bound]) -> tuple[int, str]:
        run, chosen = self.run, self.all_parameters
        reached = run.values[:tier], run.values[tier]
        return best_bound(
            run.evaluator, run.upper, tier, *reached, deadline, chosen.bounds, chosen.cpsat, bounds, run.bounds[:tier]
        )

    def _bounds_of(self, tier: int) -> tuple[Bound, ...]:
        """Return the bounds to compute of a tier: after the decomposition, no relaxation by nodes is better."""
        had = tier in self.node_changes.taken
        had |= self.run.has_bound(tier) and self.regions.bounded.get(tier) == self.run.values[:tier]
        if had or tier in self.unbounded or self.walk.outruns_bounds(tier):
            return CHEAP
        return BOUNDS if self.options.kernels else WITHOUT_KERNELS

    def _few_moves_let_in(self, tier: int) -> bool:
        """Whether a tier counts unscheduled pods alone, and moves are limited."""
        problem = self.run.evaluator.problem
        return problem.limits_moves and problem.tiers[tier].counts_unscheduled

    def _let_in(self, tier: int, share: float, leading: int) -> None:
        """Let CP-SAT find the moves that let most pods in: in the whole, or where that is large, on some of the nodes.

        Then anneal the leading tiers.
        """
        run, before = self.run, self.run.values
        large = run.variables > self.parameters.largest_room_model
        if large and self.node_changes.let_in(tier, share, self._beginning(tier)):
            if run.values < before:
                self._repair_after(tier, leading)
        elif self.exact:
            self._prove(tier, share, leading)

    def _prove(self, tier: int, share: float | None = None, repaired: int | None = None) -> None:
        """Let CP-SAT improve and bound a tier as a whole; then repair the first tiers."""
        if self.proofs.take(tier, share):
            self._repair_after(tier, len(self.tiers) if repaired is None else repaired)

    def _repair_after(self, tier: int, tiers: int) -> None:
        """Anneal again: an engine that improves one tier worsens later ones, which are quickly repaired."""
        if tier + 1 < tiers:
            chosen = self.parameters
            self.anneal(chosen.repair_share if tiers == len(self.tiers) else chosen.leading_share, tiers)

    def _improve(self) -> None:
        """Let annealing and LNS take turns; the one with the larger gain in its last turn gets the next one.

        Ties go to the one whose turn is longer ago. The first turn goes to annealing, unless the problem is small: then
        annealing has mostly gained what it can, and CP-SAT finds what it misses.
        """
        run = self.run
        with self.workplace.sub_problems() as backend:
            turns: dict[str, Callable[[float], None]] = {
                "annealing": self.anneal,
                "large neighborhood search": lambda share: self._lns(backend, share),
            }
            if not self.options.kernels or self.walk.gone_far:
                del turns["annealing"]  # shorter than the walk, it gains nothing
            first = "large neighborhood search" if self.exact or self.walk.turns else "annealing"
            gains: dict[str, tuple[int, ...]] = {}
            failed = 0
            for share in self.parameters.turns:
                if run.over or run.closed:
                    return
                untried = sorted((name for name in turns if name not in gains), key=lambda name: name != first)
                name = untried[0] if untried else max(gains, key=lambda name: gains[name])
                before = run.values
                turns[name](share)
                gains.pop(name, None)
                gains[name] = tuple(a - b for a, b in zip(before, run.values, strict=True))
                failed = 0 if any(gains[name]) else failed + 1
                if failed == self.parameters.most_failed:
                    return

    def _lns(self, backend: Backend, share: float, only: int | None = None) -> None:
        """Run LNS for the first open tier, or for one tier only, until it is closed."""
        run = self.run
        tier = next(tier for tier in self.tiers if run.is_open(tier)) if only is None else only
        later = any(run.is_open(following) for following in self.tiers[tier + 1 :])
        with run.stage("large neighborhood search", share, tier) as deadline:
            found = improve(
                run.evaluator,
                self._beginning(tier),
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
