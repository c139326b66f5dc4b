"""SelectorSpreadPriority: pods of one service or controller are spread over nodes and zones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import LabelSelector
from stowplan.models.problem import Origin, Topology, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import REGION_LABELS, ZONE_LABELS
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.policy.scale import MOST
from stowplan.plugins_compat.plugins.policy.selecting import controller_selectors, service_selectors

ZONE_SHARE = 2.0 / 3.0
"""How much of the score the zone decides, where there are zones."""


class SelectorSpreadPriority(Plugin):
    """Scores nodes, and two thirds of it zones, by how few pods they hold that a service or controller selects.

    A pod counts if *any* service, ReplicationController or ReplicaSet that selects the incoming pod selects it too.
    Counts are compared over the feasible nodes alone, in 32-bit floating point.
    """

    name = "SelectorSpreadPriority"
    surrogate = "the share of the selected pods that is on the pod's node, or in its zone"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score ``10·(max − count)/max``; where no zone holds a pod, each zone scores 10 (upstream divides by 0)."""
        signature = cycle.signature
        selectors = self._selectors(signature)
        best = np.float32(MOST)
        if not selectors:
            return np.full(len(nodes), MOST, dtype=np.int64)
        counts = self._counts(signature, selectors)[nodes].astype(np.float32)
        scores = _share_missing(counts)
        zone = self._zones().domain[nodes]
        if (zone >= 0).any():
            inside = zone >= 0
            totals = np.zeros(self._zones().size, dtype=np.float32)
            np.add.at(totals, zone[inside], counts[inside])
            highest = totals.max(initial=np.float32(0))
            of_zone = best * ((highest - totals) / highest) if highest > 0 else np.full_like(totals, best)
            mixed = scores * np.float32(1.0 - ZONE_SHARE) + np.float32(ZONE_SHARE) * of_zone[zone]
            scores = np.where(inside, mixed, scores)
        points: Ints = scores.astype(np.int64)
        return points

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return a surrogate: each pod costs the share of its group that is on its node, and in its zone."""
        groups: dict[tuple[str, tuple[LabelSelector, ...]], Signature] = {}
        for signature in view.signatures:
            if selectors := tuple(self._selectors(signature)):
                groups.setdefault((signature.pod.namespace, selectors), signature)
        zones = self._zones()
        parts = [(zones, ZONE_SHARE), (view.by_node, 1 - ZONE_SHARE)] if zones.size > 1 else [(view.by_node, 1.0)]
        for (namespace, selectors), _ in groups.items():
            counted = [s for s in self.state.signatures.all if _counts(namespace, selectors)(s)]
            for topology, share in parts:
                origin = Origin(self.name, f"{namespace} over {topology.key}")
                yield from view.even(origin, topology, counted, share * MOST / 100)

    def _selectors(self, signature: Signature) -> Sequence[LabelSelector]:
        pod, snapshot = signature.pod, self.state.snapshot
        return self.state.memo(
            (self.name, signature), lambda: [*service_selectors(snapshot, pod), *controller_selectors(snapshot, pod)]
        )

    def _counts(self, signature: Signature, selectors: Sequence[LabelSelector]) -> Ints:
        """``[n]`` pods that some selector selects."""
        namespace = signature.pod.namespace
        key = (self.name, namespace, tuple(selectors))
        return self.state.domain_counts(key, _counts(namespace, selectors)).per_node

    def _zones(self) -> Topology:
        """Return the zones of the nodes, told apart by the beta labels of region and zone."""

        def make() -> Topology:
            codes: dict[tuple[str, str], int] = {}
            domain = np.full(self.state.size, -1, dtype=np.int64)
            for n, node in enumerate(self.state.nodes):
                region, zone = (node.labels.get(key, "") for key in (REGION_LABELS[0], ZONE_LABELS[0]))
                if region or zone:
                    domain[n] = codes.setdefault((region, zone), len(codes))
            return Topology(ZONE_LABELS[0], domain, tuple(zone for _, zone in codes))

        return self.state.memo((self.name, "zones"), make)


def _share_missing(counts: np.ndarray) -> np.ndarray:
    """Return ``10·(max − count)/max``, or 10 where nothing is counted."""
    highest = counts.max(initial=np.float32(0))
    best = np.float32(MOST)
    return best * ((highest - counts) / highest) if highest > 0 else np.full_like(counts, best)


def _counts(namespace: str, selectors: Sequence[LabelSelector]) -> Callable[[Signature], bool]:
    """Return the predicate of signatures that count: same namespace, not terminating, selected by some selector."""

    def counts(signature: Signature) -> bool:
        pod = signature.pod
        same = pod.namespace == namespace and not pod.terminating
        return same and any(selector.matches(pod.metadata.labels) for selector in selectors)

    return counts
