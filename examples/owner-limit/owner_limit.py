"""OwnerLimit: at most so many pods of one controller on a node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from stowplan.models.arrays import Ints
from stowplan.models.problem import AtMost, Origin, Rule
from stowplan.plugins_compat.framework.counts import DomainCounts
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.framework.view import View

Owner = tuple[str, str, str]


class OwnerLimitArgs(Args):
    """``maxPods`` of one controller on one node."""

    max_pods: Annotated[int, Field(ge=1)] = 2


def owner_of(signature: Signature) -> Owner | None:
    """Return kind, namespace and name of the controller, or ``None``."""
    controller = signature.pod.metadata.controller
    return (controller.kind, signature.pod.namespace, controller.name) if controller else None


class OwnerLimit(Plugin):
    """Rejects nodes that hold as many pods of the pod's controller as they may."""

    name = "OwnerLimit"
    Args = OwnerLimitArgs
    one_reason_a_code = True

    # -- what both faces share --------------------------------------------------------------------------------

    def _counts(self, owner: Owner) -> DomainCounts:
        return self.state.domain_counts((self.name, owner), lambda signature: owner_of(signature) == owner)

    # -- the framework's face ---------------------------------------------------------------------------------

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject full nodes; others may leave, so not for good."""
        owner = owner_of(cycle.signature)
        if owner is None:
            return np.zeros(len(nodes), dtype=np.int64)
        full = self._counts(owner).per_node[nodes] >= self.args.max_pods
        return np.where(full, Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return the reason."""
        return ("node(s) had enough pods of the same controller",)

    # -- the optimizer's face ---------------------------------------------------------------------------------

    def rules(self, view: View) -> Iterable[Rule]:
        """One `AtMost` for each controller that has a pod to place; fixed pods are counted as held."""
        owners: dict[Owner, list[Signature]] = {}
        for signature in self.state.signatures.all:
            if owner := owner_of(signature):
                owners.setdefault(owner, []).append(signature)
        for owner, signatures in owners.items():
            group = view.select(signatures)
            if len(group):
                origin = Origin(self.name, " ".join(owner))
                yield AtMost(origin, group, view.by_node, self.args.max_pods, view.held(signatures))
