"""How time and memory of each stage before a search grow with the cluster.

``python -m benchmarks.stages [NODES ...]``: clusters of ``stowplan generate`` with ten pods a node, objective
``balance``. A file is written, loaded, compiled, and evaluated, and greedy placement, a sub-problem, and the first
annealing state are made of it, each in a process of its own per size, so that peaks are those of one size. The exponent
of a stage is the slope of its logarithm over that of the nodes, by least squares.
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
from typing import TypeVar

T = TypeVar("T")

PODS = 10
"""Pods of a node, on average."""

MIB = 2**20

Stages = dict[str, tuple[float, float]]
"""Seconds and peak memory in MiB by then, of each stage."""


def measure(nodes: int, folder: str) -> Stages:
    """Measure one size; the process should be a fresh one."""
    from stowplan.answers.solve import solve_snapshot
    from stowplan.instances.load import load
    from stowplan.instances.synthetic import generate
    from stowplan.models.options import Options
    from stowplan.models.settings import Settings
    from stowplan.optimizer.evaluate import Evaluator
    from stowplan.optimizer.subproblem.index import Index
    from stowplan.settings.problem import make_problem

    found: Stages = {}

    def stage(name: str, work: Callable[[], T]) -> T:
        began = time.perf_counter()
        made = work()
        seconds = time.perf_counter() - began
        found[name] = seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB
        return made

    file = Path(folder) / f"{nodes}.json"
    file.write_text(json.dumps(generate(nodes, PODS * nodes, 1)))
    snapshot = stage("load", lambda: load(str(file)))
    compiled = stage("compile", lambda: make_problem(snapshot, Settings()))
    evaluator = stage("evaluator", lambda: Evaluator(compiled.problem))
    stage("evaluate", lambda: evaluator.evaluate(compiled.problem.start))
    stage("index of sub-problems", lambda: Index(evaluator))
    solution = stage("solve, 60 s, and check", lambda: solve_snapshot(compiled, Options(time_limit=60.0)))
    last = solution.outcome.tiers[-1]
    found["gap of the last tier, percent"] = 100 * last.gap, 0.0
    return found


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of the logarithm of seconds over that of sizes, by least squares."""
    x, y = [math.log(size) for size in sizes], [math.log(max(1e-6, second)) for second in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def main() -> int:
    """Print a table of stages and sizes, and the exponents."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stages")
    parser.add_argument("nodes", type=int, nargs="*", default=[100, 300, 1000, 3000, 5000])
    sizes: list[int] = parser.parse_args().nodes
    columns: list[Stages] = []
    with tempfile.TemporaryDirectory() as folder:
        for nodes in sizes:
            # Spawned and not kept, so that nothing of one size is in the peak of the next one.
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                columns.append(pool.submit(measure, nodes, folder).result())
            told = ", ".join(f"{name} {s:.2f} ({m:,.0f} MiB)" for name, (s, m) in columns[-1].items())
            print(f"{nodes:,} nodes: {told}", flush=True)
    if len(sizes) > 1:
        for name in columns[0]:
            times = exponent(sizes, [column[name][0] for column in columns])
            print(f"{name}: time grows with nodes to the power of {times:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
