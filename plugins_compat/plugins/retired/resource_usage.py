"""What the resource scores of release 1.20 share: every listed resource counts, on every node and for every pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import NodeScore, Origin, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.resource_scores import ResourceSpec, Scored, default_resources, score_loads


class ResourceArgs(Args):
    """Which resources are scored, and how much each counts; weight 0 counts as 1."""

    resources: tuple[ResourceSpec, ...] = ()


class ResourceUsage(Plugin):
    """A mean over resources, each scored by a whole number from 0 to 100, rounded down.

    A resource that the node has none of, or that the pod does not ask for, keeps its weight.
    """

    surrogate = "each pod as its node is used in the end; a resource that the node has none of loses its weight"
    Args = ResourceArgs

    def __init__(self, args: Any, state: ClusterState) -> None:
        super().__init__(args, state)
        self.specs: tuple[ResourceSpec, ...] = args.resources or default_resources()
        self.scored = Scored(state, self.specs, nonzero=True)

    def part(self, used: Ints, capacity: Ints) -> Ints:
        """Score one resource where there is some and not too much is used of it."""
        raise NotImplementedError

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Return the weighted mean."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for spec in self.specs:
            used, capacity = self._usage(cycle.signature, spec.name, nodes)
            inside = (capacity > 0) & (used <= capacity)
            total += np.where(inside, self.part(used, np.maximum(capacity, 1)), 0) * (spec.weight or 1)
        scores: Ints = total // sum(spec.weight or 1 for spec in self.specs)
        return scores

    def node_score(self, view: ScoreView, kind: Literal["least", "most"]) -> Iterator[Weighted]:
        """Yield the score as a `NodeScore`; scores of extended resources have none."""
        loads = score_loads(view, self.scored)
        if loads is not None and len(loads) == len(self.specs):
            scored = np.ones(len(view.signatures), dtype=np.int64)
            yield Weighted(1, NodeScore(Origin(self.name), kind, loads, view.point, scored))

    def _usage(self, signature: Signature, name: str, nodes: Ints) -> tuple[Ints, Ints]:
        """Return usage with the pod and capacity, ``[nodes]`` each; nothing of what no node has and no pod asks for."""
        if name not in self.state.resources:
            nothing = np.zeros(len(nodes), dtype=np.int64)
            return nothing, nothing
        used = self.scored.on_nodes(name)[nodes] + self.scored.requests(signature).get(name, 0)
        return used, self.state.allocatable[self.state.resources[name]][nodes]
