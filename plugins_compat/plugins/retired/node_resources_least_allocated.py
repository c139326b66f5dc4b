"""NodeResourcesLeastAllocated, a plugin of its own up to release 1.21: nodes with much left are better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.models.arrays import Ints
from stowplan.models.problem import POINTS, Weighted
from stowplan.plugins_compat.framework.view import ScoreView, View
from stowplan.plugins_compat.plugins.retired.resource_usage import ResourceUsage


class NodeResourcesLeastAllocated(ResourceUsage):
    """Scores a resource ``⌊100·(capacity − used)/capacity⌋``; 0 where the node has none of it, or too little."""

    name = "NodeResourcesLeastAllocated"

    def part(self, used: Ints, capacity: Ints) -> Ints:
        """Score one resource."""
        return (capacity - used) * POINTS // capacity

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the score as a `NodeScore`."""
        yield from self.node_score(view, "least")

    def omissions(self, view: View) -> Iterable[str]:
        """Say so if the score has no term."""
        if next(self.terms(view.scoring(())), None) is None:
            yield f"{self.name}: scores of extended resources are not in the model"
