"""NodeDeclaredFeatures: a pod that uses a feature of newer kubelets goes where the kubelet declares it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code, NodeSet, Status
from stowplan.plugins_compat.matching import everywhere
from stowplan.plugins_compat.plugins.static_filter import StaticFilter

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK_USERS = "UserNamespacesHostNetworkSupport"

KNOWN = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    RESTART_ALL,
    HOST_NETWORK_USERS,
)
"""Features that the release knows, sorted; what else a node declares is ignored."""

MISMATCH = "node(s) didn't match Pod's required features"


def required(pod: Pod) -> frozenset[str]:
    """Return the features that a pod's spec asks its node for."""
    spec = pod.spec
    containers = (*spec.init_containers, *spec.containers)
    wanted = set()
    if any(rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules):
        wanted.add(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        wanted.add(HOST_NETWORK_USERS)
    return frozenset(wanted)


def declared(features: Iterable[str]) -> frozenset[str]:
    """Return the known features among those that a node declares.

    Upstream merges the two lists in one pass, trusting that the node's is sorted: in one that is not, names are
    missed.
    """
    found, known = set(), iter(KNOWN)
    next_known = next(known, None)
    for feature in features:
        while next_known is not None and next_known < feature:
            next_known = next(known, None)
        if feature == next_known:
            found.add(feature)
            next_known = next(known, None)
    return frozenset(found)


class NodeDeclaredFeatures(StaticFilter):
    """Rejects nodes that do not declare every feature that the pod's spec asks for."""

    name = "NodeDeclaredFeatures"
    one_reason_a_code = True

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """Skip the filter for pods that ask for no feature."""
        return None if required(cycle.signature.pod) else Status(Code.SKIP)

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod asks for no feature."""
        return not required(cycle.signature.pod)

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` nodes that declare what the signature asks for."""
        wanted = required(signature.pod)
        return np.array([wanted <= there for there in self._declared()]) if wanted else everywhere(self.state)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        return (MISMATCH,)

    def _declared(self) -> Sequence[frozenset[str]]:
        """``[n]`` the known features of each node."""

        def make() -> Sequence[frozenset[str]]:
            return [declared(node.status.declared_features if node.status else ()) for node in self.state.nodes]

        return self.state.memo((self.name, "declared"), make)
