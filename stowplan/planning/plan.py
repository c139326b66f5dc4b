"""Plans: solve, put the moves in order, and solve again without the moves that are impossible in any order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stowplan.answers.assessment import Assessor
from stowplan.answers.ranking import Worth, rank, worth, worth_words
from stowplan.answers.solve import Solution, solve_snapshot, today
from stowplan.models.assignment import Assignment
from stowplan.models.html import html_table, number
from stowplan.models.kubernetes import Pod
from stowplan.models.plan import Plan, PlanTier
from stowplan.models.result import TRIVIAL, Status, TierOutcome, revalued
from stowplan.models.settings import PLATFORM_EXECUTOR, PLATFORM_RELEASE, Executor, Settings
from stowplan.models.snapshot import Snapshot, tied
from stowplan.models.stop import Grace, Stop
from stowplan.models.words import plural
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.run import Progress, silent
from stowplan.planning.way import WayFinder
from stowplan.plans.budgets import Budgets
from stowplan.plans.document import PlanInputs, plan_document
from stowplan.plans.movability.costs import move_weight
from stowplan.plans.move import Move
from stowplan.plans.reasons import reasons
from stowplan.plans.sequencing import SequencingProblem, WaveSequence, sequence
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.freeze import make_movability, who_stays
from stowplan.settings.problem import make_problem, settings_document
from stowplan.settings.terms import Terms

LATER_SHARE = 1 / 3
"""Share of the time limit for each further solve, and for the search of a way to what it finds."""
SEQUENCING_SECONDS = 1.0
"""Seconds after a stop in which moves are still put in order."""
EXECUTOR: Executor = "eviction-api"
"""Executor if the settings name none."""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """What stays wrong with a placement; false if nothing does.

    Parameters
    ----------
    violations
        Places at which it exceeds rules.
    waiting
        Pods without a node.
    kept
        Pods that stay where they are today, and where a filter would refuse them.
    """

    violations: int
    waiting: int
    kept: int = 0

    def __bool__(self) -> bool:
        """Whether anything does."""
        return bool(self.violations or self.waiting or self.kept)


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan, and what it was made from.

    Parameters
    ----------
    plan
        The plan.
    assessor
        Assessor of the problem whose tiers the plan is measured by.
    assignment
        Node of every scheduled pod at the end of the plan.
    """

    plan: Plan
    assessor: Assessor
    assignment: Assignment

    @property
    def compiled(self) -> Compiled:
        """The problem whose tiers the plan is measured by."""
        return self.assessor.compiled

    @cached_property
    def worth(self) -> Sequence[Worth]:
        """How many of the pods that move bring most of what each tier improves by."""
        compiled = self.compiled
        before = self.assessor.today.evaluation.values
        return worth(compiled.problem, before, rank(self.assessor.assess(self.assignment)))

    @property
    def worth_words(self) -> str:
        """The same in words, with the number of moves that is recommended; empty where it takes all of them."""
        moves = self.assessor.assess(self.assignment).evaluation.moves
        return worth_words(self.worth, moves)

    @property
    def unresolved(self) -> Unresolved:
        """Constraint violations and unscheduled pods at the end of the plan."""
        violations = self.assessor.assess(self.assignment).evaluation.violations
        waiting = sum(pod.key not in self.assignment for pod in self.compiled.pods)
        return Unresolved(len(violations), waiting, 0 if self.plan.waves else self.assessor.kept_violations)

    def __repr__(self) -> str:
        moves, waves = sum(len(wave.moves) for wave in self.plan.waves), len(self.plan.waves)
        return f"<Planned {self.plan.id}: {plural(moves, 'move')} in {plural(waves, 'wave')}, {self.plan.status}>"

    def _repr_html_(self) -> str:
        plan = self.plan
        tiers = [(tier.name, number(tier.before), number(tier.after), number(tier.bound)) for tier in plan.tiers]
        waves = [(f"wave {wave.number}", f"{plural(len(wave.moves), 'move')}") for wave in plan.waves]
        table = html_table(f"{plan.id}, {plan.status}", tiers, ("tier", "today", "plan", "bound"))
        return table + html_table(plural(len(plan.waves), "wave"), waves)


def planning_problem(snapshot: Snapshot, settings: Settings, terms: Terms) -> Compiled:
    """Return the problem that a plan answers: pods that the executor cannot move stay.

    Raises
    ------
    InputError
        With the setting that cannot be used.
    """
    return make_problem(snapshot, _with_executor(settings), lambda pod: terms.frozen.get(pod.key))


