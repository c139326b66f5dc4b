"""How time and memory of each stage grow with the cluster.

``python -m benchmarks.stages [NODES ...] [--seconds 60]``: clusters of ``stowplan generate`` with ten pods a node,
objective ``balance``. A file is written, loaded, compiled, and evaluated. Then come the stages of a search that end by
themselves, one after the other: the table of the most pods of a class on a node, constructive heuristics, bounds that
take no time, the first multipliers of the Lagrangian relaxation, the model and the state of a rearranging walk, and the
index of sub-problems; at last a whole search with a time limit, and the check of its answer. Each size has a process of
its own, so that peaks are those of one size. The exponent of a stage is the slope of its logarithm over that of the
nodes, by least squares.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from stowplan.models.problem import Problem
    from stowplan.optimizer.bounds.bound import Bound

T = TypeVar("T")

PODS = 10
"""Pods of a node, on average."""

SMALL = 20
"""Nodes of a cluster with which everything is loaded that is needed."""

MIB = 2**20

Stages = dict[str, tuple[float, float]]
"""Seconds and peak memory in MiB by then, of each stage."""


class Watch:
    """Takes the time of stages, and the peak of memory by then."""

    def __init__(self) -> None:
        self.found: Stages = {}

    def stage(self, name: str, work: Callable[[], T]) -> T:
        """Do what makes up a stage, and return what comes of it."""
        began = time.perf_counter()
        made = work()
        seconds = time.perf_counter() - began
        self.found[name] = seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB
        return made


def measure(nodes: int, folder: str, limit: float) -> Stages:
    """Measure one size, with a search of ``limit`` seconds; the process should be a fresh one."""
    measured(SMALL, folder, 1.0)  # what is loaded once is no part of a stage
    return measured(nodes, folder, limit)


def measured(nodes: int, folder: str, limit: float) -> Stages:
    """Go through all stages."""
    from stowplan.answers.solve import solve_snapshot
    from stowplan.instances.load import load
    from stowplan.instances.synthetic import generate
    from stowplan.models.options import Options
    from stowplan.models.settings import Settings
    from stowplan.settings.problem import make_problem

    watch = Watch()
    file = Path(folder) / f"{nodes}.json"
    file.write_text(json.dumps(generate(nodes, PODS * nodes, 1)))
    snapshot = watch.stage("load", lambda: load(str(file)))
    compiled = watch.stage("compile", lambda: make_problem(snapshot, Settings()))
    go_through(compiled.problem, watch)
    solution = watch.stage("search, and check", lambda: solve_snapshot(compiled, Options(time_limit=limit)))
    seconds, peak = watch.found["search, and check"]
    watch.found["check, and what the search took beyond its time"] = max(0.0, seconds - limit), peak
    watch.found["gap of the last tier, percent"] = 100 * solution.outcome.tiers[-1].gap, 0.0
    return watch.found


def go_through(problem: Problem, watch: Watch) -> None:
    """Go through the stages of a search that end by themselves."""
    from stowplan.optimizer.bounds import CHEAP, best_bound
    from stowplan.optimizer.bounds.lagrangian import LagrangianBound
    from stowplan.optimizer.bounds.linear import UNLIMITED
    from stowplan.optimizer.constructive.warm_start import warm_start
    from stowplan.optimizer.deadline import Deadline
    from stowplan.optimizer.domains import upper_bounds
    from stowplan.optimizer.evaluate import Evaluator
    from stowplan.optimizer.rearrangement.model_builder import build_model, pods_of
    from stowplan.optimizer.rearrangement.walking import state_of
    from stowplan.optimizer.subproblem.index import Index

    evaluator = watch.stage("evaluator", lambda: Evaluator(problem))
    values = watch.stage("evaluate", lambda: evaluator.evaluate(problem.start)).values
    upper = watch.stage("most pods by node", lambda: upper_bounds(problem))
    found = [problem.start]
    until = Deadline(UNLIMITED)
    watch.stage("constructive heuristics", lambda: warm_start(evaluator, problem.start, until, found.append))
    last = len(problem.tiers) - 1

    def bound(bounds: Sequence[Bound]) -> tuple[int, str]:
        return best_bound(evaluator, upper, last, values[:last], values[last], Deadline(0.0), bounds=bounds)

    watch.stage("cheap bounds", lambda: bound(CHEAP))
    watch.stage("first multipliers", lambda: bound((LagrangianBound(),)))
    cls, node, home = watch.stage("pods of the walk", lambda: pods_of(problem, found[-1]))
    model = watch.stage("model of the walk", lambda: build_model(evaluator, last, cls, home))
    watch.stage("state of the walk", lambda: state_of(evaluator, model, last, node, 0))
    watch.stage("index of sub-problems", lambda: Index(evaluator))


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of the logarithm of seconds over that of sizes, by least squares."""
    x, y = [math.log(size) for size in sizes], [math.log(max(1e-6, second)) for second in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def main() -> int:
    """Print a table of stages and sizes, and the exponents."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stages")
    parser.add_argument("nodes", type=int, nargs="*", default=[100, 300, 1000, 3000, 5000])
    parser.add_argument("--seconds", type=float, default=60.0, help="of the search (default: %(default)s)")
    given = parser.parse_args()
    sizes: list[int] = given.nodes
    columns: list[Stages] = []
    with tempfile.TemporaryDirectory() as folder:
        for nodes in sizes:
            # Spawned and not kept, so that nothing of one size is in the peak of the next one.
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                columns.append(pool.submit(measure, nodes, folder, given.seconds).result())
            told = ", ".join(f"{name} {s:.2f} ({m:,.0f} MiB)" for name, (s, m) in columns[-1].items())
            print(f"{nodes:,} nodes: {told}", flush=True)
    for few in (sizes, sizes[-2:]):
        if len(few) > 1:
            print(f"from {few[0]:,} to {few[-1]:,} nodes, powers of the nodes: time, and peak memory by then")
            for name in columns[0]:
                times, memory = (exponent(few, [column[name][i] for column in columns[-len(few) :]]) for i in (0, 1))
                print(f"{name}: {times:.2f}, {memory:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
