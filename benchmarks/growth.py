"""How the time to an answer of equal quality grows with the cluster.

``python -m benchmarks.growth [NODES ...] [--seeds 3] [--svg FILE]``: clusters of ``stowplan generate`` with ten pods a
node, objective ``balance`` with its cost of moving, each solved for a twentieth of a second a node. What counts is the
first moment at which every pod has a node that ever gets one, and the balance is within a share of a lower bound that
is worked out afterwards without a time limit.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stowplan.answers.solve import solve_snapshot
from stowplan.instances.documents import Document
from stowplan.instances.manifests import read_snapshot
from stowplan.instances.synthetic import generate
from stowplan.models.settings import Settings
from stowplan.optimizer.bounds import best_bound
from stowplan.optimizer.bounds.linear import UNLIMITED
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.run import Step
from stowplan.report.svg import Axis, Curve, line_chart
from stowplan.report.svg import Point as Dot
from stowplan.settings.problem import make_problem

PODS = 10
"""Pods of a node, on average."""

SECONDS = 0.05
"""Time limit for each node."""

QUALITIES = (0.1, 0.05)
"""How far above the bound answers of equal quality are, in shares of it."""


@dataclass(frozen=True, slots=True)
class Point:
    """One cluster: ``seconds`` until each quality was reached, infinite if never, and the gap that was left."""

    nodes: int
    seconds: tuple[float, ...]
    gap: float
    limit: float
    megabytes: int


def measure(nodes: int, seed: int) -> Point:
    """Solve one cluster."""
    text = json.dumps(generate(nodes, PODS * nodes, seed)).encode()
    compiled = make_problem(read_snapshot(iter([Document("generated", text)])), Settings())
    limit = max(10.0, SECONDS * nodes)
    steps: list[Step] = []
    solution = solve_snapshot(compiled, Options(time_limit=limit, seed=seed), progress=steps.append)
    evaluator, tier = Evaluator(compiled.problem), len(compiled.problem.tiers) - 1
    reached = solution.evaluation.values
    bound, _ = best_bound(
        evaluator, upper_bounds(evaluator.problem), tier, reached[:tier], reached[tier], Deadline(UNLIMITED)
    )
    settled = [s for s in steps if s.values[:tier] == reached[:tier]]
    seconds = [next((s.seconds for s in settled if s.values[tier] <= bound * (1 + q)), math.inf) for q in QUALITIES]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Point(nodes, tuple(seconds), reached[tier] / bound - 1, limit, peak)


def typical(points: Sequence[Point]) -> Point:
    """Return the median of clusters of one size."""
    seconds = tuple(sorted(column)[len(points) // 2] for column in zip(*(p.seconds for p in points), strict=True))
    gap = sorted(p.gap for p in points)[len(points) // 2]
    return Point(points[0].nodes, seconds, gap, points[0].limit, max(p.megabytes for p in points))


def exponent(reached: Iterable[tuple[int, float]]) -> float:
    """Return the slope of log(seconds) over log(nodes), by least squares: 1 is linear."""
    pairs = [(math.log(nodes), math.log(seconds)) for nodes, seconds in reached]
    if len(pairs) < 2:
        return math.nan
    mean_x, mean_y = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    across: float = sum((x - mean_x) ** 2 for x, _ in pairs)
    together: float = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    return together / across


def curves(points: Sequence[Point]) -> list[list[tuple[int, float]]]:
    """Return, for each quality, the sizes at which it was reached, and when."""
    rows = zip(*(p.seconds for p in points), strict=True)
    return [[(p.nodes, s) for p, s in zip(points, row, strict=True) if s < math.inf] for row in rows]


def drawing(lines: Sequence[Sequence[tuple[int, float]]]) -> str:
    """Draw seconds over nodes, a curve for each quality, on logarithmic scales, beside lines of linear growth."""
    reached = [line for line in lines if line]
    nodes, seconds = (sorted({pair[i] for line in reached for pair in line}) for i in (0, 1))
    curves = []
    for line, quality in zip(lines, QUALITIES, strict=True):
        if line:
            (first, begun), (last, _) = line[0], line[-1]
            curves.append(Curve([Dot(first, begun), Dot(last, begun * last / first)], dashed=True))
            curves.append(Curve([Dot(n, s, text=f"{s:.1f} s") for n, s in line], name=f"{quality:.0%}"))
    across = Axis("nodes; dashed: linear growth", nodes[0] / 1.2, nodes[-1] * 1.2, [(n, f"{n:,}") for n in nodes], True)
    highest = max(point.y for curve in curves for point in curve.points)
    powers = [10.0**p for p in range(-3, 6) if seconds[0] / 1.5 <= 10.0**p <= highest * 1.5]
    up = Axis("seconds", seconds[0] / 1.5, highest * 1.5, [(s, f"{s:g}") for s in powers], True)
    return line_chart("Time to an answer of equal quality", across, up, curves)


def row_of(point: Point) -> str:
    """Return a row of the table."""
    when = " ".join(f"{'never' if s == math.inf else f'{s:.1f} s':>11}" for s in point.seconds)
    pods = PODS * point.nodes
    return f"{point.nodes:>7,} {pods:>8,} {when} {point.gap:>11.1%} {point.limit:>5.0f} s {point.megabytes:>6,}"


def main() -> None:
    """Measure, print a table, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="*", type=int, default=[100, 200, 400, 800, 1600])
    parser.add_argument("--seeds", type=int, default=3, help="clusters of each size (default: %(default)s)")
    parser.add_argument("--svg", type=Path, help="where to draw")
    chosen = parser.parse_args()
    header = " ".join(f"{f'within {q:.0%}':>11}" for q in QUALITIES)
    print(f"{'nodes':>7} {'pods':>8} {header} {'in the end':>11} {'limit':>7} {'MB':>6}")
    points = []
    for nodes in chosen.nodes:
        sample = []
        for seed in range(chosen.seeds):
            began = time.monotonic()
            sample.append(point := measure(nodes, seed))
            print(f"{row_of(point)}   (seed {seed}; {time.monotonic() - began:.0f} s in all)", flush=True)
        points.append(typical(sample))
        print(f"{row_of(points[-1])}   (median)", flush=True)
    lines = curves(points)
    for quality, line in zip(QUALITIES, lines, strict=True):
        print(f"seconds to {quality:.0%} grow with nodes to the power of {exponent(line):.2f}")
    if chosen.svg:
        chosen.svg.write_text(drawing(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
