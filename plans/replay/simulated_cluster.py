"""A cluster with its controllers and its scheduler, on which evictions have consequences."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.pod import PodStatus
from stowplan.models.snapshot import Snapshot
from stowplan.plans.dry_run import leaving
from stowplan.plans.movability.workloads import keeps_name
from stowplan.plans.replay.steering import CordonExtender
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.scheduler import not_replaced, schedule_one
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState

SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of which Kubernetes makes the ends of names."""


@dataclass(frozen=True, slots=True)
class PreemptedPod:
    """A pod that kube-scheduler preempted.

    Parameters
    ----------
    key
        Key of the pod of the snapshot that it is or replaces.
    """

    key: str
    node: str
    preemptor: str


class SimulatedCluster:
    """A cluster in motion.

    A pod of the snapshot and the replacement that takes its place are one *place*, named by the key of the pod of the
    snapshot. A ReplicaSet makes the replacement, under a new name, as soon as the old pod is terminating; a StatefulSet
    makes it under the old name once the old pod is gone. A terminating pod holds its room until it is gone.

    Parameters
    ----------
    seed
        Decides what kube-scheduler leaves to chance, and the names of replacements.
    by_chance
        Leave to chance whatever the release does: which of several nodes with the highest score is taken, and, where
        the profile samples nodes, which of them are looked at.

    Attributes
    ----------
    node_of
        Node name by place, of what is bound and not terminating.
    waiting
        By place, the pods that kube-scheduler has to place, in the order in which they came.
    messages
        By place, why the pod that waits there found no node when it was tried last.
    driven
        Pods that were preempted, in the order in which it happened.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        profile: Profile,
        signatures: Signatures | None = None,
        seed: int = 0,
        *,
        by_chance: bool = False,
    ) -> None:
        self.snapshot = snapshot
        self.state = ClusterState(snapshot, profile.release, signatures)
        if by_chance and profile.release.ties_by_chance:
            profile = replace(profile, tie_break="uniform")
        self.framework = Framework(profile, self.state, seed)
        if by_chance and self.framework.sampler is not None:
            self.framework.sampler.leave_to_chance(self.framework.random, len(snapshot.nodes))
        self._cordons = CordonExtender()
        self.node_of: dict[str, str] = {}
        self.waiting: dict[str, Pod] = {}
        self.messages: dict[str, str] = {}
        self.preempted: list[PreemptedPod] = []
        self._names = random.Random(seed)
        self._standing: dict[str, Pod] = {}
        self._leaving: dict[str, tuple[Pod, int]] = {}
        self._place_of: dict[str, str] = {}
        self._arrivals: dict[str, int] = {}
        waiting = []
        for pod in snapshot.pods:
            if pod.node_name and not pod.finished:
                self._stand(pod.key, pod, snapshot.node_index[pod.node_name], new=False)
            elif not pod.finished and self._is_mine(pod):
                waiting.append(pod)
        self.state.nominator.nominate_pending(waiting, snapshot.node_index)
        for pod in sorted(waiting, key=lambda pod: pod.metadata.creation_timestamp or ""):
            self._arrive(pod.key, pod)

    @property
    def assignment(self) -> Assignment:
        """What is bound and not terminating, by place."""
        return Assignment(self.node_of)

    # -- events -----------------------------------------------------------------------------------------------

    def evict(self, place: str, *, same_name: bool) -> None:
        """Let a pod terminate; its controller makes another, at once or, under the same name, once it is gone."""
        pod, node = self._standing.pop(place), self.snapshot.node_index[self.node_of.pop(place)]
        self.state.take(pod, node)
        self._leaving[place] = (leaving(pod), node)
        self.state.put(*self._leaving[place])
        if not same_name:
            self._arrive(place, self._successor(pod))

    @property
    def leaving(self) -> tuple[str, ...]:
        """Places whose old pods terminate."""
        return tuple(self._leaving)

    def vanish(self, places: Iterable[str] | None = None, *, same_name: Collection[str]) -> None:
        """Let terminating pods of this cluster's own making be gone.

        Parameters
        ----------
        places
            Of these pods; by default of all.
        same_name
            Places whose replacement comes up only now.
        """
        for place in list(self._leaving if places is None else places):
            pod, node = self._leaving.pop(place)
            self.state.take(pod, node)
            if place in same_name:
                self._arrive(place, self._successor(pod, pod.name))

    def cordon(self, nodes: Collection[str]) -> None:
        """Cordon these nodes, and uncordon all others that were cordoned here before."""
        if nodes and self._cordons not in self.framework.extenders.all:
            self.framework.extenders.all.append(self._cordons)
        self._cordons.nodes = frozenset(nodes)

    def settle(self) -> None:
        """Let kube-scheduler try the pods that wait, in the order of its queue, until it can place no more of them.

        What is bound or preempted gives the others another try, as it does upstream.
        """
        key = self.framework.queue_sort[0].queue_key
        progress = True
        while progress:
            progress = False
            for place, pod in sorted(self.waiting.items(), key=lambda item: (key(item[1]), self._arrivals[item[0]])):
                progress |= self._try(place, pod)

    # -- details ----------------------------------------------------------------------------------------------

    def _is_mine(self, pod: Pod) -> bool:
        foreign = pod.spec.scheduler_name != self.framework.profile.scheduler_name
        return not (pod.terminating or foreign or any(plugin.pre_enqueue(pod) for plugin in self.framework.pre_enqueue))

    def _try(self, place: str, pod: Pod) -> bool:
        decision = schedule_one(self.framework, pod)
        for victim in decision.victims:
            self._preempt(victim, pod)
        if decision.node is None:
            self.messages[place] = decision.message
            return bool(decision.victims)
        del self.waiting[place]
        self.messages.pop(place, None)
        self._standing[place] = pod
        self.node_of[place] = self.snapshot.nodes[decision.node].name
        return True

    def _preempt(self, victim: Pod, preemptor: Pod) -> None:
        place = self._place_of[victim.key]
        if place in self._leaving and self._leaving[place][0].key == victim.key:
            del self._leaving[place]
            return
        self.preempted.append(PreemptedPod(place, self.node_of.pop(place), preemptor.key))
        del self._standing[place]
        if reason := not_replaced(self.framework, victim):
            self.messages[place] = f"preempted by {preemptor.key}; {reason}"
        else:
            self._arrive(place, self._successor(victim))

    def _stand(self, place: str, pod: Pod, node: int, *, new: bool) -> None:
        self.state.put(pod, node, new=new)
        self._standing[place] = pod
        self._place_of[pod.key] = place
        self.node_of[place] = self.snapshot.nodes[node].name

    def _arrive(self, place: str, pod: Pod) -> None:
        self._arrivals[place] = 1 + max(self._arrivals.values(), default=0)
        self._place_of[pod.key] = place
        self.waiting[place] = pod

    def _successor(self, pod: Pod, name: str | None = None) -> Pod:
        """Return what a controller makes in place of a pod.

        A pod with an ephemeral volume keeps its name: the claim is named after the pod, and the snapshot knows only
        that of the old one.
        """
        if name is None:
            keeps = keeps_name(pod.metadata.controller) or any(volume.ephemeral for volume in pod.spec.volumes)
            name = pod.name if keeps else self._name_like(pod)
        metadata = replace(pod.metadata, name=name, uid=f"{pod.metadata.uid}-next", deletion_timestamp=None)
        return replace(pod, metadata=metadata, status=PodStatus(phase="Pending"))

    def _name_like(self, pod: Pod) -> str:
        controller = pod.metadata.controller
        stem = controller.name if controller else pod.name
        return f"{stem}-{''.join(self._names.choice(SUFFIX) for _ in range(5))}"
