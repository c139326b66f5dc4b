"""What a pod requests and may use at most, as Trimaran adds it up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.requests import CPU, MEMORY, units

RESOURCES = (CPU, MEMORY)

Amounts = tuple[int, ...]
"""Scheduler units by position in `RESOURCES`."""


def requested(pod: Pod) -> Amounts:
    """Return what the pod requests: containers together or the largest init container, plus overhead.

    Every init container counts as one that ends, sidecars too; each container is rounded up by itself.
    """
    spec = pod.spec
    return _effective(
        [container.requests for container in spec.containers],
        [container.requests for container in spec.init_containers],
        spec.overhead,
    )


def limited(pod: Pod) -> Amounts:
    """Return the pod's limits, added up as `requested` does, and never below the requests."""
    spec = pod.spec
    limits = _effective(
        [container.limits for container in spec.containers],
        [container.limits for container in spec.init_containers],
        spec.overhead,
    )
    return tuple(max(pair) for pair in zip(limits, requested(pod), strict=True))


def _effective(
    containers: Iterable[Mapping[str, int]], inits: Iterable[Mapping[str, int]], overhead: Mapping[str, int]
) -> Amounts:
    running = [_units(amounts) for amounts in containers]
    together = [sum(column) for column in zip((0,) * len(RESOURCES), *running, strict=True)]
    highest = [max(column) for column in zip(together, *(_units(amounts) for amounts in inits), strict=True)]
    return tuple(a + b for a, b in zip(highest, _units(overhead), strict=True))


def _units(amounts: Mapping[str, int]) -> Amounts:
    return tuple(units(name, amounts.get(name, 0)) for name in RESOURCES)