def make_plan(
    snapshot: Snapshot,
    settings: Settings,
    options: Options,
    terms: Terms | None = None,
    *,
    compiled: Compiled | None = None,
    candidates: Sequence[Assignment] = (),
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Planned:
    """Find the best reachable placement, and the moves to it in waves.

    Parameters
    ----------
    settings
        Their executor determines which pods can be moved; without one, evictions go through the Eviction API.
    compiled
        Result of `planning_problem`, if computed already.
    candidates
        Further assignments to start the search from.
    stop
        Set it to get a plan to the best placement so far.
    backend
        Solves sub-problems; by default processes of its own.

    Raises
    ------
    InputError
        With the setting that cannot be used.
    """
    terms, stop, settings = terms or Terms(), stop or Stop(), _with_executor(settings)
    compiled = compiled or planning_problem(snapshot, settings, terms)
    solution = solve_snapshot(compiled, options, candidates=candidates, stop=stop, progress=progress, backend=backend)
    planning = _Planning(solution.assessor, settings, terms, stop, options)
    planning.reach(compiled, solution.assignment)
    stays, wanted = dict(terms.frozen), dict.fromkeys(settings.admit)
    shorter = replace(options, time_limit=max(0.1, options.time_limit * LATER_SHARE))
    for _ in range(terms.rounds):
        if not planning.stuck or stop.is_set():
            break
        opening = [key for key in planning.opening if key not in wanted]
        if opening and (settings.drain or settings.admit):
            # Drain and fit count moves before pending pods, so a solution may leave out pods that others wait for.
            wanted |= dict.fromkeys(opening)
        else:
            stays |= dict.fromkeys(planning.stuck, "no order of moves was found")
        narrower = make_problem(snapshot, settings.model_copy(update={"admit": tuple(wanted)}), _said(stays))
        again = solve_snapshot(narrower, shorter, candidates=[planning.assignment], stop=stop, backend=backend)
        planning.reach(narrower, again.assignment)
    cut = ("interrupted: the plan leads to the best placement found until then",) if stop.is_set() else ()
    return planning.planned(solution.outcome.tiers, (*solution.notes, *cut))


def sequence_solution(solution: Solution, settings: Settings, terms: Terms | None = None) -> Planned:
    """Return a plan to a placement that was found before; see `sequence_placement`."""
    outcome = solution.outcome
    return sequence_placement(solution.assessor, solution.assignment, outcome.tiers, settings, terms, solution.notes)


def sequence_placement(
    assessor: Assessor,
    assignment: Assignment,
    tiers: Sequence[TierOutcome],
    settings: Settings,
    terms: Terms | None = None,
    notes: Sequence[str] = (),
    *,
    keep: bool = False,
) -> Planned:
    """Return a plan to a given assignment.

    Moves of pods that the executor cannot move are given up, and moves that are impossible in any order.

    Parameters
    ----------
    tiers
        Values and bounds of the placement; for missing tiers, no bound is known.
    keep
        Plan the moves even if the assignment is no better than today's; otherwise the plan is empty then.
    """
    planning = _Planning(assessor, _with_executor(settings), terms or Terms())
    planning.reach(assessor.compiled, assignment, keep=keep)
    return planning.planned(tiers, notes)


def with_note(plan: Plan, note: str) -> Plan:
    """Return a plan with one more note, the first; an empty one adds nothing."""
    return plan.model_copy(update={"notes": (note, *plan.notes)}) if note else plan


class _Planning:
    """Placements that were to be reached, all measured by one problem, and the best of what they came to."""

    def __init__(
        self,
        assessor: Assessor,
        settings: Settings,
        terms: Terms,
        stop: Stop | None = None,
        options: Options | None = None,
    ) -> None:
        self.assessor = assessor
        self.options = options
        self.stop = stop or Stop()
        self.compiled = compiled = assessor.compiled
        self.settings = settings
        self.terms = terms
        self.start = today(compiled)
        self.budgets = Budgets(compiled.snapshot)
        self.best = WaveSequence((), (), 0, "nothing moves")
        self.assignment = self.start
        self.best_values = self.values(self.start)
        self.stuck: list[str] = []
        self.opening: list[str] = []
        self.given_up: dict[str, str] = {}

    def reach(self, compiled: Compiled, wanted: Assignment, *, keep: bool = False) -> None:
        """Put the moves to a placement in order, and keep what comes of it if nothing better is known."""
        moves = []
        changes = wanted.moved_from(self.start)
        for pod in compiled.pods:
            if pod.key not in changes:
                continue
            if reason := self.immovable.get(pod.key):
                self.given_up[pod.key] = f"{pod.key}: {reason}"
            else:
                moves.append(Move(pod, *changes[pod.key]))
        sequencing = self._sequenced(compiled, moves)
        self.stuck = [one.key for one in sequencing.stuck]
        self.opening = self._opening(wanted)
        self.given_up |= {one.key: str(one) for one in sequencing.stuck}
        reached = self.start.moved((step.pod.key, step.target) for wave in sequencing.waves for step in wave)
        values = self.values(reached)
        if keep or values < self.best_values:
            self.best, self.assignment, self.best_values = sequencing, reached, values

    def _opening(self, wanted: Assignment) -> list[str]:
        """Return pods that a placement leaves waiting, under budgets that would let stuck moves go if they ran."""
        stuck = set(self.stuck)
        budgets = {i for pod in self.compiled.pods if pod.key in stuck for i in self.budgets.covering(pod)}
        waiting = (pod for pod in self.compiled.pods if not pod.node_name and pod.key not in wanted)
        return [pod.key for pod in waiting if budgets.intersection(self.budgets.covering(pod))]

    def _sequenced(self, compiled: Compiled, moves: Sequence[Move]) -> WaveSequence:
        kinds = dict(zip((pod.key for pod in compiled.pods), compiled.class_of.tolist(), strict=True))
        task = SequencingProblem(
            snapshot=compiled.snapshot,
            profile=compiled.profile,
            start=self.start,
            moves=moves,
            budgets=self.budgets,
            limits=self.terms.limits,
            signatures=compiled.signatures,
            alike=lambda pod: kinds[pod.key],
            price=move_weight if self.settings.move_costs else _equal,
            way=self._way(compiled, self.options) if self.options else None,
            patience=self._patience,
            stopped=Grace(self.stop, SEQUENCING_SECONDS),
        )
        return sequence(task)

    @property
    def _patience(self) -> float:
        options = self.options
        return math.inf if options is None or options.deterministic else options.time_limit * LATER_SHARE

    def _way(self, compiled: Compiled, options: Options) -> WayFinder:
        seconds = options.time_limit * (LATER_SHARE if self.given_up else 1)
        return WayFinder(
            compiled, self.start, options, lambda pod: pod.key not in self.immovable, self.budgets, seconds, self.stop
        )

    def values(self, assignment: Assignment) -> tuple[int, ...]:
        """Return the value of every tier."""
        return self.assessor.values(assignment)

    @cached_property
    def immovable(self) -> Mapping[str, str]:
        """Why a pod stays that is bound and not tied to its node, by pod key."""
        stays = who_stays(self.compiled.snapshot, self.settings, detailed=True)
        bound = (pod for pod in self.compiled.snapshot.pods if pod.node_name and not pod.finished and not tied(pod))
        return {pod.key: reason for pod in bound if (reason := self.terms.frozen.get(pod.key) or stays(pod))}

    def planned(self, tiers: Sequence[TierOutcome], notes: Sequence[str]) -> Planned:
        """Write the best of it down as a plan.

        Parameters
        ----------
        tiers
            What is known about the placement that was best if every move could be made.
        """
        compiled = self.compiled
        without_cluster = compiled.profile.release.name == PLATFORM_RELEASE
        known = tiers or [TierOutcome(tier, 0, 0, TRIVIAL, 0.0) for tier in compiled.problem.tiers]
        outcomes = revalued(known, self.best_values)
        proven = all(outcome.status is Status.OPTIMAL for outcome in outcomes)
        left = {one.key for one in self.best.stuck}
        moved = {step.pod.key for wave in self.best.waves for step in wave} - left
        order = PlanInputs(
            snapshot=compiled.snapshot,
            profile=compiled.profile,
            signatures=compiled.signatures,
            start=self.start,
            sequencing=self.best,
            budgets=self.budgets,
            settings=settings_document(compiled, self.settings),
            executor=PLATFORM_EXECUTOR if without_cluster else self.settings.executor or EXECUTOR,
            limits=self.terms.limits,
            created_at=self.terms.created_at,
            expires_in=self.terms.expires_in,
            wave_timeout=self.terms.wave_timeout,
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            tiers=[_tier(outcome, value) for outcome, value in zip(outcomes, self.values(self.start), strict=True)],
            values=self._shown,
            reasons=reasons(compiled.snapshot, compiled.profile, compiled.signatures, self.start, self.assignment),
            immovable=self.immovable,
            losses=make_movability(compiled.snapshot, self.settings).losses,
            given_up=[line for key, line in self.given_up.items() if key not in moved],
            notes=[*compiled.snapshot.notes, *compiled.notes, *notes, *self.budgets.remarks],
        )
        return Planned(plan_document(order), self.assessor, self.assignment)

    def _shown(self, assignment: Assignment) -> list[float]:
        tiers = self.compiled.problem.tiers
        return [tier.shown(value) for tier, value in zip(tiers, self.values(assignment), strict=True)]


def _with_executor(settings: Settings) -> Settings:
    return settings if settings.executor else settings.model_copy(update={"executor": EXECUTOR})


def _equal(pod: Pod) -> float:
    return 1.0


def _said(reasons: Mapping[str, str]) -> Callable[[Pod], str | None]:
    return lambda pod: reasons.get(pod.key)


def _tier(outcome: TierOutcome, before: int) -> PlanTier:
    tier = outcome.tier
    return PlanTier(
        name=tier.name,
        unit=tier.unit,
        before=tier.shown(before),
        after=tier.shown(outcome.value),
        bound=tier.shown(outcome.bound),
        bound_by=outcome.bound_by,
    )
