"""PodFitsHostPorts: a host port is held by one pod a node, whatever its protocol and address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import AtMost, Origin, Rule
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.framework.view import View


class PodFitsHostPorts(Plugin):
    """Rejects nodes where some pod holds a host port of a number that the pod wants."""

    name = "PodFitsHostPorts"
    one_reason_a_code = True

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod wants no host port."""
        return not self._ports(cycle.signature)

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes where a wanted number is taken."""
        taken = np.zeros(len(nodes), dtype=np.bool_)
        for port in self._ports(cycle.signature):
            # mypy does not infer a lambda with a default; the default binds the port of this turn.
            users = self.state.domain_counts((self.name, port), lambda s, port=port: port in self._ports(s))  # type: ignore[misc]
            taken |= users.per_node[nodes] > 0
        return np.where(taken, Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return the predicate's name, which is what upstream reports."""
        return (self.name,)

    def rules(self, view: View) -> Iterable[Rule]:
        """At most one pod a node for each number."""
        users: dict[int, list[Signature]] = {}
        for signature in self.state.signatures.all:
            for port in sorted(self._ports(signature)):
                users.setdefault(port, []).append(signature)
        for port, rivals in users.items():
            group = view.select(rivals)
            if len(group):
                yield AtMost(Origin(self.name, f"port {port}"), group, view.by_node, 1, view.held(rivals))

    def _ports(self, signature: Signature) -> frozenset[int]:
        """Return the numbers that the containers of a pod want; a pod is never in conflict with itself."""
        return self.state.memo(
            (self.name, signature),
            lambda: frozenset(
                port.host_port
                for container in signature.pod.spec.containers
                for port in container.ports
                if port.host_port
            ),
        )
