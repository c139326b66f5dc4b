"""How the time to an answer of equal quality grows with the cluster.

``python -m benchmarks.growth [NODES ...] [--within 0.05] [--svg FILE]``: clusters of ``stowplan generate`` with ten
pods a node, objective ``balance`` with its cost of moving, each solved for a tenth of a second a node. What counts is
the first moment at which every pod has a node, and the balance is within a share of a lower bound that is worked out
afterwards without a time limit.
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

from instances.documents import Document
from instances.manifests import read_snapshot
from instances.synthetic import generate
from optimizer.bounds import UNBOUNDED, best_bound
from optimizer.control import Deadline
from optimizer.cpsat.variables import most
from optimizer.evaluate import Judge
from optimizer.portfolio import Options
from optimizer.run import Step
from stowplan.inputs import Settings, make_problem
from stowplan.solution import solve_snapshot

PODS = 10
"""Pods of a node, on average."""

SECONDS = 0.1
"""Time limit for each node."""

WIDTH, HEIGHT, MARGIN = 480, 320, 48
"""Of the drawing, in pixels."""


@dataclass(frozen=True, slots=True)
class Point:
    """One cluster: ``seconds`` until the quality was reached, or ``None``, and the gap that was left in the end."""

    nodes: int
    seconds: float | None
    gap: float
    limit: float
    megabytes: int


def measure(nodes: int, within: float, seed: int) -> Point:
    """Solve one cluster."""
    text = json.dumps(generate(nodes, PODS * nodes, seed)).encode()
    compiled = make_problem(read_snapshot(iter([Document("generated", text)])), Settings())
    limit = max(10.0, SECONDS * nodes)
    steps: list[Step] = []
    solution = solve_snapshot(compiled, Options(time_limit=limit, seed=seed), progress=steps.append)
    judge, tier = Judge(compiled.problem), len(compiled.problem.tiers) - 1
    reached = solution.evaluation.values
    bound, _ = best_bound(judge, most(judge.problem), tier, reached[:tier], reached[tier], Deadline(UNBOUNDED))
    good = [s for s in steps if s.values[:tier] == reached[:tier] and s.values[tier] <= bound * (1 + within)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Point(nodes, good[0].seconds if good else None, reached[tier] / bound - 1, limit, peak)


def exponent(points: Iterable[Point]) -> float:
    """Return the slope of log(seconds) over log(nodes), by least squares: 1 is linear."""
    pairs = [(math.log(p.nodes), math.log(p.seconds)) for p in points if p.seconds]
    if len(pairs) < 2:
        return math.nan
    mean_x, mean_y = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    across: float = sum((x - mean_x) ** 2 for x, _ in pairs)
    together: float = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    return together / across


def drawing(points: Sequence[Point]) -> str:
    """Draw seconds over nodes, both on logarithmic scales, beside the line of linear growth."""
    reached = [(p.nodes, p.seconds) for p in points if p.seconds]
    xs, ys = [math.log10(n) for n, _ in reached], [math.log10(s) for _, s in reached]
    x0, x1, y0, y1 = min(xs) - 0.1, max(xs) + 0.1, min(ys) - 0.2, max(ys) + 0.4

    def at(nodes: float, seconds: float) -> tuple[float, float]:
        x = MARGIN + (math.log10(nodes) - x0) / (x1 - x0) * (WIDTH - 2 * MARGIN)
        y = HEIGHT - MARGIN - (math.log10(seconds) - y0) / (y1 - y0) * (HEIGHT - 2 * MARGIN)
        return round(x, 1), round(y, 1)

    (first, begun), (last, _) = reached[0], reached[-1]
    (ax, ay), (bx, by) = at(first, begun), at(last, begun * last / first)
    way = " ".join(f"{x},{y}" for x, y in (at(*point) for point in reached))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<line x1="{ax}" y1="{ay}" x2="{bx}" y2="{by}" stroke="silver" stroke-dasharray="4"/>',
        f'<polyline fill="none" stroke="steelblue" points="{way}"/>',
    ]
    for nodes, seconds in reached:
        x, y = at(nodes, seconds)
        parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="steelblue"/>')
        parts.append(f'<text x="{x}" y="{y - 8}" text-anchor="middle">{seconds:.1f} s</text>')
        parts.append(f'<text x="{x}" y="{HEIGHT - MARGIN + 16}" text-anchor="middle">{nodes:,}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">nodes; dashed: linear growth</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Measure, print a table, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="*", type=int, default=[50, 100, 200, 400, 800, 1600])
    parser.add_argument("--within", type=float, default=0.05, help="share of the bound (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--svg", type=Path, help="where to draw")
    chosen = parser.parse_args()
    points = []
    print(f"{'nodes':>7} {'pods':>8} {f'within {chosen.within:.0%}':>11} {'in the end':>11} {'limit':>7} {'MB':>6}")
    for nodes in chosen.nodes:
        began = time.monotonic()
        points.append(point := measure(nodes, chosen.within, chosen.seed))
        when = "never" if point.seconds is None else f"{point.seconds:.1f} s"
        print(
            f"{nodes:>7,} {PODS * nodes:>8,} {when:>11} {point.gap:>11.1%} {point.limit:>5.0f} s {point.megabytes:>6,}"
            f"   ({time.monotonic() - began:.0f} s in all)",
            flush=True,
        )
    print(f"seconds grow with nodes to the power of {exponent(points):.2f}")
    if chosen.svg:
        chosen.svg.write_text(drawing(points), encoding="utf-8")


if __name__ == "__main__":
    main()
