"""VolumeBinding: a pod goes where its volumes are, or where they can be made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.arrays import Bools, Ints
from models.kubernetes import PersistentVolumeClaim, Pod
from plugins_compat.framework.cycle import Cycle
from plugins_compat.framework.shapes import Shape
from plugins_compat.framework.status import Code, NodeSet, Status
from plugins_compat.matching import everywhere, selected
from plugins_compat.plugins.static_filter import StaticFilter
from plugins_compat.plugins.volumes import claims_of, volume_of, waits

NO_PROVISIONER = "kubernetes.io/no-provisioner"


class VolumeBinding(StaticFilter):
    """Rejects nodes that a bound volume cannot reach, or where an unbound claim cannot be provisioned.

    Claims that are missing from the snapshot, and unbound claims that could take an existing volume, are
    refused: the pods that use them stay where they are.
    """

    name = "VolumeBinding"

    def refuses(self, pod: Pod) -> str | None:
        """Refuse pods whose volumes the snapshot does not show, or leaves a choice."""
        snapshot = self.state.snapshot
        for key, claim in claims_of(snapshot, self.state.shapes.of(pod)):
            if claim is None:
                return f"claim {key} is not in the snapshot"
            if claim.spec.volume_name and volume_of(snapshot, claim) is None:
                return f"volume {claim.spec.volume_name} of claim {key} is not in the snapshot"
            if not claim.spec.volume_name and self._could_take_existing(claim):
                return f"claim {key} is unbound and could take an existing volume, which is not modelled"
        return None

    def pre_filter(self, cycle: Cycle) -> Status | NodeSet | None:
        """Reject a pod with a claim that nothing can bind now."""
        snapshot = self.state.snapshot
        for key, claim in claims_of(snapshot, cycle.shape):
            if claim is None:
                name = key.partition("/")[2]
                return Status(Code.UNRESOLVABLE, (f'persistentvolumeclaim "{name}" not found',))
        if any(self._immediate(claim) for _, claim in claims_of(snapshot, cycle.shape) if claim is not None):
            return Status(Code.UNRESOLVABLE, ("pod has unbound immediate PersistentVolumeClaims",))
        return None

    def passes(self, shape: Shape) -> Bools:
        """``[n]`` nodes that reach every bound volume and can have every unbound one."""
        snapshot = self.state.snapshot
        mask = everywhere(self.state)
        for _, claim in claims_of(snapshot, shape):
            if claim is None or self._immediate(claim):
                return np.zeros_like(mask)
            mask &= self._reachable(claim) if claim.spec.volume_name else self._provisionable(claim)
        return mask

    def reasons(self, cycle: Cycle, node: int) -> Sequence[str]:
        """Return upstream's reasons."""
        snapshot = self.state.snapshot
        reasons = []
        for _, claim in claims_of(snapshot, cycle.shape):
            if claim is None or not claim.spec.volume_name:
                continue
            if volume_of(snapshot, claim) is None:
                reasons.append("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
            elif not self._reachable(claim)[node]:
                reasons.append(self.release.volume_reason)
        return sorted(set(reasons)) or ("node(s) didn't find available persistent volumes to bind",)

    def pre_score(self, cycle: Cycle, nodes: Ints) -> bool:
        """Drop out in releases that do; the score is behind a gate that is off."""
        return not self.release.skips_idle_scores

    def score(self, cycle: Cycle, nodes: Ints) -> Ints:
        """Return 0 for every node."""
        return np.zeros(len(nodes), dtype=np.int64)

    def _immediate(self, claim: PersistentVolumeClaim) -> bool:
        return not claim.spec.volume_name and not waits(self.state.snapshot, claim)

    def _reachable(self, claim: PersistentVolumeClaim) -> Bools:
        def make() -> Bools:
            volume = volume_of(self.state.snapshot, claim)
            if volume is None:
                return np.zeros(self.state.size, dtype=np.bool_)
            affinity = volume.spec.node_affinity
            if affinity is None or affinity.required is None:
                return everywhere(self.state)
            required = affinity.required
            return self.state.memo((self.name, required), lambda: selected(self.state, required))

        return self.state.memo((self.name, claim.key), make)

    def _provisionable(self, claim: PersistentVolumeClaim) -> Bools:
        storage_class = self.state.snapshot.classes[claim.class_name]
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return np.zeros(self.state.size, dtype=np.bool_)
        terms = storage_class.allowed_topologies
        if not terms:
            return everywhere(self.state)
        return np.array([any(term.matches(node.labels) for term in terms) for node in self.state.nodes], dtype=np.bool_)

    def _could_take_existing(self, claim: PersistentVolumeClaim) -> bool:
        return any(
            volume.spec.claim_ref is None
            and volume.spec.storage_class_name == claim.class_name
            and (volume.status is None or volume.status.phase in ("", "Available"))
            for volume in self.state.snapshot.persistent_volumes
        )
