"""Reports of the scheduler's cache, event by event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from stowplan.plugins_compat.framework.cache_script import CacheStep
from stowplan.report.rows import Row
from stowplan.report.tables import show_names

HEADING = ("SECOND", "EVENT", "POD", "NODE", "PODS ON THE NODES AFTERWARD", "CHARGED", "SAID")


def show_cache(console: Console, steps: Sequence[CacheStep]) -> None:
    """Print one line for each event."""
    show_names(console, HEADING, [tuple(map(str, row)) for row in _rows(steps)])


def cache_rows(steps: Sequence[CacheStep]) -> Iterator[Row]:
    """Yield the same as rows."""
    yield [word.lower() for word in HEADING]
    yield from _rows(steps)


def _rows(steps: Sequence[CacheStep]) -> Iterator[Row]:
    for step in steps:
        event = step.event
        pods = "; ".join(f"{node}: {', '.join(held)}" for node, held in step.pods.items() if held)
        charged = "; ".join(f"{node}: {_amounts(amounts)}" for node, amounts in step.requested.items() if amounts)
        said = f"error: {step.said}" if step.error else step.said
        yield [f"{event.at:g}", event.event, event.pod, event.node, pods or "none", charged or "nothing", said]


def _amounts(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(amounts.items()))
