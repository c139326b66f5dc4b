"""Drawings of a page: how full nodes are, the course of a search, what the first moves bring, and the waves of a plan.

They are told apart by form as well as by color: hollow, gray, and full bars; dashed and solid lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from xml.sax.saxutils import escape

from stowplan.answers.measures import Measures
from stowplan.html_report.page import Drawing
from stowplan.models.plan import MoveDocument, Plan
from stowplan.models.problem import Tier
from stowplan.models.words import plural
from stowplan.optimizer.run import Step
from stowplan.report.svg import MARGIN, Axis, Curve, Point, document, line_chart, text
from stowplan.report.svg import WIDTH as CHART_WIDTH
from stowplan.report.words import change, figure, tier_label

WIDTH, HEIGHT = 600, 250
"""Size of a histogram in pixels."""

LEFT, BOTTOM, TOP = 44, 46, 40
"""Space around its drawing area."""

BINS = 11
"""Tenths of what a node can allocate, and what is beyond the whole."""

STYLES = ('fill="#fff" stroke="#000"', 'fill="#bbb" stroke="#bbb"', 'fill="#06c" stroke="#06c"')
"""The bars of today, of kube-scheduler, and of the answer."""

MOST_POINTS = 150
"""Most points of a curve; those between are left out."""

MOST_CHARTS = 2
"""Most tiers whose search is drawn."""


def histogram(resource: str, placements: Sequence[tuple[str, Measures]]) -> Drawing:
    """Draw how many nodes are how full, with a bar for each of up to three placements.

    Parameters
    ----------
    placements
        What each is called, and its measures: today first, the answer last.
    """
    counts = [(name, _bins(measures, resource)) for name, measures in placements]
    number = sum(counts[0][1])
    most = max(max(bins) for _, bins in counts) or 1
    bin_width = (WIDTH - LEFT - 10) / BINS
    bar = (bin_width - 10) / len(counts)
    base = HEIGHT - BOTTOM

    def up(count: float) -> float:
        return round(base - (base - TOP) * count / most, 1)

    parts = []
    for tick in ticks(0, most, whole=True):
        parts.append(f'<path d="M{LEFT},{up(tick)}H{WIDTH - 10}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, up(tick) + 4, f"{tick:,.0f}", anchor="end", size=11))
    for i, (name, bins) in enumerate(counts):
        style = _style(i, len(counts))
        for b, count in enumerate(bins):
            if count:
                x, y = LEFT + b * bin_width + 5 + i * bar, up(count)
                told = f"{name}: {plural(count, 'node')} {_range(b)}"
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{bar - 1:.1f}" height="{base - y:.1f}" {style}>'
                    f"<title>{escape(told)}</title></rect>"
                )
        parts += _legend(LEFT + i * 180, name, style)
    for b in range(BINS):
        label = ">100%" if b == BINS - 1 else f"{b * 10}–{b * 10 + 10}%"
        parts.append(text(round(LEFT + (b + 0.5) * bin_width, 1), base + 16, label, anchor="middle", size=10))
    name = resource.rpartition("/")[2]
    parts.append(
        text(LEFT + (WIDTH - LEFT) / 2, HEIGHT - 10, f"{name} requested, of what a node offers", anchor="middle")
    )
    caption = f"How many of {plural(number, 'node')} have how much {name} requested."
    return Drawing(document(WIDTH, HEIGHT, caption, parts), caption)


def _style(i: int, placements: int) -> str:
    """Return how the bars of a placement are drawn; the last one is the answer."""
    return STYLES[0] if i == 0 else STYLES[2] if i == placements - 1 else STYLES[1]


def _bins(measures: Measures, resource: str) -> list[int]:
    """Count the nodes by tenths of their utilization; a whole tenth belongs to the one below it, as 100 % does."""
    bins = [0] * BINS
    for node in measures.nodes:
        if (share := node.share(resource)) is not None:
            bins[min(BINS - 1, max(0, math.ceil(round(10 * share, 9)) - 1))] += 1
    return bins


def _range(b: int) -> str:
    return "above 100%" if b == BINS - 1 else f"at {b * 10} to {b * 10 + 10}%"


def _legend(x: float, name: str, style: str) -> list[str]:
    return [f'<rect x="{x}" y="8" width="12" height="12" {style}/>', text(x + 18, 18, name)]


def ticks(low: float, high: float, *, whole: bool = False, most: int = 6) -> list[float]:
    """Return round values between two, at most so many; a step is 1, 2, or 5 times a power of ten."""
    span = high - low
    if span <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    steps = [power * factor for factor in (1, 2, 5, 10, 20)]
    if whole:
        steps = [max(1.0, step) for step in steps]
    step = next(step for step in steps if span / step <= most - 1 or step == steps[-1])
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def convergence(tiers: Sequence[Tier], steps: Sequence[Step], seconds: float) -> Iterator[Drawing]:
    """Yield a drawing of incumbent and bound over time for each tier that took some time.

    Parameters
    ----------
    steps
        As the search reported them.
    seconds
        When it ended.
    """
    if not steps:
        return
    end = max(seconds, steps[-1].seconds, 0.02)
    begin = max(0.01, min((step.seconds for step in steps if step.seconds > 0), default=0.01))
    logarithmic = end / begin > 30
    low = begin if logarithmic else 0.0
    for t in _searched(steps):
        tier = tiers[t]
        values = _over_time(steps, [tier.shown(step.values[t]) for step in steps], low, end)
        bounds = _over_time(steps, [tier.shown(step.bounds[t]) for step in steps], low, end)
        found = [point.y for point in (*values, *bounds)]
        y = upright(min(found), max(found))
        times = _decades(low, end) if logarithmic else ticks(low, end)
        chart = line_chart(
            f"{tier.name} over the time of the search",
            Axis("seconds", low, end, [(second, f"{second:g}") for second in times], logarithmic),
            y,
            [Curve(bounds, stepped=True, dashed=True), Curve(values, stepped=True)],
        )
        yield Drawing(
            chart,
            f"{tier_label(tier)}: the best value found so far (solid) and the proven lower bound (dashed). "
            "Where they meet, the value is proven optimal, given the rows above it.",
        )


def _searched(steps: Sequence[Step]) -> list[int]:
    """Return the tiers whose search is drawn, in their order: those whose values and bounds change most often."""
    tiers = range(len(steps[0].values))
    changes = {t: sum(1 for a, b in pairwise(steps) if _of(a, t) != _of(b, t)) for t in tiers}
    return sorted(sorted((t for t in tiers if changes[t]), key=lambda t: (-changes[t], t))[:MOST_CHARTS])


def _of(step: Step, t: int) -> tuple[int, int]:
    return step.values[t], step.bounds[t]


def _over_time(steps: Sequence[Step], values: Sequence[float], low: float, end: float) -> list[Point]:
    """Return a curve from the first step to the end of the search, without steps at which nothing changes."""
    points = [
        Point(max(low, step.seconds), value, tooltip=f"{figure(value)} after {step.seconds:.2f} s, {step.source}")
        for i, (step, value) in enumerate(zip(steps, values, strict=True))
        if i == 0 or value != values[i - 1]
    ]
    last = replace(points[-1], x=end)
    return [*_thinned(points), last]


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Return at most `MOST_POINTS` of some points, the first and the last among them."""
    if len(points) <= MOST_POINTS:
        return list(points)
    chosen = sorted({round(i * (len(points) - 1) / (MOST_POINTS - 1)) for i in range(MOST_POINTS)})
    return [points[i] for i in chosen]


