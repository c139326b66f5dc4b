"""The scheduler's view of the cluster: nodes as arrays, and what the pods on them use."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.problem import Topology
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.counts import DomainCounts, Eligible, Multiset
from stowplan.plugins_compat.framework.pod_index import Nominator, PodIndex
from stowplan.plugins_compat.framework.signatures import Signature, Signatures
from stowplan.plugins_compat.framework.waiting import WaitingPods
from stowplan.plugins_compat.isolation import MILLI, POOL
from stowplan.plugins_compat.release import Release
from stowplan.plugins_compat.requests import CPU, EPHEMERAL, MEMORY, PODS, is_scalar, requests, units

T = TypeVar("T")
S = TypeVar("S", bound=np.generic)
H = TypeVar("H", bound=Hashable)

KEPT_PRIORITIES = 8
"""Priorities for which the requests of lower ones are kept up to date."""

ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


class ClusterState:
    """Nodes, and the pods assumed on them.

    What never changes is computed once and memoized; what a pod adds to a node is added and taken off as arrays.

    Parameters
    ----------
    snapshot
        Nodes, volumes, namespaces and services are read from here. Pods are not placed until `assume` is called.
    release
        Decides how requests are added up.

    Attributes
    ----------
    resources
        Row of each resource in the arrays below.
    allocatable, requested
        ``[r, n]`` in scheduler units. Row 0 counts pods.
    nonzero
        ``[2, n]`` CPU and memory with the defaults that scores use.
    order
        ``[n]`` nodes in the order of the scheduler's own list: zone by zone, round robin.
    pod_index, nominator, waiting
        The pods that `put` placed, one by one, those that wait for a node they are nominated to, and those that wait on
        their node for a permission.
    """

    def __init__(self, snapshot: Snapshot, release: Release, signatures: Signatures | None = None) -> None:
        self.snapshot = snapshot
        self.release = release
        self.nodes: tuple[Node, ...] = snapshot.nodes
        if release.isolation is not None:
            release.isolation.check(snapshot.annotations)
        self.signatures = signatures or Signatures(pod for pod in snapshot.pods if not pod.finished)
        self.resources = _resource_rows(self.nodes, self.signatures, release)
        self.allocatable = _allocatable(self.nodes, self.resources, release)
        self.requested = np.zeros_like(self.allocatable)
        self.nonzero = np.zeros((2, len(self.nodes)), dtype=np.int64)
        self.order = _node_order(self.nodes)
        self.placed: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self.pod_index = PodIndex(len(self.nodes))
        self.nominator = Nominator()
        self._vectors: dict[int, Ints] = {}
        self._nonzero_vectors: dict[int, Ints] = {}
        self.waiting = WaitingPods()
        self._below: dict[int, Ints] = {}
        self._memo: dict[Hashable, Any] = {}
        self._arrays: dict[Hashable, NDArray[Any]] = {}
        self._tallies: dict[Hashable, tuple[DomainCounts, Callable[[Signature], int]]] = {}
        self._tallies_of: list[list[tuple[DomainCounts, int]]] = []
        self._multisets: dict[Hashable, tuple[Multiset[Any], Callable[[Signature, int], tuple[Any, ...]]]] = {}

    def on(self, snapshot: Snapshot) -> ClusterState:
        """Return the state of a changed cluster: its first nodes are those of this one, and hold the same pods.

        Those nodes may differ in all but their order. What is counted by node is copied instead of counted anew.

        Parameters
        ----------
        snapshot
            The changed cluster.
        """
        other = ClusterState(snapshot, self.release, self.signatures)
        rows = [other.resources[name] for name in self.resources]
        other.requested[rows, : self.size] = self.requested
        other.nonzero[:, : self.size] = self.nonzero
        for signature, here in self.placed.items():
            other.placed[signature] = dict(here)
        other.pod_index = self.pod_index.copy(other.size)
        return other

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    def memo(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return ``make()``, computed once for each key; for what depends on nothing that changes.

        Equal arrays are kept once, and cannot be written: thousands of signatures have the same few masks of nodes.
        """
        if key not in self._memo:
            made = make()
            self._memo[key] = self.shared(made) if isinstance(made, np.ndarray) else made
        result: T = self._memo[key]
        return result

    def shared(self, array: NDArray[S]) -> NDArray[S]:
        """Return the one array with these values."""
        key = array.dtype.str, array.shape, hashlib.blake2b(array.tobytes(), digest_size=16).digest()
        found = self._arrays.get(key)
        if found is None:
            found = self._arrays[key] = array
            array.flags.writeable = False
        return found

    # -- requests ---------------------------------------------------------------------------------------------

    def vector(self, signature: Signature) -> Ints:
        """``[r]`` what a pod of this signature requests (holds, if it is being resized), itself counted in row 0."""
        found = self._vectors.get(signature.index)
        if found is None:
            found = self._vectors[signature.index] = np.zeros(len(self.resources), dtype=np.int64)
            for name, amount in requests(signature.pod, self.release, held=signature.resized).items():
                found[self.resources[name]] = amount
            found[self.resources[PODS]] = 1
        return found

    def nonzero_vector(self, signature: Signature) -> Ints:
        """``[2]`` CPU and memory that a pod of this signature counts for in scores."""
        found = self._nonzero_vectors.get(signature.index)
        if found is None:
            amounts = requests(signature.pod, self.release, nonzero=True, held=signature.resized)
            found = np.array([amounts.get(CPU, 0), amounts.get(MEMORY, 0)], dtype=np.int64)
            self._nonzero_vectors[signature.index] = found
        return found

    # -- topology ---------------------------------------------------------------------------------------------

    def topology(self, key: str) -> Topology:
        """Return the domains that a label key makes of the nodes."""

        def make() -> Topology:
            codes: dict[str, int] = {}
            domain = np.full(self.size, -1, dtype=np.int64)
            for n, node in enumerate(self.nodes):
                if key in node.labels:
                    domain[n] = codes.setdefault(node.labels[key], len(codes))
            return Topology(key, domain, tuple(codes))

        return self.memo(("topology", key), make)

    def eligible(self, mask: Bools) -> Eligible:
        """Return the one object for this set of nodes."""
        return self.memo(("eligible", mask.tobytes()), lambda: Eligible(mask))

    def pinned_node(self, pod: Pod) -> str | None:
        """Return the node that the template of the pod's controller names, if it names one."""
        controller = pod.metadata.controller
        if controller is None:
            return None
        return self.snapshot.pinned_nodes.get((controller.kind, pod.namespace, controller.name))

    # -- pods -------------------------------------------------------------------------------------------------

    def assume(self, signature: Signature, node: int, count: int = 1) -> None:
        """Put ``count`` pods of a signature on a node; a negative count takes them away."""
        vector, nonzero = self.vector(signature), self.nonzero_vector(signature)
        if count != 1:
            vector, nonzero = vector * count, nonzero * count
        self.requested[:, node] += vector
        self.nonzero[:, node] += nonzero
        for priority, below in self._below.items():
            if signature.pod.priority < priority:
                below[:, node] += vector
        here = self.placed[signature.index]
        here[node] = here.get(node, 0) + count
        if not here[node]:
            del here[node]
        if len(self._tallies_of) < len(self.signatures.all):
            self._weigh_new_signatures()
        for domain_counts, weight in self._tallies_of[signature.index]:
            domain_counts.add(node, weight * count)
        for multiset, things in self._multisets.values():
            if brought := things(signature, node):
                multiset.add(node, brought, count)

    def forget(self, signature: Signature, node: int) -> None:
        """Take a pod of a signature off a node."""
        self.assume(signature, node, -1)

    def put(self, pod: Pod, node: int, *, new: bool = False) -> None:
        """Put one pod on a node and into the index; ``new`` says that it has only just been placed there."""
        signature = self.signatures.replacement(pod) if new else self.signatures.of(pod)
        self.pod_index.add(pod, signature, node, new=new)
        self.assume(signature, node)

    def take(self, pod: Pod, node: int) -> None:
        """Take one pod off its node and out of the index."""
        self.forget(self.pod_index.remove(pod, node).signature, node)

    def below(self, priority: int) -> Ints:
        """``[r, n]`` what the pods of a lower priority request. Live: neither change nor keep it."""
        found = self._below.get(priority)
        if found is None:
            found = np.zeros_like(self.requested)
            for signature in self.signatures.all:
                if signature.pod.priority < priority:
                    for node, count in self.placed[signature.index].items():
                        found[:, node] += self.vector(signature) * count
            while len(self._below) >= KEPT_PRIORITIES:
                del self._below[next(iter(self._below))]
            self._below[priority] = found
        return found

    @contextmanager
    def requesting(self, requested: Ints) -> Iterator[None]:
        """Let the pods on the nodes request something else for a while."""
        real, self.requested = self.requested, requested
        try:
            yield
        finally:
            self.requested = real

    def domain_counts(
        self, key: Hashable, weight: Callable[[Signature], int], among: Callable[[], Iterable[Signature]] | None = None
    ) -> DomainCounts:
        """Return the counts by domain that count each pod ``weight(signature)`` times.

        Parameters
        ----------
        key
            Names the property; calls with equal keys must mean the same.
        among
            Returns the signatures known by now that may weigh anything; without it, all are asked.
        """
        found = self._tallies.get(key)
        if found is not None:
            return found[0]
        self._weigh_new_signatures()
        domain_counts = DomainCounts(np.zeros(self.size, dtype=np.int64))
        for signature in among() if among is not None else self.signatures.all:
            amount = weight(signature)
            if amount:
                self._tallies_of[signature.index].append((domain_counts, amount))
                for node, count in self.placed[signature.index].items():
                    domain_counts.per_node[node] += amount * count
        self._tallies[key] = (domain_counts, weight)
        return domain_counts

    def amount(self, counts: DomainCounts, signature: Signature) -> int:
        """Return how often a pod of a signature is counted in some counts by domain."""
        self._weigh_new_signatures()
        return sum(amount for counted, amount in self._tallies_of[signature.index] if counted is counts)

    def counting(self, signature: Signature) -> Iterator[DomainCounts]:
        """Yield the counts by domain in which pods of a signature are counted."""
        self._weigh_new_signatures()
        yield from (counted for counted, _ in self._tallies_of[signature.index])

    def multiset(
        self, key: Hashable, things: Callable[[Signature, int], tuple[H, ...]], kind: Callable[[H], Hashable]
    ) -> Multiset[H]:
        """Return the multiset of the things that pods bring to nodes.

        Parameters
        ----------
        key
            Names the sort of thing; calls with equal keys must mean the same.
        things
            What a pod of a signature brings to a node. Called often: it should be memoized.
        kind
            The kind of a thing; see `Multiset`.
        """
        found = self._multisets.get(key)
        if found is not None:
            return found[0]
        multiset: Multiset[H] = Multiset(self.size, kind)
        for signature in self.signatures.all:
            for node, count in self.placed[signature.index].items():
                if brought := things(signature, node):
                    multiset.add(node, brought, count)
        self._multisets[key] = (multiset, things)
        return multiset

    def _weigh_new_signatures(self) -> None:
        """Ask for the weight of the signatures that were met since the counts were made."""
        for signature in self.signatures.all[len(self._tallies_of) :]:
            weighed = ((domain_counts, weight(signature)) for domain_counts, weight in self._tallies.values())
            self._tallies_of.append([(domain_counts, amount) for domain_counts, amount in weighed if amount])

    def fill(self, pods: Iterable[Pod]) -> None:
        """Assume bound pods where they are bound."""
        index = self.snapshot.node_index
        for pod in pods:
            self.put(pod, index[pod.node_name])


