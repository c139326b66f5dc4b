"""SVG files, and line charts as such."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from stowplan.models.errors import InputError

WIDTH, HEIGHT, MARGIN = 640, 360, 56
"""Size of a chart in pixels."""

COLORS = ("#06c", "#2e8b57", "#b5651d", "#7a4fa3")
"""Colors of the curves that are not dashed, in their order; repeated if there are more curves."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis.

    Parameters
    ----------
    label
        Label of the axis, or empty.
    low, high
        Values at its ends; above 0 if the axis is logarithmic.
    ticks
        Values with their texts.
    """

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Return where a value is, 0 at the low end and 1 at the high one."""
        scale: Callable[[float], float] = math.log if self.logarithmic else float
        span = scale(self.high) - scale(self.low)
        return (scale(value) - scale(self.low)) / span if span else 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a curve: its values, a text above it, and a tooltip."""

    x: float
    y: float
    text: str = ""
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve.

    Parameters
    ----------
    points
        From left to right.
    name
        Printed at its end.
    stepped
        Whether each point holds up to the next one.
    dashed
        Whether it is gray and without marks at its points, as a curve for comparison.
    """

    points: Sequence[Point]
    name: str = ""
    stepped: bool = False
    dashed: bool = False


def line_chart(title: str, x: Axis, y: Axis, curves: Sequence[Curve]) -> str:
    """Draw a chart; return the text of an SVG file."""

    def at(point: Point) -> tuple[float, float]:
        return across(point.x), up(point.y)

    def across(value: float) -> float:
        return round(MARGIN + (WIDTH - 2 * MARGIN) * x.share(value), 1)

    def up(value: float) -> float:
        return round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * y.share(value), 1)

    parts = [
        text(WIDTH / 2, 24, title, anchor="middle", size=14),
        text(WIDTH / 2, HEIGHT - 12, x.label, anchor="middle"),
        text(MARGIN - 8, MARGIN - 12, y.label),
    ]
    for value, words in y.ticks:
        parts.append(f'<path d="M{MARGIN},{up(value)}H{WIDTH - MARGIN}" stroke="#ddd"/>')
        parts.append(text(MARGIN - 8, up(value) + 4, words, anchor="end"))
    parts += [text(across(value), HEIGHT - MARGIN + 18, words, anchor="middle") for value, words in x.ticks]
    colors = iter(range(len(curves)))
    for curve in curves:
        color = "#bbb" if curve.dashed else COLORS[next(colors) % len(COLORS)]
        places = [at(point) for point in curve.points]
        if not places:
            continue
        style = f'fill="none" stroke={quoteattr(color)} stroke-width="2"' + ' stroke-dasharray="4"' * curve.dashed
        parts.append(f'<path d="{_path(places, curve.stepped)}" {style}/>')
        if not curve.dashed:
            for point, (left, top) in zip(curve.points, places, strict=True):
                tooltip = f"<title>{escape(point.tooltip)}</title>" if point.tooltip else ""
                parts.append(f'<circle cx="{left}" cy="{top}" r="3" fill="{color}">{tooltip}</circle>')
                parts.append(text(left, top - 8, point.text, color, anchor="middle"))
        end, height = places[-1]
        parts.append(text(end + 8, height + 4, curve.name, color))
    return document(WIDTH, HEIGHT, title, parts)


def document(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """Return the text of an SVG file on white ground; empty parts are left out."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    return "\n".join([*head, *filter(None, parts), "</svg>", ""])


def write_drawing(drawing: str, file: str) -> None:
    """Write the text of an SVG file.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        Path(file).write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=file) from None


def _path(places: Sequence[tuple[float, float]], stepped: bool) -> str:
    (left, top), *rest = places
    steps = [f"H{x} V{y}" if stepped else f"L{x},{y}" for x, y in rest]
    return " ".join([f"M{left},{top}", *steps])


def text(x: float, y: float, words: str, color: str = "#000", *, anchor: str = "start", size: int = 12) -> str:
    """Write a text, if there is one."""
    if not words:
        return ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{color}">{escape(words)}</text>'
