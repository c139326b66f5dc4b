"""Today, kube-scheduler and the best placement, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.kubernetes import Pod
from optimizer.control import Stop
from optimizer.portfolio import Options, Progress
from plugins_compat.compiler.compile import Compiled
from plugins_compat.simulate import Simulation, simulate
from stowplan.measures import Measures, measure
from stowplan.solution import Solution, fixed, solve_snapshot, today

TODAY, PENDING_ONLY, GREEDY, BEST = "today", "kube-scheduler, pending only", "kube-scheduler", "stowplan"


@dataclass(frozen=True, slots=True)
class Column:
    """One placement of the comparison."""

    name: str
    measures: Measures


@dataclass(frozen=True, eq=False)
class Comparison:
    """Placements side by side.

    Parameters
    ----------
    columns
        Today; if pods are waiting, today with kube-scheduler placing only those; kube-scheduler placing every free
        pod anew; the best placement found.
    """

    compiled: Compiled
    solution: Solution
    columns: Sequence[Column]
    notes: Sequence[str]

    def column(self, name: str) -> Measures | None:
        """Return the figures of a placement by name."""
        return next((column.measures for column in self.columns if column.name == name), None)


def compare(
    compiled: Compiled,
    options: Options,
    *,
    stop: Stop | None = None,
    progress: Progress = lambda seconds, source, values: None,
    scores: bool = True,
) -> Comparison:
    """Compare where pods stand, where kube-scheduler would put them, and the best placement.

    Parameters
    ----------
    scores
        Also compare final-state plugin scores.
    """
    stop = stop or Stop()
    now = today(compiled)
    waiting = [pod for pod in compiled.pods if not pod.node_name]
    runs: list[tuple[str, Simulation]] = []
    if waiting and len(waiting) < len(compiled.pods):
        runs.append((PENDING_ONLY, _schedule(compiled, waiting, now, options, stop)))
    runs.append((GREEDY, _schedule(compiled, compiled.pods, fixed(compiled), options, stop)))
    finished = [(name, run) for name, run in runs if run.complete]
    solution = solve_snapshot(
        compiled, options, candidates=[run.where for _, run in finished], stop=stop, progress=progress
    )
    columns = [Column(TODAY, measure(compiled, now, scores=scores))]
    columns += [Column(name, measure(compiled, run.where, scores=scores)) for name, run in finished]
    columns.append(Column(BEST, measure(compiled, solution.where, scores=scores)))
    notes = list(solution.notes)
    if len(finished) < len(runs):
        notes.append("kube-scheduler's placement was cut short and is left out")
    return Comparison(compiled, solution, columns, notes)


def _schedule(
    compiled: Compiled, queue: Sequence[Pod], standing: dict[str, str], options: Options, stop: Stop
) -> Simulation:
    return simulate(
        compiled.snapshot,
        compiled.profile,
        queue,
        standing,
        shapes=compiled.shapes,
        seed=options.seed,
        stopped=stop.is_set,
    )
