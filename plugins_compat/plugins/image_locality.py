"""ImageLocality: nodes that hold the images already are better."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes.images import normalized
from stowplan.models.problem import POINTS, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView

MEBI = 2**20
LEAST, MOST = 23 * MEBI, 1000 * MEBI


class ImageLocality(Plugin):
    """Scores by the size of the pod's images on the node, each scaled by the share of nodes that hold it."""

    name = "ImageLocality"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score the given nodes."""
        return self.scores(cycle.signature)[nodes]

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the scores as a table; they do not depend on where pods are."""
        yield from view.prefer_score(self.name, self.scores, lambda scores: scores)

    def scores(self, signature: Signature) -> Ints:
        """``[n]`` the score of each node."""
        spec = signature.pod.spec
        inits = spec.init_containers if self.release.images_of_init_containers else ()
        containers = [normalized(container.image) for container in (*inits, *spec.containers)]
        images = list(containers)
        if self.release.images_of_volumes:
            images += [normalized(v.image.reference) for v in spec.volumes if v.image and v.image.reference]

        def make() -> Ints:
            total = np.zeros(self.state.size, dtype=np.int64)
            for image in images:
                size, holders = self._holders().get(image, (0, ()))
                for n in holders:
                    total[n] += int(float(size) * (float(len(holders)) / float(self.state.size)))
            highest = MOST * max(1, len(containers))
            return (np.clip(total, LEAST, highest) - LEAST) * POINTS // (highest - LEAST)

        return self.state.memo((self.name, len(containers), tuple(images)), make)

    def _holders(self) -> dict[str, tuple[int, set[int]]]:
        """Return, for each image name, its size and the nodes that hold it.

        The scheduler's cache keeps one size a name, the one that it met first; the nodes come in the snapshot's order.
        """

        def make() -> dict[str, tuple[int, set[int]]]:
            holders: dict[str, tuple[int, set[int]]] = {}
            for n, node in enumerate(self.state.nodes):
                for image in node.status.images if node.status else ():
                    for name in image.names:
                        holders.setdefault(name, (image.size_bytes, set()))[1].add(n)
            return holders

        return self.state.memo((self.name, "holders"), make)
