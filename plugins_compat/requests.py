"""What a pod asks of a node: effective requests in scheduler units.

Units are those of upstream's ``Resource``: CPU in millicores, everything else in whole units, rounded up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Container, Node, Pod
from stowplan.models.quantity import NANO, milli, whole
from stowplan.plugins_compat.release import Release
from stowplan.plugins_compat.resize import Held

CPU, MEMORY, EPHEMERAL, PODS = "cpu", "memory", "ephemeral-storage", "pods"
NATIVE = (CPU, MEMORY, EPHEMERAL)

LARGEST_SUM = 2**62
"""Scheduler units of one resource that a cluster may add up to, well inside int64."""

# Scores pretend that a container which requests nothing requests this much.
NONZERO_NANOS = {CPU: NANO // 10, MEMORY: 200 * 2**20 * NANO}

_QUALIFIED = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)


def is_extended(name: str) -> bool:
    """Whether this is an extended resource, such as ``nvidia.com/gpu``."""
    return (
        "/" in name
        and "kubernetes.io/" not in name
        and not name.startswith("requests.")
        and _QUALIFIED.fullmatch(name) is not None
    )


def is_scalar(name: str) -> bool:
    """Whether upstream accounts for this resource beside CPU, memory, ephemeral storage and pods."""
    return is_extended(name) or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name


def units(name: str, nanos: int) -> int:
    """Convert to scheduler units, rounding up."""
    return milli(nanos) if name == CPU else whole(nanos)


def requests(
    pod: Pod,
    release: Release,
    *,
    nonzero: bool = False,
    pod_level: bool = True,
    held: bool = False,
    init: bool | None = None,
) -> dict[str, int]:
    """Return the pod's effective requests in scheduler units, by resource.

    Parameters
    ----------
    nonzero
        Let each container that names no CPU or memory request the default that scores use.
    pod_level
        Apply pod-level requests, if the release has them.
    held
        Return what the pod holds on its node while it is resized in place, where the release knows of that.
    init
        Whether init containers count; by default as the release has it for the pods on a node.
    """
    spec = pod.spec
    overhead = spec.overhead if release.pod_overhead else {}
    inits = spec.init_containers if (release.init_containers_on_nodes if init is None else init) else ()
    own = spec.resources.requests if pod_level and release.pod_level_resources and spec.resources else {}
    own = {name: nanos for name, nanos in own.items() if name in (CPU, MEMORY) or name.startswith("hugepages-")}
    resized = Held(pod) if held and release.in_place_resize else None
    if resized is not None:
        own = dict(resized.pod_level(own))
    defaults = {}
    if nonzero:
        # With requests of its own, only what the pod does not request at all, overhead included, is defaulted.
        asked = {*_containers(pod, release, {}, inits, resized), *own, *overhead} if own else set()
        defaults = {name: nanos for name, nanos in NONZERO_NANOS.items() if name not in asked}
    total = _containers(pod, release, defaults, inits, resized)
    if release.quantity_sum:
        total |= own
        for name, nanos in overhead.items():
            total[name] = total.get(name, 0) + nanos
        total = {name: units(name, nanos) for name, nanos in total.items()}
        return _charged(pod, {name: n for name, n in total.items() if _counts(name, release)}, release)
    for name, nanos in overhead.items():
        total[name] = total.get(name, 0) + units(name, nanos)
    return _charged(pod, {name: n for name, n in total.items() if _counts(name, release)}, release)


def _charged(pod: Pod, amounts: dict[str, int], release: Release) -> dict[str, int]:
    """Return requests with the cores of an isolated pool in place of CPU, where the pod takes some."""
    isolation = release.isolation
    return isolation.taken(amounts) if isolation is not None and isolation.marks(pod) else amounts


def score_request(pod: Pod, release: Release, *, nonzero: bool, held: bool = False) -> dict[str, int]:
    """Return what the pod counts for in its own resource scores.

    This differs from `requests` where upstream's does: the CPU overhead slip of old releases, and the requests of
    the pod as a whole that NodeResourcesFit (which scores with non-zero requests) leaves out.
    """
    amounts = requests(pod, release, nonzero=nonzero, pod_level=not nonzero, held=held and not nonzero)
    if release.cpu_overhead_in_cores and release.pod_overhead and CPU in pod.spec.overhead and CPU in amounts:
        overhead = pod.spec.overhead[CPU]
        amounts[CPU] += whole(overhead) - milli(overhead)
    return amounts


def check_sums(nodes: Iterable[Node], pods: Iterable[tuple[Pod, int]], release: Release) -> None:
    """Check that integers hold what nodes offer and what pods, each given with how many are like it, request.

    Raises
    ------
    InputError
        With the first resource of which there is too much.
    """
    offered, asked = Counter[str](), Counter[str]()
    for node in nodes:
        offered.update({name: units(name, nanos) for name, nanos in node.allocatable.items()})
    for pod, number in pods:
        asked.update({name: amount * number for name, amount in requests(pod, release, nonzero=True).items()})
    for what, total in (("nodes offer", offered), ("pods request", asked)):
        for name, amount in total.items():
            if amount > LARGEST_SUM:
                raise InputError(f"all {what} {amount} units in total; the maximum is {LARGEST_SUM}", field=name)


def _counts(name: str, release: Release) -> bool:
    return (name in NATIVE and (release.ephemeral_storage or name != EPHEMERAL)) or is_scalar(name)


def _containers(
    pod: Pod,
    release: Release,
    defaults: Mapping[str, int],
    inits: Sequence[Container],
    resized: Held | None = None,
) -> dict[str, int]:
    """Sum up containers and init containers: in nanos, or in scheduler units where the release rounds early."""
    containers = pod.spec.containers
    amounts = [resized.container(c) for c in containers] if resized else [c.requests for c in containers]
    total = _sum((_wanted(amount, release, defaults) for amount in amounts), {})
    running: dict[str, int] = {}  # sidecars started so far
    highest: dict[str, int] = {}
    for container in inits:
        sidecar = release.sidecars and container.restart_policy == "Always"
        amount = resized.sidecar(container) if resized and sidecar else container.requests
        wanted = _wanted(amount, release, defaults)
        if sidecar:
            total = _sum((wanted,), total)
            running = _sum((wanted,), running)
            step = running
        else:
            step = _sum((wanted,), running)
        highest = _max(highest, step)
    return _max(total, highest)


def _wanted(amounts: Mapping[str, int], release: Release, defaults: Mapping[str, int]) -> dict[str, int]:
    wanted = {**defaults, **amounts}
    return wanted if release.quantity_sum else {name: units(name, nanos) for name, nanos in wanted.items()}


def _sum(parts: Iterable[Mapping[str, int]], start: Mapping[str, int]) -> dict[str, int]:
    total = dict(start)
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _max(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in (*a, *(n for n in b if n not in a))}
