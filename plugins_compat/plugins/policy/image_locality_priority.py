"""ImageLocalityPriority: nodes that hold the images already are better."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Node
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.policy.scale import MOST, prefer_ten

MEBI = 2**20
SMALL, LARGE = 23 * MEBI, 1000 * MEBI


class ImageLocalityPriority(Plugin):
    """Scores by the sum of the sizes of the pod's images that the node holds under the name that the pod uses.

    Below 23 MB the score is 0, from 1000 MB on it is 10, and between ``⌊10·(size − 23 MB)/(1000 MB − 23 MB)⌋ + 1``,
    with 1 MB = 2^20 bytes. An image counts once for each container that uses it.
    """

    name = "ImageLocalityPriority"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by the images of the containers."""
        return self._scores(cycle.signature)[nodes]

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the scores as a table; they do not depend on where pods are."""
        yield from prefer_ten(view, self.name, self._scores)

    def _scores(self, signature: Signature) -> Ints:
        images = tuple(container.image for container in signature.pod.spec.containers)

        def make() -> Ints:
            sizes = [self._sizes(node) for node in self.state.nodes]
            total = np.array([sum(held.get(image, 0) for image in images) for held in sizes], dtype=np.int64)
            between = MOST * (total - SMALL) // (LARGE - SMALL) + 1
            return np.where(total < SMALL, 0, np.where(total >= LARGE, MOST, between))

        return self.state.memo((self.name, images), make)

    def _sizes(self, node: Node) -> dict[str, int]:
        """Return the size of each image of a node by name; of several of one name, the first."""

        def make() -> dict[str, int]:
            sizes: dict[str, int] = {}
            for image in node.status.images if node.status else ():
                for name in image.names:
                    sizes.setdefault(name, image.size_bytes)
            return sizes

        return self.state.memo((self.name, "sizes", node.name), make)
