"""What NodeResourcesFit and NodeResourcesBalancedAllocation share: the usage that a score reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from stowplan.models.arrays import Ints
from stowplan.models.problem import Load
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.requests import CPU, MEMORY, NATIVE, score_request


class ResourceSpec(BaseModel):
    """A resource and its weight in a score; weight 0 counts as 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    weight: Annotated[int, Field(ge=0, le=100)] = 1


def default_resources() -> tuple[ResourceSpec, ...]:
    """Return what is scored without configuration."""
    return (ResourceSpec(name=CPU), ResourceSpec(name=MEMORY))


class Scored:
    """The resources one score reads, and how.

    Parameters
    ----------
    nonzero
        Count CPU and memory with the defaults for containers that request none.
    """

    def __init__(self, state: ClusterState, resources: Sequence[ResourceSpec], *, nonzero: bool) -> None:
        self.state = state
        self.nonzero = nonzero
        self.specs = [spec for spec in resources if spec.name in state.resources]

    def requests(self, signature: Signature) -> dict[str, int]:
        """Return what the incoming pod counts for."""
        return self.state.memo(
            ("score request", self.nonzero, signature),
            lambda: score_request(signature.pod, self.state.release, nonzero=self.nonzero, held=signature.resized),
        )

    def usage(self, signature: Signature, nodes: Ints, *, with_pod: bool = True) -> tuple[Ints, Ints, Ints]:
        """Return usage ``[k, nodes]``, capacity ``[k, nodes]`` and weights ``[k]`` of the resources that count.

        Resources that are neither native nor requested by the pod do not count; neither does, on a node, one that
        the node has none of (its capacity is 0).
        """
        asked = self.requests(signature)
        specs = [spec for spec in self.specs if spec.name in NATIVE or asked.get(spec.name)]
        used = [self.on_nodes(spec.name)[nodes] + (asked.get(spec.name, 0) if with_pod else 0) for spec in specs]
        capacity = [self.state.allocatable[self.state.resources[spec.name]][nodes] for spec in specs]
        signature_of_none = np.zeros((0, len(nodes)), dtype=np.int64)
        return (
            np.array(used) if specs else signature_of_none,
            np.array(capacity) if specs else signature_of_none,
            np.array([spec.weight or 1 for spec in specs], dtype=np.int64),
        )

    def on_nodes(self, name: str) -> Ints:
        """``[n]`` what the pods on each node count for."""
        if self.nonzero and name in (CPU, MEMORY):
            used: Ints = self.state.nonzero[0 if name == CPU else 1]
        else:
            used = self.state.requested[self.state.resources[name]]
        return used


def score_loads(view: View, scored: Scored, finest: int | None = None) -> tuple[Load, ...] | None:
    """Return the resources of a score as loads of a `NodeScore`, or ``None`` where pods disagree on which count.

    Parameters
    ----------
    finest
        The largest capacity that may result, where products of two capacities are formed.
    """
    if not scored.specs or any(spec.name not in NATIVE for spec in scored.specs):
        return None
    loads = []
    for spec in scored.specs:
        row = scored.state.resources[spec.name]
        if scored.nonzero and spec.name in (CPU, MEMORY):
            which = 0 if spec.name == CPU else 1
            demand = [int(scored.state.nonzero_vector(signature)[which]) for signature in view.signatures]
        else:
            demand = [int(scored.state.vector(signature)[row]) for signature in view.signatures]
        held = scored.on_nodes(spec.name)
        loads.append(
            view.load(np.array(demand, dtype=np.int64), held, scored.state.allocatable[row], spec.weight or 1, finest)
        )
    return tuple(loads)
