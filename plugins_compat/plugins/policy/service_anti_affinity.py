"""ServiceAntiAffinity: pods of one service are spread over the values of a node label."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from pydantic import Field

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import LabelSelector
from stowplan.models.problem import Origin, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.policy.scale import MOST
from stowplan.plugins_compat.plugins.policy.selecting import service_selectors


class ServiceAntiAffinityArgs(Args):
    """The label whose values are the domains."""

    label: str = Field(min_length=1)


class ServiceAntiAffinity(Plugin):
    """Scores ``int(10·(N − n)/N)`` where ``n`` of the ``N`` pods of the pod's first service share the node's value.

    ``N`` counts the service's pods on all nodes, ``n`` those on feasible nodes. A node without the label scores 0;
    where the service has no pods, or the pod no service, a node with the label scores 10. A policy gives each use a
    name of its own.
    """

    name = "ServiceAntiAffinity"
    surrogate = "the share of the service's pods that is in the pod's domain; nodes without the label are no domain"
    Args = ServiceAntiAffinityArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by the label of the node, in 32-bit floating point."""
        topology = self.state.topology(self.args.label)
        domain = topology.domain[nodes]
        inside = domain >= 0
        selector = self._selector(cycle.signature)
        scores = np.where(inside, MOST, 0).astype(np.int64)
        if selector is None:
            return scores
        counts = self._counts(cycle.signature, selector)
        total = np.float32(counts.sum())
        if not total:
            return scores
        held = np.zeros(max(1, topology.size), dtype=np.int64)
        np.add.at(held, domain[inside], counts[nodes[inside]])
        points = np.float32(MOST) * ((total - held[domain].astype(np.float32)) / total)
        result: Ints = np.where(inside, points, 0).astype(np.int64)
        return result

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return a surrogate: each pod costs the share of its service that is in its domain."""
        groups: dict[tuple[str, LabelSelector], None] = {}
        for signature in view.signatures:
            if (selector := self._selector(signature)) is not None:
                groups.setdefault((signature.pod.namespace, selector))
        topology = self.state.topology(self.args.label)
        for namespace, selector in groups:
            counted = [s for s in self.state.signatures.all if _counts(namespace, selector)(s)]
            yield from view.even(Origin(self.name, f"{namespace} over {topology.key}"), topology, counted, MOST / 100)

    def _selector(self, signature: Signature) -> LabelSelector | None:
        """Return the selector of the first service that selects the pod."""
        found = self.state.memo(
            ("first service", signature), lambda: list(service_selectors(self.state.snapshot, signature.pod))[:1]
        )
        return found[0] if found else None

    def _counts(self, signature: Signature, selector: LabelSelector) -> Ints:
        namespace = signature.pod.namespace
        key = ("pods of a service", namespace, selector)
        return self.state.domain_counts(key, _counts(namespace, selector)).per_node


def _counts(namespace: str, selector: LabelSelector) -> Callable[[Signature], bool]:
    return lambda s: s.pod.namespace == namespace and selector.matches(s.pod.metadata.labels)
