"""The product and the simple methods on the same questions, every answer evaluated by the reference evaluator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from stowplan.answers.solve import fixed, solve_snapshot
from stowplan.bench.baselines.clusters import ClusterSpec
from stowplan.bench.baselines.one_line_bounds import one_line_bounds
from stowplan.bench.baselines.simple_methods import METHODS, run_method
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.problem import Tier
from stowplan.models.settings import Settings
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.simulate import simulate
from stowplan.settings.problem import make_problem

GREEDY = "kube-scheduler"
"""All free pods placed anew, one by one; asked where any number of pods may move and scores are the objective."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a cluster: the name of a preset, and the limit on moves."""

    cluster: ClusterSpec
    objective: str
    limit: int | None

    @property
    def name(self) -> str:
        """The question in words."""
        moves = "any number of moves" if self.limit is None else f"at most {self.limit} moves"
        return f"{self.cluster.name}, {self.objective}, {moves}"


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """What came of one question.

    Parameters
    ----------
    tiers
        The tiers of the problem, for names and units.
    start, values, bounds
        By tier: today, the answer, and what is proven.
    seconds
        Spent by the product.
    methods
        For each simple method the values that it reached, and its seconds.
    floors
        By tier a simple bound and what it is called, where there is one.
    findings
        Where the product is behind, or wrong; empty if it is neither.
    """

    question: Question
    tiers: tuple[Tier, ...]
    start: tuple[int, ...]
    values: tuple[int, ...]
    bounds: tuple[int, ...]
    seconds: float
    methods: dict[str, tuple[tuple[int, ...], float]] = field(default_factory=dict)
    floors: dict[int, tuple[int, str]] = field(default_factory=dict)
    findings: tuple[str, ...] = ()

    @property
    def best(self) -> tuple[str, tuple[int, ...]] | None:
        """The simple method that comes furthest, with its values."""
        reached = [(values, name) for name, (values, _) in self.methods.items()]
        return (min(reached)[1], min(reached)[0]) if reached else None


@dataclass(frozen=True, slots=True)
class Baselines:
    """What came of all questions; after an interruption, of those that were answered."""

    options: Options
    asked: int
    rows: tuple[BaselineRow, ...]

    @property
    def behind(self) -> tuple[BaselineRow, ...]:
        """Rows in which the product is behind a simple method or a simple bound, or is wrong."""
        return tuple(row for row in self.rows if row.findings)

    @property
    def complete(self) -> bool:
        """Whether every question was answered."""
        return len(self.rows) == self.asked


def run_baselines(
    clusters: Sequence[ClusterSpec],
    objectives: Sequence[str],
    limits: Sequence[int | None],
    options: Options,
    *,
    stop: Stop | None = None,
    progress: Callable[[int, int, BaselineRow], None] = lambda number, of, row: None,
) -> Baselines:
    """Ask every question, and hold the answers against those of the simple methods.

    Parameters
    ----------
    options
        How the product solves. Each simple method has the same time limit, in seconds.
    progress
        Called with a running number, the number of questions, and each row when it is there.
    """
    stop = stop or Stop()
    asked = len(clusters) * len(objectives) * len(limits)
    rows: list[BaselineRow] = []
    for question, compiled in _questions(clusters, objectives, limits, stop):
        row = _answered(question, compiled, options, stop)
        if stop.is_set():
            break
        rows.append(row)
        progress(len(rows), asked, row)
    return Baselines(options, asked, tuple(rows))


def _questions(
    clusters: Sequence[ClusterSpec], objectives: Sequence[str], limits: Sequence[int | None], stop: Stop
) -> Iterator[tuple[Question, Compiled]]:
    for cluster in clusters:
        snapshot = synthetic_snapshot(cluster.nodes, cluster.pods, cluster.seed, fill=cluster.fill)
        for objective in objectives:
            for limit in limits:
                if stop.is_set():
                    return
                settings = Settings(objective=objective, max_moves=limit)
                yield Question(cluster, objective, limit), make_problem(snapshot, settings)


def _answered(question: Question, compiled: Compiled, options: Options, stop: Stop) -> BaselineRow:
    evaluator = Evaluator(compiled.problem)
    solution = solve_snapshot(compiled, options, stop=stop)
    answer = evaluator.evaluate(solution.outcome.placement)
    methods: dict[str, tuple[tuple[int, ...], float]] = {}
    for name in METHODS:
        began = time.monotonic()
        deadline = Deadline(options.time_limit, stop=stop)
        placement = None if stop.is_set() else run_method(name, Evaluator(compiled.problem.steered), deadline)
        if placement is not None and (reached := evaluator.evaluate(placement)).legal:
            methods[name] = (reached.values, time.monotonic() - began)
    if question.limit is None and compiled.final_state is not None and not stop.is_set():
        began = time.monotonic()
        anew = simulate(compiled.snapshot, compiled.profile, compiled.pods, fixed(compiled), preempts=False)
        reached = evaluator.evaluate(compiled.placement(anew.assignment))
        if reached.legal:
            methods[GREEDY] = (reached.values, time.monotonic() - began)
    row = BaselineRow(
        question,
        compiled.problem.tiers,
        evaluator.evaluate(compiled.problem.start).values,
        answer.values,
        tuple(tier.bound for tier in solution.outcome.tiers),
        solution.outcome.seconds,
        methods,
        one_line_bounds(compiled.problem),
    )
    return _judged(row, legal=answer.legal)


def _judged(row: BaselineRow, *, legal: bool) -> BaselineRow:
    """Return a row with what is to be found fault with."""
    findings = [] if legal else ["the answer breaks a rule"]
    for name, (reached, _) in row.methods.items():
        if reached < row.values:
            t = next(t for t, (theirs, ours) in enumerate(zip(reached, row.values, strict=True)) if theirs != ours)
            findings.append(f"{name} reaches {_shown(row, t, reached[t])}, the answer {_shown(row, t, row.values[t])}")
        findings += [
            f"the bound of {_shown(row, t, row.bounds[t])} is wrong: {name} reaches {_shown(row, t, reached[t])}"
            for t in _comparable(row.values, reached)
            if reached[t] < row.bounds[t]
        ]
    for t, (bound, name) in row.floors.items():
        if bound > row.bounds[t]:
            findings.append(f"the bound by {name}, {_shown(row, t, bound)}, is above {_shown(row, t, row.bounds[t])}")
    return replace(row, findings=tuple(findings))


def _comparable(values: Sequence[int], reached: Sequence[int]) -> Iterator[int]:
    """Yield the tiers whose bound speaks of another placement too: it is no worse in any tier before."""
    for t, (ours, theirs) in enumerate(zip(values, reached, strict=True)):
        yield t
        if theirs > ours:
            return


def _shown(row: BaselineRow, tier: int, value: int) -> str:
    return f"{row.tiers[tier].name} {row.tiers[tier].shown(value):,g}"
