"""NodeVolumeLimits: a node attaches only so many volumes of a CSI driver."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import Node, PersistentVolume
from stowplan.models.kubernetes.base import EMPTY
from stowplan.models.problem import NO_LIMIT
from stowplan.models.quantity import whole
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.plugins.attach_limits import AttachLimits, Attachment
from stowplan.plugins_compat.plugins.csi_migration import MIGRATABLE, migrated_plugins, plugin_of
from stowplan.plugins_compat.plugins.volumes import claims_of, volume_of

ALLOCATABLE = "attachable-volumes-csi-"
LONGEST_NAME = 63


def limit_key(driver: str) -> str:
    """Return the resource in which a node states the limit of a driver; a long name is cut and hashed."""
    if len(ALLOCATABLE) + len(driver) < LONGEST_NAME:
        return ALLOCATABLE + driver
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{ALLOCATABLE}{driver[:23]}{digest[:16]}"


class NodeVolumeLimits(AttachLimits):
    """Rejects nodes where the pod's volumes would exceed the attach limit of their driver.

    In-tree volumes count where a driver has taken them over.
    """

    name = "NodeVolumeLimits"
    deviation = "a node beyond its limit keeps no pod, not even one whose volumes others there share"
    full_nodes_refuse = False

    def sorts(self) -> Sequence[Hashable]:
        """Nodes differ in the in-tree plugins that were taken over there."""
        return migrated_plugins(self.state.snapshot, self.release.always_migrated)

    def attachments(self, signature: Signature, sort: Hashable) -> Iterable[Attachment]:
        """Yield the volumes of drivers: behind claims, to be made for claims, and inline ones taken over."""
        assert isinstance(sort, frozenset)
        snapshot = self.state.snapshot
        for volume in signature.pod.spec.volumes if self.release.csi_limit_counts_inline else ():
            found = plugin_of(volume)
            if found and found[0].name in sort:
                plugin, disk = found
                # An inline volume has no zone to be told by.
                if handle := plugin.handle(disk, EMPTY):
                    yield plugin.driver, handle
        for key, claim in claims_of(snapshot, signature):
            if claim is None:
                continue
            bound = volume_of(snapshot, claim)
            if bound is not None:
                yield from _of_volume(bound, sort)
            elif storage_class := snapshot.classes.get(claim.class_name):
                in_tree = MIGRATABLE.get(storage_class.provisioner)
                if in_tree is None:
                    yield storage_class.provisioner, f"claim {key}"
                elif in_tree.name in sort:
                    yield in_tree.driver, f"claim {key}"

    def limits(self, limited: str) -> Ints:
        """``[n]`` what the node's CSINode object states for a driver; in some releases also what the node does.

        What is attached to a node and used by no pod there takes from it.
        """
        stated = {csi.metadata.name: csi.limits() for csi in self.state.snapshot.csi_nodes}
        limits = np.full(self.state.size, NO_LIMIT, dtype=np.int64)
        key = limit_key(limited)
        for n, node in enumerate(self.state.nodes):
            if self.release.csi_limit_from_allocatable and key in node.allocatable:
                limits[n] = whole(node.allocatable[key])
            if limited in stated.get(node.name, {}):
                limits[n] = stated[node.name][limited]
        if self.release.counts_left_attached:
            for n in self._left_attached().get(limited, ()):
                if limits[n] < NO_LIMIT:
                    limits[n] -= 1
        return limits

    def _counts(self, nodes: Ints) -> Bools:
        """``[nodes]`` whose limit is stated for some driver; on others, upstream has nothing to compare."""

        def make() -> Bools:
            stated = {csi.metadata.name for csi in self.state.snapshot.csi_nodes if csi.limits()}
            return np.array([node.name in stated or self._offers(node) for node in self.state.nodes], dtype=np.bool_)

        counted: Bools = self.state.memo((self.name, "counts"), make)[nodes]
        return counted

    def _offers(self, node: Node) -> bool:
        return self.release.csi_limit_from_allocatable and any(
            name.startswith(ALLOCATABLE) for name in node.allocatable
        )

    def _left_attached(self) -> dict[str, list[int]]:
        """Return, for each driver, the node of each volume that is attached there, but not by a pod of the snapshot.

        That a pod leaves is taken to detach its volumes.
        """

        def make() -> dict[str, list[int]]:
            snapshot, sorts = self.state.snapshot, self.sorts()
            attached: set[tuple[int, Attachment]] = set()
            for attachment in snapshot.volume_attachments:
                node = snapshot.node_index.get(attachment.spec.node_name)
                name = attachment.spec.source.persistent_volume_name if attachment.spec.source else None
                volume = snapshot.volumes.get(name or "")
                if node is not None and attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                    attached.add((node, (attachment.spec.attacher, volume.spec.csi.volume_handle)))
            nodes = {node for node, _ in attached}
            for pod in snapshot.pods:
                node = snapshot.node_index.get(pod.node_name)
                if node in nodes and not pod.finished:
                    attached -= {
                        (node, thing) for thing in self.attachments(self.state.signatures.of(pod), sorts[node])
                    }
            left: dict[str, list[int]] = {}
            for node, (driver, _) in attached:
                left.setdefault(driver, []).append(node)
            return left

        return self.state.memo((self.name, "left attached"), make)


def _of_volume(volume: PersistentVolume, migrated: frozenset[str]) -> Iterable[Attachment]:
    if volume.spec.csi is not None:
        if volume.spec.csi.driver and volume.spec.csi.volume_handle:
            yield volume.spec.csi.driver, volume.spec.csi.volume_handle
        return
    found = plugin_of(volume.spec)
    if found and found[0].name in migrated:
        plugin, disk = found
        if handle := plugin.handle(disk, volume.metadata.labels):
            yield plugin.driver, handle
