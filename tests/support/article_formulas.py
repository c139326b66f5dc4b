"""The formulas of the five articles once more: plain Python over manifests, one pod and one node at a time.

Nothing here uses the product. 32-bit numbers are made by packing and unpacking them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Manifest = dict[str, Any]
MIB = 2**20
BETA_ZONE, BETA_REGION = (f"failure-domain.beta.kubernetes.io/{what}" for what in ("zone", "region"))
PERCENT = 100


class Cluster:
    """Manifests of a cluster, and the pod that is looked at."""

    def __init__(self, pod: Manifest, nodes: list[Manifest], pods: list[Manifest], **more: list[Manifest]) -> None:
        self.pod, self.nodes, self.pods, self.more = pod, nodes, pods, more

    def on(self, node: Manifest) -> list[Manifest]:
        """Return the pods on a node."""
        return [pod for pod in self.pods if pod["spec"].get("nodeName") == node["metadata"]["name"]]


def labels(thing: Manifest) -> dict[str, str]:
    """Return the labels of an object."""
    return thing["metadata"].get("labels") or {}


def amount(text: Any, resource: str) -> int:
    """Return millicores, or bytes and counts; manifests of these tests use ``m``, ``Mi``, ``Gi`` and no suffix."""
    written = str(text)
    for suffix, factor in (("Gi", 2**30), ("Mi", MIB), ("m", None)):
        if written.endswith(suffix):
            number = int(written.removesuffix(suffix))
            return number if factor is None else number * factor
    return int(written) * (1000 if resource == "cpu" else 1)


def capacity(node: Manifest, resource: str) -> int:
    """Return what a node offers."""
    return amount(node["status"]["allocatable"].get(resource, 0), resource)


def asked(container: Manifest, resource: str) -> int | None:
    """Return a container's request, if it has one."""
    found = container.get("resources", {}).get("requests", {}).get(resource)
    return None if found is None else amount(found, resource)


def counted(container: Manifest, resource: str) -> int:
    """Return a container's request as scores count it: 100m and 200 MiB where there is none."""
    found = asked(container, resource)
    return {"cpu": 100, "memory": 200 * MIB}.get(resource, 0) if found is None else found


def total(pod: Manifest, resource: str, of: Callable[[Manifest, str], int | None], *, init: bool) -> int:
    """Return what a pod comes to, with its init containers at their highest or without them."""
    plain = sum(of(container, resource) or 0 for container in pod["spec"]["containers"])
    first = [of(container, resource) or 0 for container in pod["spec"].get("initContainers", ())] if init else []
    return max([plain, *first])


