"""A map of nodes for a terminal: a bar for each, today and in the answer."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from stowplan.answers.measures import Measures, NodeUsage
from stowplan.models.words import plural
from stowplan.plugins_compat.requests import CPU, MEMORY
from stowplan.report.tables import ARROW, bar, say

MOST_NODES = 40
"""Most nodes of a map; those that change least are left out."""

WIDEST, NARROWEST = 16, 4
"""Characters of a full bar."""

PERCENT = 5
"""Characters of a share, such as ``1234%``."""


def show_node_map(console: Console, then: Measures, now: Measures, name: str, *, wide: bool = False) -> None:
    """Print a bar for each node and resource, before and after, as wide as the terminal allows.

    Parameters
    ----------
    name
        What the placement afterwards is called.
    wide
        Whether to show all nodes.
    """
    pairs = list(zip(then.nodes, now.nodes, strict=True))
    resources = [resource for resource in (CPU, MEMORY) if any(u.resource == resource for u in then.usage)]
    if not wide and len(pairs) > MOST_NODES:
        most = sorted(pairs, key=lambda pair: -_change(pair[0], pair[1], resources))[:MOST_NODES]
        pairs = [pair for pair in pairs if pair in most]
    longest = max(len("node"), *(len(node.name) for node, _ in pairs))
    length = (console.width - longest) // (2 * len(resources)) - PERCENT - 2
    if length < NARROWEST:
        resources = resources[:1]
        length = (console.width - longest) // 2 - PERCENT - 2
    length = min(WIDEST, max(NARROWEST, length))
    console.print()
    cell = length + 1 + PERCENT
    head = "".join(f" {f'{resource}, today':<{cell}} {f'{ARROW} {name}':<{cell}}" for resource in resources)
    say(console, f"{'node':<{longest}}{head}".rstrip(), style="bold")
    for before, after in pairs:
        say(console, _line(before, after, resources, longest, length))
    if len(pairs) < len(then.nodes):
        rest = plural(len(then.nodes) - len(pairs), "node")
        console.print(f"… and {rest} that change less; -o wide shows all", style="dim")


def _line(before: NodeUsage, after: NodeUsage, resources: Sequence[str], longest: int, length: int) -> Text:
    """Return the line of a node; what is above the whole is told by the number."""
    line = Text(f"{before.name:<{longest}}")
    for resource in resources:
        for usage, style in ((before, "dim"), (after, "")):
            share = usage.share(resource)
            drawn = "" if share is None else bar(share, length)
            told = "-" if share is None else f"{share:.0%}"
            line.append(f" {drawn:<{length}} ", style=style)
            line.append(f"{told:>{PERCENT}}", style="bold red" if share is not None and share > 1 else style)
    return line


def _change(before: NodeUsage, after: NodeUsage, resources: Sequence[str]) -> float:
    """Return the largest change of a resource's share."""
    return max((abs((after.share(name) or 0.0) - (before.share(name) or 0.0)) for name in resources), default=0.0)
