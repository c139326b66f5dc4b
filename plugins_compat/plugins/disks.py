"""Inline disks of pods that exclude each other on a node: base of the plugins that keep them apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.models.kubernetes.pod import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk, Volume
from stowplan.models.problem import Origin, Repel, Rule
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import View

Disk = GCEPersistentDisk | AWSElasticBlockStore | ISCSI | RBD


def conflict(a: Disk, b: Disk) -> bool:
    """Whether two pods on one node cannot both use these inline volumes; most may be shared where both only read."""
    match a, b:
        case AWSElasticBlockStore(), AWSElasticBlockStore():
            return a.volume_id == b.volume_id
        case GCEPersistentDisk(), GCEPersistentDisk():
            return a.pd_name == b.pd_name and not (a.read_only and b.read_only)
        case ISCSI(), ISCSI():
            return a.iqn == b.iqn and not (a.read_only and b.read_only)
        case RBD(), RBD():
            same = not set(a.monitors).isdisjoint(b.monitors) and (a.pool, a.image) == (b.pool, b.image)
            return same and not (a.read_only and b.read_only)
    return False


class ExclusiveDisks(Plugin):
    """A plugin that rejects nodes where a disk conflicts with one of the pod's."""

    kinds: ClassVar[tuple[str, ...]]
    """Fields of a volume that name disks which the plugin knows."""

    def repelling(self, view: View) -> Iterator[Rule]:
        """Yield one `Repel` for each disk: conflicting disks repel each other on a node."""
        users: defaultdict[Disk, list[Signature]] = defaultdict(list)
        for signature in self.state.signatures.all:
            for disk in self.disks(signature):
                users[disk].append(signature)
        for disk, owners in users.items():
            rivals = list(dict.fromkeys(s for other, them in users.items() if conflict(disk, other) for s in them))
            seekers, targets = view.select(owners), view.select(rivals)
            if len(seekers) or len(targets):
                held = view.relation(owners, rivals)
                yield Repel(Origin(self.name, f"{disk}"), seekers, targets, view.by_node, held)

    def conflicting(self, signature: Signature) -> Bools:
        """``[n]`` nodes with a disk that conflicts with one of the signature's."""
        conflicting = np.zeros(self.state.size, dtype=np.bool_)
        disks = self.disks(signature)
        if disks:
            for there, nodes in self.state.multiset(self.name, self._brought, type).holders.items():
                if any(conflict(disk, there) for disk in disks):
                    conflicting[list(nodes)] = True
        return conflicting

    def disks(self, signature: Signature) -> tuple[Disk, ...]:
        """Return the disks that pods of a signature mount, each once: a pod is in no conflict with itself."""

        def make() -> tuple[Disk, ...]:
            return tuple(dict.fromkeys(disk for volume in signature.pod.spec.volumes for disk in self._of(volume)))

        return self.state.memo((self.name, signature), make)

    def _of(self, volume: Volume) -> Iterable[Disk]:
        return (disk for kind in self.kinds if (disk := getattr(volume, kind)) is not None)

    def _brought(self, signature: Signature, node: int) -> tuple[Disk, ...]:
        return self.disks(signature)