def f32(number: float) -> float:
    """Round to 32 bits."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


# -- predicates of 1.5 ------------------------------------------------------------------------------------------


def pod_fits_resources(c: Cluster, node: Manifest) -> list[str]:
    """Return what is short; pods that request nothing are limited by their number alone."""
    short = []
    if len(c.on(node)) + 1 > capacity(node, "pods"):
        short.append("Insufficient pods")
    mine = {name: total(c.pod, name, asked, init=True) for name in ("cpu", "memory")}
    if any(mine.values()):
        for name, wanted in mine.items():
            if capacity(node, name) < wanted + sum(total(pod, name, asked, init=False) for pod in c.on(node)):
                short.append(f"Insufficient {name}")
    return short


def _host_ports(pod: Manifest) -> set[int]:
    return {p["hostPort"] for k in pod["spec"]["containers"] for p in k.get("ports", ()) if p.get("hostPort")}


def pod_fits_host_ports(c: Cluster, node: Manifest) -> list[str]:
    """Compare numbers alone."""
    taken = any(_host_ports(c.pod) & _host_ports(pod) for pod in c.on(node))
    return ["PodFitsHostPorts"] if taken else []


def _conflict(mine: Manifest, theirs: Manifest) -> bool:
    for kind, name in (("gcePersistentDisk", "pdName"), ("awsElasticBlockStore", "volumeID")):
        a, b = mine.get(kind), theirs.get(kind)
        if a and b and a[name] == b[name]:
            reading = kind == "gcePersistentDisk" and a.get("readOnly") and b.get("readOnly")
            if not reading:
                return True
    a, b = mine.get("rbd"), theirs.get("rbd")
    if a and b:
        same = set(a["monitors"]) & set(b["monitors"]) and (a.get("pool"), a["image"]) == (b.get("pool"), b["image"])
        return bool(same) and not (a.get("readOnly") and b.get("readOnly"))
    return False


def no_disk_conflict(c: Cluster, node: Manifest) -> list[str]:
    """Compare every volume of the pod with every one on the node."""
    mine = c.pod["spec"].get("volumes", ())
    clash = any(_conflict(v, w) for v in mine for pod in c.on(node) for w in pod["spec"].get("volumes", ()))
    return ["NoDiskConflict"] if clash else []


def selects(term: Manifest, mine: dict[str, str]) -> bool:
    """Whether a term selects a node by its labels; one without expressions selects none."""
    return bool(term["matchExpressions"]) and all(_holds(expression, mine) for expression in term["matchExpressions"])


def _holds(expression: Manifest, mine: dict[str, str]) -> bool:
    value, values = mine.get(expression["key"]), expression.get("values", [])
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None or not value.isdigit():
        return False
    return int(value) > int(values[0]) if expression["operator"] == "Gt" else int(value) < int(values[0])


def match_node_selector(c: Cluster, node: Manifest) -> list[str]:
    """Compare the node selector, and the required terms."""
    mine = labels(node)
    fits = all(mine.get(key) == value for key, value in c.pod["spec"].get("nodeSelector", {}).items())
    affinity = c.pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    if required := affinity.get("requiredDuringSchedulingIgnoredDuringExecution"):
        fits &= any(selects(term, mine) for term in required["nodeSelectorTerms"])
    return [] if fits else ["MatchNodeSelector"]


def max_volume_count(kind: str, name: str, most: int) -> Callable[[Cluster, Manifest], list[str]]:
    """Return the predicate that limits one kind of disk."""

    def disks(pod: Manifest) -> set[str]:
        return {v[kind][name] for v in pod["spec"].get("volumes", ()) if kind in v}

    def predicate(c: Cluster, node: Manifest) -> list[str]:
        new = disks(c.pod)
        if not new:
            return []
        held: set[str] = set().union(*(disks(pod) for pod in c.on(node)))
        return ["MaxVolumeCount"] if len(held) + len(new - held) > most else []

    return predicate


def no_volume_zone_conflict(c: Cluster, node: Manifest) -> list[str]:
    """Compare the two beta labels of the volumes behind claims, by equality."""
    mine = {key: value for key, value in labels(node).items() if key in (BETA_ZONE, BETA_REGION)}
    if not mine:
        return []
    claims = {claim["metadata"]["name"]: claim["spec"]["volumeName"] for claim in c.more["persistent_volume_claims"]}
    volumes = {volume["metadata"]["name"]: volume for volume in c.more["persistent_volumes"]}
    for used in c.pod["spec"].get("volumes", ()):
        if "persistentVolumeClaim" in used:
            there = labels(volumes[claims[used["persistentVolumeClaim"]["claimName"]]])
            if any(mine.get(key, "") != value for key, value in there.items() if key in (BETA_ZONE, BETA_REGION)):
                return ["NoVolumeZoneConflict"]
    return []


PREDICATES: dict[str, Callable[[Cluster, Manifest], list[str]]] = {
    "NoVolumeZoneConflict": no_volume_zone_conflict,
    "MaxEBSVolumeCount": max_volume_count("awsElasticBlockStore", "volumeID", 39),
    "MaxGCEPDVolumeCount": max_volume_count("gcePersistentDisk", "pdName", 16),
    "NoDiskConflict": no_disk_conflict,
    "PodFitsResources": pod_fits_resources,
    "PodFitsHostPorts": pod_fits_host_ports,
    "MatchNodeSelector": match_node_selector,
}


# -- priorities of 1.5 ------------------------------------------------------------------------------------------


def _used(c: Cluster, node: Manifest, resource: str, *, init: bool = False) -> int:
    return sum(total(pod, resource, counted, init=init) for pod in [*c.on(node), c.pod])


def least_requested(c: Cluster, nodes: Sequence[Manifest]) -> list[int]:
    """``(⌊free·10/cap⌋ + ⌊free·10/cap⌋) // 2``."""

    def part(node: Manifest, name: str) -> int:
        cap, used = capacity(node, name), _used(c, node, name)
        return 0 if cap == 0 or used > cap else (cap - used) * 10 // cap

    return [(part(node, "cpu") + part(node, "memory")) // 2 for node in nodes]


def most_requested(c: Cluster, nodes: Sequence[Manifest]) -> list[int]:
    """``(⌊used·10/cap⌋ + ⌊used·10/cap⌋) // 2``."""

    def part(node: Manifest, name: str) -> int:
        cap, used = capacity(node, name), _used(c, node, name)
        return 0 if cap == 0 or used > cap else used * 10 // cap

    return [(part(node, "cpu") + part(node, "memory")) // 2 for node in nodes]


def balanced_allocation(c: Cluster, nodes: Sequence[Manifest]) -> list[int]:
    """``int(10 − |c − m|·10)``, 0 if a fraction is 1 or more."""
    scores = []
    for node in nodes:
        parts = [
            1.0 if capacity(node, name) == 0 else _used(c, node, name) / capacity(node, name)
            for name in ("cpu", "memory")
        ]
        scores.append(0 if max(parts) >= 1 else int(10 - abs(parts[0] - parts[1]) * 10))
    return scores


def image_locality(c: Cluster, nodes: Sequence[Manifest]) -> list[int]:
    """From 23 MB to 1000 MB."""
    scores = []
    for node in nodes:
        size = 0
        for container in c.pod["spec"]["containers"]:
            found = [i for i in node["status"].get("images", ()) if container.get("image") in i["names"]]
            size += found[0]["sizeBytes"] if found else 0
        small, large = 23 * MIB, 1000 * MIB
        scores.append(0 if size < small else 10 if size >= large else 10 * (size - small) // (large - small) + 1)
    return scores


def node_affinity(c: Cluster, nodes: Sequence[Manifest]) -> list[int]:
    """``int(10·w/max)``."""
    affinity = c.pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    raw = [sum(term["weight"] for term in terms if selects(term["preference"], labels(node))) for node in nodes]
    highest = max(raw, default=0)
    return [int(10 * (value / highest)) if highest else 0 for value in raw]


def _matches(selector: dict[str, str], pod: Manifest) -> bool:
    return all(labels(pod).get(key) == value for key, value in selector.items())


def _selectors(c: Cluster) -> list[dict[str, str]]:
    services = [s["spec"]["selector"] for s in c.more["services"]]
    owners = [s["spec"]["selector"]["matchLabels"] for s in c.more["replica_sets"]]
    return [s for s in (*services, *(o for o in owners if o)) if _matches(s, c.pod)]


def _similar(c: Cluster, node: Manifest, selectors: Iterable[dict[str, str]]) -> int:
    """Count the pods on a node that some selector selects, without those that are going."""
    return sum(
        any(_matches(s, pod) for s in selectors)
        for pod in c.on(node)
        if pod["metadata"]["namespace"] == c.pod["metadata"]["namespace"] and "deletionTimestamp" not in pod["metadata"]
    )


def selector_spread_of_1_5(c: Cluster, nodes: Sequence[Manifest]) -> list[int]:
    """Nodes a third and zones two thirds, in 32 bits."""
    selectors = _selectors(c)
    counts = [float(_similar(c, node, selectors)) for node in nodes]
    places = [(labels(node).get(BETA_REGION, ""), labels(node).get(BETA_ZONE, "")) for node in nodes]
    zones: dict[tuple[str, str], float] = {}
    if selectors:
        for place, count in zip(places, counts, strict=True):
            if any(place):
                zones[place] = zones.get(place, 0.0) + count
    highest, most = max(counts, default=0.0), max(zones.values(), default=0.0)
    scores = []
    for place, count in zip(places, counts, strict=True):
        score = 10.0 if highest == 0 else f32(10 * f32((highest - count) / highest))
        if zones and any(place):
            # 0 of 0 is not a number upstream; all zones are as good then.
            of_zone = 10.0 if most == 0 else f32(10 * f32((most - zones[place]) / most))
            score = f32(f32(score * f32(1 / 3)) + f32(f32(2 / 3) * of_zone))
        scores.append(int(score))
    return scores


def service_anti_affinity(label: str) -> Callable[[Cluster, Sequence[Manifest]], list[int]]:
    """Return ``int(10·(N − n)/N)`` over the values of a label."""

    def scores(c: Cluster, nodes: Sequence[Manifest]) -> list[int]:
        selectors = [s["spec"]["selector"] for s in c.more["services"] if _matches(s["spec"]["selector"], c.pod)]
        names = {node["metadata"]["name"] for node in c.nodes}
        members = [
            pod
            for pod in c.pods
            if selectors
            and pod["spec"].get("nodeName") in names
            and _matches(selectors[0], pod)
            and pod["metadata"]["namespace"] == c.pod["metadata"]["namespace"]
        ]
        value_of = {node["metadata"]["name"]: labels(node).get(label) for node in nodes}
        found = []
        for node in nodes:
            value = labels(node).get(label)
            if value is None:
                found.append(0)
            elif not members:
                found.append(10)
            else:
                here = sum(value_of.get(pod["spec"]["nodeName"]) == value for pod in members)
                found.append(int(f32(10 * f32((len(members) - here) / len(members)))))
        return found

    return scores


# -- SelectorSpread of 1.20 and 1.24 ----------------------------------------------------------------------------


def selector_spread(c: Cluster, nodes: Sequence[Manifest]) -> list[int]:
    """Nodes a third and zones two thirds, in 64 bits: of pods that the services and the owner all select."""
    if c.pod["spec"].get("topologySpreadConstraints"):
        return [0] * len(nodes)
    selectors = [s["spec"]["selector"] for s in c.more["services"] if _matches(s["spec"]["selector"], c.pod)]
    for owner in c.pod["metadata"].get("ownerReferences", ()):
        selectors += [
            s["spec"]["selector"]["matchLabels"]
            for s in c.more["replica_sets"]
            if owner["kind"] == "ReplicaSet" and s["metadata"]["name"] == owner["name"]
        ]
    wanted = [pair for selector in selectors for pair in selector.items()]
    counts = [sum(_is_like(c, pod, wanted) for pod in c.on(node)) for node in nodes]
    zones: dict[tuple[str, str], int] = {}
    places = [(_place(node, "region"), _place(node, "zone")) for node in nodes]
    for place, count in zip(places, counts, strict=True):
        if any(place):
            zones[place] = zones.get(place, 0) + count
    highest, most = max(counts, default=0), max(zones.values(), default=0)
    scores = []
    for place, count in zip(places, counts, strict=True):
        score = 100.0 * ((highest - count) / highest) if highest else 100.0
        if any(place):
            of_zone = 100.0 * ((most - zones[place]) / most) if most else 100.0
            score = score * (1.0 - 2.0 / 3.0) + 2.0 / 3.0 * of_zone
        scores.append(int(score))
    return scores


def _is_like(c: Cluster, pod: Manifest, wanted: Sequence[tuple[str, str]]) -> bool:
    there = pod["metadata"]
    near = there["namespace"] == c.pod["metadata"]["namespace"] and "deletionTimestamp" not in there
    return bool(wanted) and near and all(labels(pod).get(key) == value for key, value in wanted)


def _place(node: Manifest, what: str) -> str:
    beta = f"failure-domain.beta.kubernetes.io/{what}"
    return labels(node).get(beta, labels(node).get(f"topology.kubernetes.io/{what}", ""))


# -- scores of 1.20 ---------------------------------------------------------------------------------------------


def _request_of_1_20(pod: Manifest, resource: str, *, incoming: bool) -> int:
    """Return requests with defaults, and overhead: of the incoming pod in whole cores, read as millicores."""
    native = resource in ("cpu", "memory")
    found = total(pod, resource, counted if native else asked, init=True)
    overhead = pod["spec"].get("overhead", {}).get(resource)
    if overhead is None:
        return found
    more = amount(overhead, resource)
    return found + (math.ceil(more / 1000) if incoming and resource == "cpu" else more)


def _usage_of_1_20(c: Cluster, node: Manifest, resource: str) -> tuple[int, int]:
    there = sum(_request_of_1_20(pod, resource, incoming=False) for pod in c.on(node))
    return there + _request_of_1_20(c.pod, resource, incoming=True), capacity(node, resource)


def allocated_of_1_20(kind: str, weights: dict[str, int]) -> Callable[[Cluster, Sequence[Manifest]], list[int]]:
    """Return the score of NodeResourcesLeastAllocated or NodeResourcesMostAllocated."""

    def scores(c: Cluster, nodes: Sequence[Manifest]) -> list[int]:
        found = []
        for node in nodes:
            points = 0
            for name, weight in weights.items():
                used, cap = _usage_of_1_20(c, node, name)
                if cap and used <= cap:
                    points += weight * ((cap - used if kind == "least" else used) * PERCENT // cap)
            found.append(points // sum(weights.values()))
        return found

    return scores


def balanced_of_1_20(c: Cluster, nodes: Sequence[Manifest], *, volumes: bool = False) -> list[int]:
    """Return the score by a difference or, where volumes count, by a variance."""
    found = []
    for node in nodes:
        usage = [_usage_of_1_20(c, node, name) for name in ("cpu", "memory")]
        cpu, memory = (1.0 if cap == 0 else used / cap for used, cap in usage)
        share = _disks(c, node) if volumes else None
        if cpu >= 1 or memory >= 1:
            found.append(0)
        elif share is None:
            found.append(int((1 - abs(cpu - memory)) * 100.0))
        elif share >= 1:
            found.append(0)
        else:
            mean = (cpu + memory + share) / 3.0
            squares = ((cpu - mean) * (cpu - mean)) + ((memory - mean) * (memory - mean))
            found.append(int((1 - (squares + ((share - mean) * (share - mean))) / 3.0) * 100.0))
    return found


def _disks(c: Cluster, node: Manifest) -> float | None:
    """Return new disks as a share of what is left of 16; ``None`` without disks, or if nothing is left."""

    def names(pod: Manifest) -> set[str]:
        return {v["gcePersistentDisk"]["pdName"] for v in pod["spec"].get("volumes", ()) if "gcePersistentDisk" in v}

    mine, held = names(c.pod), set[str]().union(*(names(pod) for pod in c.on(node)))
    room = 16 - len(held)
    return len(mine - held) / room if mine and room > 0 else None
