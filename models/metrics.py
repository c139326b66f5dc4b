"""Measured load of nodes, as load-aware plugins read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CPU, MEMORY = "CPU", "Memory"
AVERAGE, LATEST, DEVIATION, UNSPECIFIED = "AVG", "Latest", "STD", ""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of one node, named as load-watcher names it.

    Parameters
    ----------
    type
        What was measured: `CPU`, `MEMORY`, or what no plugin here reads.
    operator
        How: `AVERAGE`, `LATEST` or `DEVIATION`; old sources leave it `UNSPECIFIED` for an average.
    value
        In percent of what the node has.
    """

    type: str
    operator: str
    value: float


@dataclass(frozen=True)
class LoadMetrics:
    """Measured load by node name, in the order of the source.

    Parameters
    ----------
    nodes
        Figures by node name. A node without an entry, or with an empty one, is not known.
    end
        When the measuring ended, in seconds since 1970. ``None`` means the moment of the snapshot, so that every
        pod bound by then is part of what was measured; 0 means that nothing was.
    source
        Where the figures come from, for a reader.
    """

    nodes: Mapping[str, tuple[Metric, ...]] = field(default_factory=dict)
    end: int | None = None
    source: str = ""

    def of(self, node: str) -> tuple[Metric, ...]:
        """Return the figures of a node; none if it is not known."""
        return self.nodes.get(node, ())
