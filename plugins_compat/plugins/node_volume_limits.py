"""NodeVolumeLimits: a node attaches only so many volumes of a CSI driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from models.arrays import Ints
from models.problem import NO_LIMIT, Distinct, Origin, Rule
from models.quantity import whole
from plugins_compat.compiler.view import View
from plugins_compat.framework.cycle import Cycle
from plugins_compat.framework.plugin import Plugin
from plugins_compat.framework.shapes import Shape
from plugins_compat.framework.status import Code
from plugins_compat.framework.tally import Bag
from plugins_compat.plugins.volumes import claims_of, volume_of

Attachment = tuple[str, str]
"""CSI driver and volume handle."""

ALLOCATABLE = "attachable-volumes-csi-"


class NodeVolumeLimits(Plugin):
    """Rejects nodes where the pod's volumes would exceed the attach limit of their driver."""

    name = "NodeVolumeLimits"
    one_reason_a_code = True

    def idle(self, cycle: Cycle) -> bool:
        """Whether the pod attaches no volume."""
        return not self._attachments(cycle.shape)

    def filter(self, cycle: Cycle, nodes: Ints) -> Ints:
        """Reject nodes where new volumes of some driver do not fit; those already on the node are free."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        wanted = self._attachments(cycle.shape)
        if not wanted:
            return codes
        bag = self._bag()
        for driver in {driver for driver, _ in wanted}:
            there = np.zeros(self.state.size, dtype=np.int64)
            mine = [attachment for attachment in wanted if attachment[0] == driver]
            for attachment in mine:
                there[list(bag.holders[attachment])] += 1
            new = len(mine) - there[nodes]
            over = bag.distinct[driver][nodes] + new > self._limits(driver)[nodes]
            codes[(new > 0) & over] = Code.UNSCHEDULABLE
        return codes

    def _bag(self) -> Bag[Attachment]:
        return self.state.bag(self.name, self._attachments, lambda attachment: attachment[0])

    def reasons(self, cycle: Cycle, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        return ("node(s) exceed max volume count",)

    def rules(self, view: View) -> Iterable[Rule]:
        """One `Distinct` for each driver that some node limits."""
        users: Counter[Attachment] = Counter()
        for shape, count in zip(view.shapes, view.counts.tolist(), strict=True):
            for attachment in self._attachments(shape):
                users[attachment] += count
        for driver in sorted({driver for driver, _ in users}):
            limits = self._limits(driver)
            if (limits < NO_LIMIT).any():
                yield self._distinct(view, driver, limits, users)

    def _distinct(self, view: View, driver: str, limits: Ints, users: Counter[Attachment]) -> Rule:
        """Return the rule of one driver; what a single pod uses and no fixed one needs no name, only a number."""
        held = {thing: nodes for thing, nodes in self._bag().holders.items() if thing[0] == driver and nodes}
        shared = sorted(t for t, count in users.items() if t[0] == driver and (count > 1 or t in held))
        index = {thing: i for i, thing in enumerate(shared)}
        own, bundle = [], []
        bundles: dict[tuple[int, ...], int] = {}
        for shape in view.shapes:
            things = [thing for thing in self._attachments(shape) if thing[0] == driver]
            own.append(sum(thing not in index for thing in things))
            mine = tuple(sorted(index[thing] for thing in things if thing in index))
            bundle.append(bundles.setdefault(mine, len(bundles)) if mine else -1)
        used_by_fixed = np.zeros((len(shared), self.state.size), dtype=np.bool_)
        left = limits.copy()
        for thing, nodes in held.items():
            if thing in index:
                used_by_fixed[index[thing], list(nodes)] = True
            else:
                left[list(nodes)] -= 1
        return Distinct(
            Origin(self.name, driver),
            np.array(own, dtype=np.int64),
            np.array(bundle, dtype=np.int64),
            tuple(np.array(mine, dtype=np.int64) for mine in bundles),
            left,
            used_by_fixed,
        )

    def _attachments(self, shape: Shape) -> tuple[Attachment, ...]:
        return self.state.memo((self.name, shape), lambda: tuple(sorted(set(self._find(shape)))))

    def _find(self, shape: Shape) -> Iterable[Attachment]:
        snapshot = self.state.snapshot
        for key, claim in claims_of(snapshot, shape):
            if claim is None:
                continue
            volume = volume_of(snapshot, claim)
            if volume is not None:
                if volume.spec.csi is not None:
                    yield volume.spec.csi.driver, volume.spec.csi.volume_handle
            elif not claim.spec.volume_name and claim.class_name in snapshot.classes:
                yield snapshot.classes[claim.class_name].provisioner, f"claim {key}"

    def _limits(self, driver: str) -> Ints:
        """``[n]`` the attach limit of a driver, `NO_LIMIT` where none is stated."""

        def make() -> Ints:
            stated = {csi.metadata.name: csi.limits() for csi in self.state.snapshot.csi_nodes}
            limits = np.full(self.state.size, NO_LIMIT, dtype=np.int64)
            for n, node in enumerate(self.state.nodes):
                name = ALLOCATABLE + driver
                if self.release.csi_limit_from_allocatable and name in node.allocatable:
                    limits[n] = whole(node.allocatable[name])
                if driver in stated.get(node.name, {}):
                    limits[n] = stated[node.name][driver]
            return limits

        return self.state.memo((self.name, "limits", driver), make)
