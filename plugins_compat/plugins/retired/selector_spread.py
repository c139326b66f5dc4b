"""SelectorSpread, up to release 1.28: pods of one service or controller are spread over nodes and zones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import LabelSelector
from stowplan.models.problem import POINTS, Origin, Topology, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ZONE_LABELS, zone_key
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.default_selector import default_selector

ZONE_SHARE = 2.0 / 3.0
"""How much of the score the zone decides, where the node is in one."""


class SelectorSpread(Plugin):
    """Scores nodes, and two thirds of it zones, by how few pods they hold of the pod's services and controller.

    ``100·(max − count)/max`` over the feasible nodes, and the same over their zones. A pod with spread constraints of
    its own scores 0 everywhere.
    """

    name = "SelectorSpread"
    surrogate = "the share of the selected pods that is on the pod's node, or in its zone"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Count the pods on each node that the merged selector selects."""
        selector = self._selector(cycle.signature)
        if selector is None:
            return np.zeros(len(nodes), dtype=np.int64)
        return self._counts(cycle.signature.pod.namespace, selector)[nodes]

    def normalize(self, cycle: CycleState, nodes: Ints, scores: Ints) -> Ints:
        """Turn counts over, by node and by zone, and cut off what is behind the point."""
        if cycle.pod.spec.topology_spread_constraints:
            return np.zeros_like(scores)
        result = _turned_over(scores)
        zone = self._zones().domain[nodes]
        inside = zone >= 0
        totals = np.zeros(self._zones().size, dtype=np.int64)
        np.add.at(totals, zone[inside], scores[inside])
        if inside.any():
            mixed = result * (1.0 - ZONE_SHARE) + ZONE_SHARE * _turned_over(totals)[zone]
            result = np.where(inside, mixed, result)
        points: Ints = result.astype(np.int64)
        return points

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return a surrogate: each pod costs the share of its group that is on its node, and in its zone."""
        groups = dict.fromkeys(
            (signature.pod.namespace, selector)
            for signature in view.signatures
            if not signature.pod.spec.topology_spread_constraints
            and (selector := self._selector(signature)) is not None
        )
        zones = self._zones()
        parts = [(zones, ZONE_SHARE), (view.by_node, 1 - ZONE_SHARE)] if zones.size > 1 else [(view.by_node, 1.0)]
        for namespace, selector in groups:
            counted = [s for s in self.state.signatures.all if _counts(namespace, selector)(s)]
            for topology, share in parts:
                yield from view.even(Origin(self.name, f"{namespace} over {topology.key}"), topology, counted, share)

    def _selector(self, signature: Signature) -> LabelSelector | None:
        found = self.state.memo((self.name, signature), lambda: [default_selector(self.state.snapshot, signature.pod)])
        return found[0]

    def _counts(self, namespace: str, selector: LabelSelector) -> Ints:
        return self.state.domain_counts((self.name, namespace, selector), _counts(namespace, selector)).per_node

    def _zones(self) -> Topology:
        """Return the zones of the nodes, told apart by region and zone."""

        def make() -> Topology:
            codes: dict[str, int] = {}
            keys = [zone_key(node) for node in self.state.nodes]
            domain = np.array([codes.setdefault(key, len(codes)) if key else -1 for key in keys], dtype=np.int64)
            return Topology(ZONE_LABELS[1], domain, tuple(codes))

        return self.state.memo((self.name, "zones"), make)


def _turned_over(counts: Ints) -> np.ndarray:
    """Return ``100·(max − count)/max``, or 100 where nothing is counted."""
    highest = int(counts.max(initial=0))
    if not highest:
        return np.full(len(counts), float(POINTS))
    return float(POINTS) * ((highest - counts) / float(highest))


def _counts(namespace: str, selector: LabelSelector) -> Callable[[Signature], bool]:
    return lambda s: s.pod.namespace == namespace and not s.pod.terminating and selector.matches(s.pod.metadata.labels)
