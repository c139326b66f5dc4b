"""Today, kube-scheduler and the best placement, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stowplan.answers.assessment import Assessor
from stowplan.answers.figures import Figure, figures, node_figures
from stowplan.answers.measures import Measures, measured
from stowplan.answers.protections import Protection
from stowplan.answers.ranking import FEW_EVALUATIONS, RankedMove, Worth, rank, recommended, worth
from stowplan.answers.solve import Solution, fixed, solve_snapshot, today
from stowplan.models.assignment import Assignment
from stowplan.models.html import html_table, number
from stowplan.models.kubernetes import Pod
from stowplan.models.result import Status
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.evaluate import ConstraintViolation
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.run import Progress, silent
from stowplan.plans.reasons import reasons
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.simulate import Simulation, simulate

TODAY, BEST, IDEAL = "today", "stowplan", "ideal"


@dataclass(frozen=True, slots=True)
class Column:
    """One placement of the comparison; ``assignment`` is of every pod that has a node in it."""

    name: str
    measures: Measures
    assignment: Assignment


@dataclass(frozen=True, eq=False)
class Comparison:
    """Placements side by side.

    Parameters
    ----------
    solution
        The solution.
    notes
        Notes on the placements, those of the solution included.
    columns
        Today; if pods are pending, kube-scheduler placing only those; kube-scheduler placing every free pod anew; the
        best placement found; on request, the best one if every pod could move that is not tied to its node.
    protections
        Cost of each eviction restriction, on request.
    """

    solution: Solution
    columns: Sequence[Column]
    notes: Sequence[str]
    protections: Sequence[Protection] = ()

    @property
    def compiled(self) -> Compiled:
        """The problem that was solved."""
        return self.solution.compiled

    @cached_property
    def figures(self) -> Sequence[Figure]:
        """What is compared, in the order in which it is shown."""
        return figures(self.solution.outcome.tiers, [column.measures for column in self.columns])

    @cached_property
    def node_figures(self) -> Sequence[Figure]:
        """What is compared of each node."""
        return node_figures([column.measures for column in self.columns])

    @cached_property
    def moves(self) -> Sequence[RankedMove]:
        """The moves of the best placement, those that bring most first."""
        interrupted = self.solution.outcome.interrupted
        return rank(self.solution.assessment, evaluations=FEW_EVALUATIONS if interrupted else None)

    @cached_property
    def worth(self) -> Sequence[Worth]:
        """How many of these moves bring most of what each tier improves by."""
        return worth(self.compiled.problem, self.solution.before.values, self.moves)

    @property
    def recommended_moves(self) -> int | None:
        """The number of moves that bring most of every improvement; ``None`` if that takes all of them."""
        return recommended(self.worth, self.solution.evaluation.moves)

    @cached_property
    def why(self) -> Mapping[str, str]:
        """What each move is for, by pod key."""
        compiled = self.compiled
        return reasons(
            compiled.snapshot, compiled.profile, compiled.signatures, today(compiled), self.solution.assignment
        )

    @property
    def resolved(self) -> Sequence[ConstraintViolation]:
        """Constraint violations of today that the best placement does not have."""
        left = {(str(one.origin), one.place) for one in self.solution.evaluation.violations}
        return [one for one in self.solution.before.violations if (str(one.origin), one.place) not in left]

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.columns)} placements: {self.solution!r}>"

    def _repr_html_(self) -> str:
        rows = [
            (figure.title, *(number(figure.value(column.measures)) for column in self.columns), number(figure.bound))
            for figure in self.figures
            if not figure.detail
        ]
        header = ("", *(column.name for column in self.columns), "bound")
        return html_table(f"{self.solution.status}, {plural(self.solution.evaluation.moves, 'move')}", rows, header)

    @property
    def best(self) -> Column:
        """The best placement found."""
        return next(column for column in self.columns if column.name == BEST)

    def column(self, name: str) -> Measures | None:
        """Return the figures of a placement by name."""
        return next((column.measures for column in self.columns if column.name == name), None)


def greedy_names(compiled: Compiled) -> tuple[str, str]:
    """Return the names of the greedy placements: of pending pods only, and of every free pod anew."""
    scheduler = compiled.profile.release.scheduler
    return f"{scheduler}, pending only", scheduler


def compare(
    compiled: Compiled,
    options: Options,
    *,
    stop: Stop | None = None,
    progress: Progress = silent,
    scores: bool = True,
    ideal: Compiled | None = None,
    backend: Backend | None = None,
) -> Comparison:
    """Compare today's placement, kube-scheduler's, and the best one.

    Parameters
    ----------
    scores
        Also compare final-state plugin scores.
    ideal
        The problem in which every pod can move that is not tied to its node; its best placement is shown, too.
    backend
        Solves sub-problems; by default processes of its own.
    """
    stop = stop or Stop()
    now = today(compiled)
    waiting = [pod for pod in compiled.pods if not pod.node_name]
    pending_only, greedy = greedy_names(compiled)
    starts: list[tuple[str, Sequence[Pod], Assignment]] = [(greedy, compiled.pods, fixed(compiled))]
    if waiting and len(waiting) < len(compiled.pods):
        starts.insert(0, (pending_only, waiting, now))
    runs = [(name, _schedule(compiled, queue, start, options, stop)) for name, queue, start in starts]
    finished = [(name, run) for name, run in runs if run.complete]
    candidates = [run.assignment for _, run in finished]
    for (_, queue, start), (_, run) in zip(starts, runs, strict=True):
        if run.preemptions and not stop.is_set():
            # A placement that takes the node from pods which must keep one is no start; what comes before that may be.
            mild = _schedule(compiled, queue, start, options, stop, preempts=False)
            candidates += [mild.assignment] if mild.complete else []
    assessor = Assessor(compiled)
    columns = [Column(TODAY, measured(assessor.today, scores=scores), now)]
    solution = solve_snapshot(
        compiled,
        options,
        candidates=candidates,
        assessor=assessor,
        stop=stop,
        progress=progress,
        backend=backend,
    )
    best = measured(solution.assessment, scores=scores)  # at once, while the filters are at this assignment
    for name, run in finished:
        measures = measured(assessor.assess(run.assignment), scores=scores)
        columns.append(Column(name, measures, run.assignment))
    columns.append(Column(BEST, best, solution.assignment))
    notes = list(solution.notes)
    if ideal is not None:
        starts_from = [solution.assignment, *candidates]
        best_of_all = solve_snapshot(ideal, options, candidates=starts_from, stop=stop, backend=backend)
        measures = measured(best_of_all.assessment, scores=scores)
        columns.append(Column(IDEAL, _in_tiers_of(compiled, ideal, measures), best_of_all.assignment))
        known = "proven optimal" if best_of_all.status is Status.OPTIMAL else "the best that was found"
        notes.append(f"ideal: if every pod could move that is not tied to its node, whatever that loses; {known}")
    if len(finished) < len(runs):
        notes.append(f"{greedy}: the placement was interrupted and is left out")
    preempting = [_preempted(compiled, name, run) for name, run in finished if run.preemptions]
    if preempting and compiled.objective.preemption == "never":
        preempting.append("stowplan preempts no pod, as the objective asks; --preemption by-priority allows it")
    notes += preempting
    for name, run in finished:
        broken = [decision for decision in run.decisions if decision.is_error]
        if broken:
            notes.append(f"{name}: {plural(len(broken), 'pod')} not scheduled because of an error: {broken[0].message}")
    return Comparison(solution, columns, notes)


def _schedule(
    compiled: Compiled,
    queue: Sequence[Pod],
    start: Assignment,
    options: Options,
    stop: Stop,
    *,
    preempts: bool = True,
) -> Simulation:
    return simulate(
        compiled.snapshot,
        compiled.profile,
        queue,
        start,
        signatures=compiled.signatures,
        seed=options.seed,
        preempts=preempts,
        stopped=stop.is_set,
    )


def _in_tiers_of(compiled: Compiled, ideal: Compiled, measures: Measures) -> Measures:
    """Return measures of another problem of the same objective by the tiers of this one, found by their names."""
    there = {tier.name: (t, tier) for t, tier in enumerate(ideal.problem.tiers)}
    values, move_costs = [], []
    for tier in compiled.problem.tiers:
        t, other = there.get(tier.name, (None, tier))
        values.append(0 if t is None else tier.whole(other.shown(measures.values[t])))
        move_costs.append(0 if t is None else round(measures.move_costs[t] * tier.scale / other.scale))
    return replace(measures, values=values, move_costs=move_costs)


def _preempted(compiled: Compiled, name: str, run: Simulation) -> str:
    """Return a note on preemption in a column: victims that were not scheduled again count as unscheduled."""
    victims = {preemption.victim.key for preemption in run.preemptions}
    lost = sum(1 for key in victims if key not in run.assignment)
    stay = len(victims & fixed(compiled).keys())
    note = f"{name}: {plural(len(victims), 'pod')} preempted, {lost} of them unscheduled in the end"
    return f"{note}; {stay} of them are fixed, so tiers count them on the nodes they are on today" if stay else note
