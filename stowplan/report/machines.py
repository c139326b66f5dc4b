"""Nodes around their mean utilization, placement by placement, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stowplan.answers.measures import Measures
from stowplan.models.words import plural
from stowplan.report.svg import document, text

NEAR = 5.0
"""Percentage points from the mean that are shaded."""

ACROSS = 4
"""Panels side by side."""

WIDTH, HEIGHT = 220, 190
"""Size of the drawing area of a panel in pixels."""

LEFT, ABOVE, BELOW, GAP = 44, 52, 52, 26
"""Space beside the first panel, above and below each, and between two."""

HEAD = 64
"""Space for the title and the legend."""

DOT, OUTSIDE, MEAN, BAND = "#06c", "#b5651d", "#222", "#dbe9f8"
"""Colors: nodes near the mean, other nodes, the mean, and what is near it."""


def machines_chart(placements: Sequence[tuple[str, Measures]]) -> str:
    """Draw every node as a dot at its utilization, one panel for each resource and placement.

    Nodes come in rising order, and the mean counts each node once, as the variance over machines does.

    Parameters
    ----------
    placements
        What each is called, and its measures.

    Returns
    -------
    str
        The text of an SVG file.
    """
    resources = [usage.resource for usage in placements[0][1].usage if usage.allocatable]
    shares = {
        resource: [(title, _shares(measures, resource)) for title, measures in placements] for resource in resources
    }
    top = max((share for panels in shares.values() for _, found in panels for share in found), default=100.0)
    scale = max(100, 20 * math.ceil(top / 20))
    columns, lines = min(ACROSS, len(placements)), math.ceil(len(placements) / ACROSS)
    panel = ABOVE + HEIGHT + BELOW
    width = LEFT + columns * (WIDTH + GAP)
    height = HEAD + len(resources) * lines * panel
    number = len(placements[0][1].nodes)
    title = f"Requests on {plural(number, 'node')}, in percent of what can be allocated: one dot each, in rising order"
    parts = [
        text(LEFT, 24, title, size=15),
        *_legend(LEFT, 46),
    ]
    for r, resource in enumerate(resources):
        for i, (name, found) in enumerate(shares[resource]):
            x = LEFT + (i % ACROSS) * (WIDTH + GAP)
            y = HEAD + (r * lines + i // ACROSS) * panel + ABOVE
            heading = f"{resource}:" if i == 0 else ""
            parts += [text(x, y - 30, heading, size=14), *_panel(x, y, name, found, scale, numbered=i % ACROSS == 0)]
    return document(width, height, title, parts)


def _shares(measures: Measures, resource: str) -> list[float]:
    """Return the utilization of the nodes that offer a resource, in percent and rising order."""
    return sorted(100 * share for node in measures.nodes if (share := node.share(resource)) is not None)


def _panel(x: int, y: int, name: str, shares: Sequence[float], scale: int, *, numbered: bool) -> list[str]:
    """Draw one panel; ``x`` and ``y`` are the upper left corner of its drawing area."""

    def up(value: float) -> float:
        return round(y + HEIGHT * (1 - min(max(value, 0.0), scale) / scale), 1)

    mean = sum(shares) / len(shares)
    deviation = math.sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))
    near = sum(abs(share - mean) <= NEAR for share in shares)
    band = up(mean + NEAR), up(mean - NEAR)
    parts = [
        text(x, y - 10, name, size=13),
        f'<rect x="{x}" y="{band[0]}" width="{WIDTH}" height="{band[1] - band[0]:.1f}" fill="{BAND}"/>',
    ]
    for tick in range(0, scale + 1, 20 if scale <= 200 else 20 * math.ceil(scale / 200)):
        parts.append(f'<path d="M{x},{up(tick)}h{WIDTH}" stroke="#ddd" stroke-width="0.5"/>')
        if numbered:
            parts.append(text(x - 6, up(tick) + 4, f"{tick}%", anchor="end", size=11))
    parts.append(f'<path d="M{x},{up(mean)}h{WIDTH}" stroke="{MEAN}" stroke-dasharray="4 3"/>')
    radius = 4 if len(shares) <= 30 else 2.5 if len(shares) <= 100 else 1.6
    for i, share in enumerate(shares):
        across = round(x + WIDTH * (i + 0.5) / len(shares), 1)
        color = DOT if abs(share - mean) <= NEAR else OUTSIDE
        parts.append(f'<circle cx="{across}" cy="{up(share)}" r="{radius}" fill="{color}"/>')
    parts.append(f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>')
    parts.append(text(x, y + HEIGHT + 18, f"mean {mean:.1f}%, deviation {deviation:.2f} points"))
    parts.append(text(x, y + HEIGHT + 34, f"{near:,} of {len(shares):,} near the mean"))
    return parts


def _legend(x: int, y: int) -> list[str]:
    """Draw what the colors mean."""
    return [
        f'<circle cx="{x + 4}" cy="{y - 4}" r="4" fill="{DOT}"/>',
        text(x + 14, y, f"within {NEAR:g} percentage points of the mean (shaded)"),
        f'<circle cx="{x + 354}" cy="{y - 4}" r="4" fill="{OUTSIDE}"/>',
        text(x + 364, y, "farther away"),
        f'<path d="M{x + 460},{y - 4}h24" stroke="{MEAN}" stroke-dasharray="4 3"/>',
        text(x + 490, y, "mean of all nodes"),
    ]