def _decades(low: float, high: float) -> list[float]:
    return [10.0**k for k in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def upright(low: float, high: float) -> Axis:
    """Return an upright axis for values between two."""
    if low == high:
        low, high = min(0.0, low), max(1.0, high)
    return Axis("", low, high, [(value, compact(value)) for value in ticks(low, high)])


def compact(value: float) -> str:
    """Write a value beside an axis, where there is room for few digits: 4M, 50k, 2,500."""
    for unit, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if abs(value) >= 10 * unit or (unit > 1000 and abs(value) >= unit):
            return f"{value / unit:g}{letter}"
    return figure(value)


def first_moves(tier: Tier, before: int, course: Sequence[tuple[int, int]], bound: int | None) -> Drawing:
    """Draw what the first moves bring of a tier.

    Parameters
    ----------
    before
        Value without any move, in whole units.
    course
        Number of moves and value by then, in the order of the moves.
    bound
        Proven lower bound, if there is one.
    """
    points = [Point(0, tier.shown(before), tooltip=f"today: {figure(tier.shown(before))}")]
    points += [
        Point(moves, tier.shown(value), tooltip=f"{plural(moves, 'move')}: {figure(tier.shown(value))}")
        for moves, value in course
    ]
    points = _thinned(points)
    most = max(1, *(round(point.x) for point in points))
    floor = [] if bound is None else [tier.shown(bound)]
    axis = upright(min(*floor, *(point.y for point in points)), max(point.y for point in points))
    curves = [Curve(points, stepped=True)]
    if floor:
        curves.append(Curve([Point(0, floor[0]), Point(most, floor[0])], "bound", dashed=True))
    chart = line_chart(
        f"{tier.name} after the first moves",
        Axis("moves", 0, most, [(moves, f"{moves:,.0f}") for moves in ticks(0, most, whole=True)]),
        axis,
        curves,
    )
    return Drawing(
        chart,
        f"{tier_label(tier)}, if only so many moves are made, those that bring most first. The frontier command "
        "searches for the best placement with each number of moves, which may be better.",
    )


CELL, ROW, LABEL, VALUES = 14, 26, 76, 250
"""Widest cell of a move, height of a wave, and the widths of the labels of waves and of what a wave brings."""

MOST_CELLS, MOST_WAVES = 600, 60
"""Moves above which a wave is one bar, and most waves that are drawn."""

SIGNS = {"evict": "#06c", "place": "#2e8b57", "remove": "#b5651d"}
NAMES = {"evict": "eviction", "place": "pending pod placed", "remove": "preemption"}


def waves(plan: Plan) -> Drawing:
    """Draw the waves of a plan, one below the other, each from where the one before ends."""
    shown = plan.waves[:MOST_WAVES]
    total = sum(len(wave.moves) for wave in shown)
    width = CHART_WIDTH + 2 * MARGIN + VALUES
    room = width - LABEL - VALUES
    cell = min(CELL, room / max(1, total))
    parts, begun, y = [], 0, 34
    before: Sequence[float] = [tier.before for tier in plan.tiers]
    names = {**NAMES, "evict": "move"} if plan.without_cluster else NAMES
    for i, (kind, color) in enumerate(SIGNS.items()):
        left = LABEL + i * 190
        parts += [f'<rect x="{left}" y="8" width="12" height="12" fill="{color}"/>', text(left + 18, 18, names[kind])]
    for wave in shown:
        parts.append(text(0, y + 15, f"wave {wave.number}"))
        parts.append(f'<path d="M{LABEL},{y + ROW - 2}H{width}" stroke="#ddd"/>')
        x = LABEL + begun * cell
        if total > MOST_CELLS:
            told = f"wave {wave.number}: {plural(len(wave.moves), 'move')}"
            parts.append(_block(x, y, max(1.0, len(wave.moves) * cell), SIGNS["evict"], told))
        else:
            parts += [
                _block(x + i * cell, y, max(1.0, cell - 1), SIGNS[move.kind], told_move(move))
                for i, move in enumerate(wave.moves)
            ]
        parts.append(text(width - VALUES + 10, y + 15, _brings(plan, before, wave.tiers)))
        before, begun, y = wave.tiers or before, begun + len(wave.moves), y + ROW
    left = len(plan.waves) - len(shown)
    more = f" {plural(left, 'more wave')} not drawn." if left else ""
    caption = (
        "Each block is a move; waves follow each other, and the moves of a wave may be under way at once. "
        f"On the right, the objective once the wave is over.{more}"
    )
    return Drawing(document(width, y + 6, "The waves of the plan", parts), caption, wide=True)


def told_move(move: MoveDocument) -> str:
    """Return a move in one line."""
    return f"{move.pod.key}: {move.source or '(pending)'} → {move.target or '(none)'}"


def _block(x: float, y: float, width: float, color: str, told: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{ROW - 8}" fill="{color}">'
        f"<title>{escape(told)}</title></rect>"
    )


def _brings(plan: Plan, before: Sequence[float], after: Sequence[float]) -> str:
    """Return how the first tier changes that a wave changes."""
    changed = [
        change(tier.name, then, now) for tier, then, now in zip(plan.tiers, before, after, strict=False) if then != now
    ]
    return changed[0] if changed else ""
