"""NodePreferAvoidPods, up to release 1.22: nodes may name controllers whose pods shall rather go elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Node
from stowplan.models.problem import POINTS, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
CONTROLLERS = ("ReplicationController", "ReplicaSet")


class NodePreferAvoidPods(Plugin):
    """Scores 0 where the node's annotation names the pod's ReplicationController or ReplicaSet, else 100.

    Upstream compares kind and uid; an annotation that cannot be read names no controller.
    """

    name = "NodePreferAvoidPods"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by the annotation."""
        return self._scores(cycle.signature)[nodes]

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the scores as a table."""
        yield from view.prefer_score(self.name, self._scores, lambda scores: scores)

    def _scores(self, signature: Signature) -> Ints:
        controller = signature.pod.metadata.controller
        if controller is None or controller.kind not in CONTROLLERS:
            return np.full(self.state.size, POINTS, dtype=np.int64)
        asked = (controller.kind, controller.uid)
        return np.array([0 if asked in self._avoided(node) else POINTS for node in self.state.nodes], dtype=np.int64)

    def _avoided(self, node: Node) -> frozenset[tuple[str, str]]:
        return self.state.memo((self.name, node.name), lambda: avoided(node.metadata.annotations.get(ANNOTATION, "")))


def avoided(annotation: str) -> frozenset[tuple[str, str]]:
    """Return kind and uid of the controllers that an annotation names."""
    try:
        entries = json.loads(annotation)["preferAvoidPods"]
        owners = [entry["podSignature"]["podController"] for entry in entries]
        return frozenset((str(owner.get("kind")), str(owner.get("uid", ""))) for owner in owners)
    except (ValueError, TypeError, KeyError, AttributeError):
        return frozenset()
