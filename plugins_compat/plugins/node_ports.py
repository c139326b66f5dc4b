"""NodePorts: a host port is held by one pod a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import AtMost, Origin, Rule
from stowplan.plugins_compat.framework.counts import DomainCounts
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import SUCCESS, UNSCHEDULABLE
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.release import Release

ANY_IP = "0.0.0.0"

HostPort = tuple[str, int, str]
"""Protocol, port and IP; `ANY_IP` means all."""


def host_ports(pod: Pod, release: Release) -> frozenset[HostPort]:
    """Return the host ports that a pod wants, each once: a pod is never in conflict with itself."""
    containers = list(pod.spec.containers)
    if release.ports_of_sidecars:
        containers += [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    return frozenset(
        (port.protocol or "TCP", port.host_port, port.host_ip or ANY_IP)
        for container in containers
        for port in container.ports
        if port.host_port and port.host_port > 0
    )


class NodePorts(Plugin):
    """Rejects nodes where a wanted host port is taken on the same IP, or on all, or is wanted on all."""

    name = "NodePorts"
    reach = "node"
    one_reason_a_code = True

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod wants no host port."""
        return not self.minds(cycle.signature)

    def minds(self, signature: Signature) -> bool:
        """Whether a pod holds host ports."""
        return bool(self._ports(signature))

    def count_pod(self, cycle: CycleState, signature: Signature, node: int, count: int) -> None:
        """Note which ports come and go: as upstream keeps a set, the first holder that leaves takes the port along."""
        if self._ports(cycle.signature):
            changes: dict[int, dict[HostPort, bool]] = cycle.data.setdefault(self.name, {})
            changes.setdefault(node, {}).update(dict.fromkeys(self._ports(signature), count > 0))

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes with a port in conflict."""
        taken = np.zeros(len(nodes), dtype=np.bool_)
        for users in self.rivals(cycle.signature):
            taken |= users.per_node[nodes] > 0
        for node, changes in cycle.data.get(self.name, {}).items():
            taken[nodes == node] = self._conflict(cycle.signature, node, changes)
        return np.where(taken, UNSCHEDULABLE, SUCCESS)

    def rivals(self, signature: Signature) -> Iterator[DomainCounts]:
        """Yield the counts of pods none of which may be on a node that a pod comes to."""
        for protocol, port, ip in self._ports(signature):
            for rival in (None,) if ip == ANY_IP else (ip, ANY_IP):
                yield self._users(protocol, port, rival)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        return ("node(s) didn't have free ports for the requested pod ports",)

    def rules(self, view: View) -> Iterable[Rule]:
        """At most one pod a node for each port and IP; a pod that wants all IPs is in the group of each.

        Groups are made by IP because two pods that want different IPs of one port do not conflict.
        """
        users: dict[HostPort, list[Signature]] = {}
        for signature in self.state.signatures.all:
            for wanted in sorted(self._ports(signature)):
                users.setdefault(wanted, []).append(signature)
        for protocol, port, ip in users:
            everywhere = (protocol, port, ANY_IP)
            if ip == ANY_IP and any(other[:2] == (protocol, port) and other != everywhere for other in users):
                continue  # pods that want all IPs are in the group of each single one
            rivals = list(dict.fromkeys(users[protocol, port, ip] + users.get(everywhere, [])))
            group = view.select(rivals)
            if len(group):
                yield AtMost(Origin(self.name, f"{protocol} {port}"), group, view.by_node, 1, view.held(rivals))

    def _conflict(self, signature: Signature, node: int, changes: Mapping[HostPort, bool]) -> bool:
        """Whether a wanted port is taken on a node, given which ports came and went within the cycle."""
        held = {port for occupant in self.state.pod_index.on(node) for port in self._ports(occupant.signature)}
        held = {port for port in held | changes.keys() if changes.get(port, True)}
        return any(
            wanted[:2] == other[:2] and (wanted[2] == other[2] or ANY_IP in (wanted[2], other[2]))
            for wanted in self._ports(signature)
            for other in held
        )

    def _ports(self, signature: Signature) -> frozenset[HostPort]:
        return self.state.memo((self.name, signature), lambda: host_ports(signature.pod, self.release))

    def _users(self, protocol: str, port: int, ip: str | None) -> DomainCounts:
        """Count the pods that hold a port on an IP, or on any."""

        def holds(signature: Signature) -> bool:
            return any((p, n) == (protocol, port) and ip in (None, i) for p, n, i in self._ports(signature))

        return self.state.domain_counts((self.name, protocol, port, ip), holds)