def _resource_rows(nodes: Iterable[Node], signatures: Signatures, release: Release) -> dict[str, int]:
    names = [PODS, CPU, MEMORY, EPHEMERAL]
    offered = {name for node in nodes for name in node.allocatable if is_scalar(name)}
    asked = {name for signature in signatures.all for name in requests(signature.pod, release, held=signature.resized)}
    pool = {POOL} if release.isolation is not None else set()
    names += sorted((offered | asked | pool) - set(names))
    return {name: row for row, name in enumerate(names)}


def _allocatable(nodes: tuple[Node, ...], rows: Mapping[str, int], release: Release) -> Ints:
    table = np.zeros((len(rows), len(nodes)), dtype=np.int64)
    for n, node in enumerate(nodes):
        for name, nanos in node.allocatable.items():
            if name in rows and (release.ephemeral_storage or name != EPHEMERAL):
                table[rows[name], n] = units(name, nanos)
        if release.isolation is not None:
            pool = table[rows[POOL], n] = release.isolation.pool(node)
            if release.isolation.allocatable_contains_pool:
                table[rows[CPU], n] = max(0, table[rows[CPU], n] - pool * MILLI)
    return table


def _node_order(nodes: Iterable[Node]) -> Ints:
    zones: defaultdict[str, list[int]] = defaultdict(list)
    for n, node in enumerate(nodes):
        zones[zone_key(node)].append(n)
    queues = list(zones.values())
    longest = max(map(len, queues), default=0)
    order = [queue[i] for i in range(longest) for queue in queues if i < len(queue)]
    return np.array(order, dtype=np.int64)


def zone_key(node: Node) -> str:
    """Return what tells the zone of a node apart, its region and zone by the beta or the newer labels; or nothing."""
    zone, region = (
        next((node.labels[key] for key in keys if node.labels.get(key)), "") for keys in (ZONE_LABELS, REGION_LABELS)
    )
    return f"{region}:\x00:{zone}" if zone or region else ""
