"""VolumeBinding: a pod goes where its volumes are, or where they can be made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import CSIStorageCapacity, NodeSelector, PersistentVolume, PersistentVolumeClaim, Pod
from stowplan.models.problem import Rule, Weighted
from stowplan.models.quantity import whole
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import Code, NodeSet, Status
from stowplan.plugins_compat.framework.view import ScoreView, View
from stowplan.plugins_compat.matching import everywhere, selected
from stowplan.plugins_compat.plugins.csi_migration import driver_affinity, migrated, plugin_of
from stowplan.plugins_compat.plugins.shape import ShapePoint
from stowplan.plugins_compat.plugins.volume_capacity import DEFAULT_SHAPE, capacity_points
from stowplan.plugins_compat.plugins.volume_matching import candidates
from stowplan.plugins_compat.plugins.volumes import claims_of, foreign, name_of, not_found, owned, volume_of, waits

NO_PROVISIONER = "kubernetes.io/no-provisioner"
NONE = -1

IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@dataclass(frozen=True, slots=True, eq=False)
class Bindings:
    """What every node would do about the claims of a pod.

    Parameters
    ----------
    unreachable, missing
        ``[n]`` nodes that cannot reach a bound volume, or where it does not exist; the first such claim counts.
    unbindable, too_small
        ``[n]`` nodes with nothing for an unbound claim, or without the space to make it; the first such claim counts.
    taken
        For each claim that looks for an existing volume, ``[n]`` the position of the one it takes, or `NONE`.
    made
        For each claim that may have a volume made, ``[n]`` the nodes where it would.
    failed
        ``[n]`` the position in ``problems`` of what upstream fails with on a node, or `NONE`.
    problems
        Messages.
    rejected
        ``[n]`` nodes where the pod cannot run, for any of these reasons.
    """

    unreachable: Bools
    missing: Bools
    unbindable: Bools
    too_small: Bools
    taken: Sequence[tuple[str, Ints]]
    made: Sequence[tuple[str, Bools]]
    failed: Ints
    problems: Sequence[str]
    rejected: Bools


class VolumeBindingArgs(Args):
    """How long binding may take, in seconds; and the shape for scores by capacity, which are off by default."""

    bind_timeout_seconds: Annotated[int, Field(ge=0)] = 600
    shape: tuple[ShapePoint, ...] = DEFAULT_SHAPE


class VolumeBinding(Plugin):
    """Rejects nodes that a bound volume cannot reach, or where an unbound claim gets none.

    Reserve remembers which volume was promised to which claim, and where one is to be made, so that the pods that
    follow respect it. What the volume controllers make of the promise is not simulated: the claim stays promised.

    For the optimizer, pods whose unbound claims leave a choice are refused: they stay where they are.
    """

    name = "VolumeBinding"
    reach = "node"
    Args = VolumeBindingArgs
    refusal = "pods whose volumes the snapshot lacks or leaves a choice"

    def __init__(self, args: Any, state: ClusterState) -> None:
        super().__init__(args, state)
        self._promised: dict[int, str] = {}  # volume, by position, to the key of a claim
        self._node_chosen: dict[str, str] = {}  # key of a claim to the node its volume is to be made for
        self._bindings: dict[int, Bindings] = {}

    # -- the framework's face ---------------------------------------------------------------------------------

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """Reject a pod with a claim that is not there, is going away, or that nothing can bind now."""
        reason = self._unusable(cycle.signature, cycle.pod)
        if not reason and (name := self._without_mode(cycle.signature)):
            said = f'running PreFilter plugin "{self.name}": VolumeBindingMode not set for StorageClass "{name}"'
            return Status(Code.ERROR, (said,))
        reason = reason or (IMMEDIATE if self._immediate(cycle.signature) else "")
        return Status(Code.UNRESOLVABLE, (reason,)) if reason else None

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod has no claims."""
        return not self.minds(cycle.signature)

    def minds(self, signature: Signature) -> bool:
        """Whether a pod has claims."""
        return bool(signature.claims)

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject, for good, the nodes where some claim cannot be served."""
        if not cycle.signature.claims:
            return np.zeros(len(nodes), dtype=np.int64)
        found = self._find(cycle.signature)
        codes = np.where(found.rejected[nodes], Code.UNRESOLVABLE, Code.SUCCESS)
        return np.where(found.failed[nodes] != NONE, Code.ERROR, codes)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reasons, in its order."""
        found = self._find(cycle.signature)
        if found.failed[node] != NONE:
            return (found.problems[found.failed[node]],)
        reasons = (
            (found.unreachable, self.release.volume_reason),
            (found.unbindable, NOTHING_TO_BIND),
            (found.too_small, NO_SPACE),
            (found.missing, NO_VOLUME),
        )
        return tuple(reason for nodes, reason in reasons if nodes[node])

    def pre_score(self, cycle: CycleState, nodes: Ints) -> bool:
        """Drop out in releases that do; the score is behind a gate that is off."""
        return not self.release.skips_idle_scores

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Return 0 for every node, unless the release scores by capacity."""
        if not self.release.volume_capacity_priority or not cycle.signature.claims:
            return np.zeros(len(nodes), dtype=np.int64)
        taken = [
            (self.state.snapshot.claims[key], volumes[nodes]) for key, volumes in self._find(cycle.signature).taken
        ]
        return capacity_points(taken, self.state.snapshot.persistent_volumes, self.args.shape)

    def reserve(self, cycle: CycleState, node: int) -> Status | None:
        """Promise the volumes that the node would take, and choose the node for those to be made."""
        if not cycle.signature.claims:
            return None
        found = self._find(cycle.signature)
        taken = {int(volumes[node]): key for key, volumes in found.taken if volumes[node] != NONE}
        made = [key for key, nodes in found.made if nodes[node]]
        if taken or made:
            self._promised |= taken
            self._node_chosen |= dict.fromkeys(made, self.state.nodes[node].name)
            self._bindings.clear()
        cycle.data[self.name] = (tuple(taken), made)
        return None

    def unreserve(self, cycle: CycleState, node: int) -> None:
        """Take the promises back."""
        taken, made = cycle.data.pop(self.name, ((), ()))
        for volume in taken:
            self._promised.pop(volume, None)
        for key in made:
            self._node_chosen.pop(key, None)
        self._bindings.clear()

    def pre_bind(self, cycle: CycleState, node: int) -> Status | None:
        """Succeed: upstream waits here for the volume controllers, which do what was promised."""
        return None

    # -- the optimizer's face ---------------------------------------------------------------------------------

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return none: what scores nothing costs nothing."""
        return iter(())

    def omissions(self, view: View) -> Iterable[str]:
        """Say so if capacities are scored."""
        if self.release.volume_capacity_priority:
            yield f"{self.name}: scores by capacity are not in the model"

    def refuses(self, pod: Pod) -> str | None:
        """Refuse pods whose volumes the snapshot does not show, or leaves a choice."""
        snapshot, signature = self.state.snapshot, self.state.signatures.of(pod)
        for key, claim in claims_of(snapshot, signature):
            if claim is None:
                return f"{_missing('PersistentVolumeClaim')}: {key}"
            if claim.spec.volume_name and volume_of(snapshot, claim) is None:
                return f"{_missing('PersistentVolume')}: {claim.spec.volume_name}"
        if reason := self._unusable(signature, pod):
            return reason
        for key, claim in claims_of(snapshot, signature):
            if claim is None or claim.bound or not waits(snapshot, claim):
                continue
            if self._users()[key] > 1:
                return f"unbound PersistentVolumeClaim shared by several pods, which is not modeled: {key}"
            if claim.selected_node is None and self._candidates(key, claim):
                return f"unbound PersistentVolumeClaim that could take an existing volume, which is not modeled: {key}"
        return None

    def rules(self, view: View) -> Iterable[Rule]:
        """Return the nodes that serve all claims as one `Allow`."""
        rule = view.allow(self.name, self._allowed)
        return [rule] if rule is not None else []

    def _allowed(self, signature: Signature) -> Bools:
        """``[n]`` the nodes that pods of this signature may use."""
        if not signature.claims:
            return everywhere(self.state)
        gone = any(claim is None for _, claim in claims_of(self.state.snapshot, signature))
        if gone or self._immediate(signature):
            return np.zeros(self.state.size, dtype=np.bool_)
        return ~self._find(signature).rejected

    def _users(self) -> Counter[str]:
        """Count the pods that use each claim."""

        def make() -> Counter[str]:
            signatures = (self.state.signatures.of(pod) for pod in self.state.snapshot.pods if not pod.finished)
            return Counter(key for signature in signatures for key in set(signature.claims))

        return self.state.memo((self.name, "users"), make)

    # -- claims -----------------------------------------------------------------------------------------------

    def _unusable(self, signature: Signature, pod: Pod) -> str:
        """Say what about the pod's claims keeps it from every node; empty if nothing."""
        for key, claim in claims_of(self.state.snapshot, signature):
            name, ephemeral = name_of(key), key in signature.ephemeral
            if claim is None:
                waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
                return f'{waiting} "{name}"' if ephemeral else not_found(key)
            if claim.status is not None and claim.status.phase == "Lost":
                volume = claim.spec.volume_name
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
            if claim.metadata.deletion_timestamp is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if ephemeral and not owned(claim, pod):
                return foreign(key, pod)
        return ""

    def _immediate(self, signature: Signature) -> bool:
        """Whether a claim should have been bound before; one that names its volume should, too."""
        snapshot = self.state.snapshot
        return any(
            claim is not None and not claim.bound and (claim.spec.volume_name != "" or not waits(snapshot, claim))
            for _, claim in claims_of(snapshot, signature)
        )

    def _without_mode(self, signature: Signature) -> str:
        """Return the class of an unbound claim that does not say when it binds, which no API server stores."""
        for _, claim in claims_of(self.state.snapshot, signature):
            found = self.state.snapshot.classes.get(claim.class_name) if claim and not claim.bound else None
            if found is not None and found.volume_binding_mode is None:
                return found.metadata.name
        return ""

    # -- volumes ----------------------------------------------------------------------------------------------

    def _find(self, signature: Signature) -> Bindings:
        """Return what every node would do about the signature's claims, as they are now."""
        found = self._bindings.get(signature.index)
        if found is None:
            claims = [(key, claim) for key, claim in claims_of(self.state.snapshot, signature) if claim is not None]
            unreachable, missing, failed, problems = self._check_bound([claim for _, claim in claims if claim.bound])
            unbindable, too_small, taken, made = self._bind([item for item in claims if not item[1].bound])
            shared = self.state.shared  # most pods with claims have the same few masks
            found = self._bindings[signature.index] = Bindings(
                shared(unreachable),
                shared(missing),
                shared(unbindable),
                shared(too_small),
                taken,
                made,
                shared(failed),
                problems,
                shared(unreachable | missing | unbindable | too_small | (failed != NONE)),
            )
        return found

    def _check_bound(self, claims: Sequence[PersistentVolumeClaim]) -> tuple[Bools, Bools, Ints, Sequence[str]]:
        """``[n]`` where a bound volume cannot be reached, where it does not exist, and where asking fails, with why."""
        unreachable, nowhere = (np.zeros(self.state.size, dtype=np.bool_) for _ in range(2))
        failed = np.full(self.state.size, NONE, dtype=np.int64)
        problems: list[str] = []
        left = everywhere(self.state)  # nodes on which all claims so far were reached
        for claim in claims:
            volume = volume_of(self.state.snapshot, claim)
            if volume is None:
                return unreachable, left, failed, problems
            if problem := self._untranslatable(volume):
                failed[left & problem[1]] = len(problems)
                problems.append(f"could not translate pv: {problem[0]}")
                left &= ~problem[1]
            reached = self._reachable(volume)
            unreachable |= left & ~reached
            left &= reached
        return unreachable, nowhere, failed, problems

    def _untranslatable(self, volume: PersistentVolume) -> tuple[str, Bools] | None:
        """Return why a volume's CSI driver cannot be told what it is, and the nodes where it has to be."""
        found = plugin_of(volume.spec) if volume.spec.csi is None else None
        if found is None or not (problem := found[0].problem(found[1], volume.metadata.labels)):
            return None
        return problem, migrated(self.state, found[0])

    def _bind(
        self, claims: Sequence[tuple[str, PersistentVolumeClaim]]
    ) -> tuple[Bools, Bools, Sequence[tuple[str, Ints]], Sequence[tuple[str, Bools]]]:
        """Find volumes for unbound claims: existing ones first, smallest claims first; the rest has to be made."""
        here = everywhere(self.state)
        to_make: list[tuple[str, PersistentVolumeClaim, Bools]] = []
        looking: list[tuple[str, PersistentVolumeClaim]] = []
        for key, claim in claims:
            chosen = self._node_chosen.get(key, claim.selected_node)
            if chosen is None:
                looking.append((key, claim))
            else:
                here &= self._named(chosen)
                to_make.append((key, claim, everywhere(self.state)))
        looking.sort(key=lambda item: item[1].size or 0)
        taken: list[tuple[str, Ints]] = []
        for key, claim in looking:
            volumes = self._take(key, claim, [earlier for _, earlier in taken])
            taken.append((key, volumes))
            to_make.append((key, claim, volumes == NONE))
        unbindable, too_small = ~here, np.zeros(self.state.size, dtype=np.bool_)
        for _, claim, wanted in to_make:
            undecided = ~unbindable & ~too_small & wanted
            unbindable |= undecided & ~self._provisionable(claim)
            too_small |= undecided & ~unbindable & ~self._has_space(claim)
        return unbindable, too_small, taken, [(key, wanted) for key, _, wanted in to_make]

    def _take(self, key: str, claim: PersistentVolumeClaim, earlier: Sequence[Ints]) -> Ints:
        """``[n]`` the volume that a claim takes on each node, or `NONE`; not one that the pod's earlier claims take."""
        volumes = np.full(self.state.size, NONE, dtype=np.int64)
        looking = everywhere(self.state)
        for volume, reserved in self._candidates(key, claim):
            offered = looking.copy()
            for other in earlier:
                offered &= other != volume
            usable = offered & self._in_affinity(self.state.snapshot.persistent_volumes[volume])
            volumes[usable] = volume
            # A node that cannot reach the volume reserved for the claim gives it no other.
            looking &= ~(offered if reserved else usable)
            if not looking.any():
                break
        return volumes

    def _candidates(self, key: str, claim: PersistentVolumeClaim) -> list[tuple[int, bool]]:
        """Return the volumes that the claim may take, best first, as they are now; see `candidates`."""
        volumes = self.state.snapshot.persistent_volumes
        known = self.state.memo((self.name, "candidates", key), lambda: tuple(candidates(volumes, claim, self.release)))
        free = [(v, reserved) for v, reserved in known if self._promised.get(v, key) == key]
        return sorted(((v, reserved or v in self._promised) for v, reserved in free), key=lambda item: not item[1])

    # -- nodes ------------------------------------------------------------------------------------------------

    def _named(self, name: str) -> Bools:
        mask = np.zeros(self.state.size, dtype=np.bool_)
        if name in self.state.snapshot.node_index:
            mask[self.state.snapshot.node_index[name]] = True
        return mask

    def _in_affinity(self, volume: PersistentVolume) -> Bools:
        """``[n]`` the nodes that a volume's own node affinity admits."""
        affinity = volume.spec.node_affinity
        return self._selected(affinity.required if affinity else None)

    def _reachable(self, volume: PersistentVolume) -> Bools:
        """``[n]`` the nodes that reach a bound volume, on migrated nodes as its CSI driver sees it."""
        found = plugin_of(volume.spec) if volume.spec.csi is None else None
        if found is None or not found[0].topology_key:
            return self._in_affinity(volume)
        by_driver = self._selected(driver_affinity(volume, found[0].topology_key))
        return np.where(migrated(self.state, found[0]), by_driver, self._in_affinity(volume))

    def _selected(self, required: NodeSelector | None) -> Bools:
        """``[n]`` the nodes that a volume's node affinity admits; it is compared with labels, and fields pass."""
        if required is None:
            return everywhere(self.state)
        return self.state.memo((self.name, required), lambda: selected(self.state, required, fields=False))

    def _provisionable(self, claim: PersistentVolumeClaim) -> Bools:
        """``[n]`` the nodes for which the claim's class can make a volume."""
        storage_class = self.state.snapshot.classes.get(claim.class_name)

        def make() -> Bools:
            if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
                return np.zeros(self.state.size, dtype=np.bool_)
            terms = storage_class.allowed_topologies
            admitted = [not terms or any(term.matches(node.labels) for term in terms) for node in self.state.nodes]
            return np.array(admitted, dtype=np.bool_)

        return self.state.memo((self.name, "class", claim.class_name), make)

    def _has_space(self, claim: PersistentVolumeClaim) -> Bools:
        """``[n]`` the nodes for which the driver says it has the space; all, if it says nothing."""
        snapshot, size = self.state.snapshot, claim.size
        storage_class = snapshot.classes.get(claim.class_name)
        driver = storage_class.provisioner if storage_class else ""
        tells = any(d.metadata.name == driver and d.tells_capacity for d in snapshot.csi_drivers)
        if size is None or not tells:
            return everywhere(self.state)

        def make() -> Bools:
            mask = np.zeros(self.state.size, dtype=np.bool_)
            for pool in snapshot.csi_storage_capacities:
                largest = pool.largest
                if (
                    pool.storage_class_name == claim.class_name
                    and largest is not None
                    and whole(largest) >= whole(size)
                ):
                    mask |= self._with_access(pool)
            return mask

        return self.state.memo((self.name, "space", claim.class_name, size), make)

    def _with_access(self, pool: CSIStorageCapacity) -> Bools:
        topology = pool.node_topology
        return np.array(
            [topology is not None and topology.matches(node.labels) for node in self.state.nodes], dtype=np.bool_
        )


def _missing(kind: str) -> str:
    return f"{kind} missing from the snapshot (add {kind.lower()}s to kubectl get)"
