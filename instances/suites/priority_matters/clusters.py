"""The clusters: read from ``.jsonl`` files, one a line, or made by the published recipe."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stowplan.models.errors import InputError
from stowplan.models.validation import refusal

REPLICAS = (1, 4)
CPU = (100, 1000)
"""Millicores of a pod."""
MEMORY = (100 * 10**6, 1000 * 10**6)
"""Bytes of a pod."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReplicaSet(_Part):
    """Alike pods; CPU in millicores, memory in bytes. A larger number is a higher priority."""

    replicas: int = Field(ge=1)
    cpu_m: int = Field(ge=0, lt=2**40)
    mem_b: int = Field(ge=0, lt=2**50)
    priority: int


class Cluster(_Part):
    """Nodes that are all alike, and the pods to place on them."""

    seed: int
    nodes: int = Field(ge=1)
    node_cpu_m: int = Field(ge=0, lt=2**40)
    node_mem_b: int = Field(ge=0, lt=2**50)
    replicasets: tuple[ReplicaSet, ...]

    @property
    def priorities(self) -> tuple[int, ...]:
        """Which priorities there are, the highest first."""
        return tuple(sorted({s.priority for s in self.replicasets}, reverse=True))

    @property
    def pods(self) -> int:
        """Number of pods."""
        return sum(s.replicas for s in self.replicasets)


def read_clusters(name: str, data: bytes) -> tuple[Cluster, ...]:
    """Read a file of clusters.

    Raises
    ------
    InputError
        With line and field of the first thing that cannot be used.
    """
    clusters: dict[int, Cluster] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            cluster = Cluster.model_validate_json(line)
        except ValidationError as error:
            raise refusal(error, place) from None
        if clusters.setdefault(cluster.seed, cluster) is not cluster:
            raise InputError(f"is {cluster.seed} for a second time; must be unique", file=place, field="seed")
    return tuple(clusters.values())


def generate_clusters(
    seed: int, count: int, *, nodes: int, pods: int, priorities: int, load: int = 100
) -> Iterator[Cluster]:
    """Yield clusters by the published recipe, for seeds drawn as its seed lists are.

    Parameters
    ----------
    load
        Percent of the nodes that all pods together ask for.
    """
    numbers = _stream(seed, "base")
    seeds = (numbers.getrandbits(63) or 1 for _ in iter(int, 1))
    for drawn in islice(seeds, count):
        yield generate_cluster(drawn, nodes=nodes, pods=pods, priorities=priorities, load=load)


def generate_cluster(seed: int, *, nodes: int, pods: int, priorities: int, load: int = 100) -> Cluster:
    """Make the cluster of a seed, number for number the published one.

    Sizes of ReplicaSets, their CPU, memory and priority come from four independent streams; nodes are as large as the
    load asks for, and never smaller than the largest pod.
    """
    stream = _stream(seed, "rs-sizes")
    sizes: list[int] = []
    while (left := pods - sum(sizes)) > 0:
        sizes.append(stream.randint(REPLICAS[0], min(REPLICAS[1], left)))
    cpu, memory = ([s.randint(*span) for _ in sizes] for s, span in _spans(seed))
    stream = _stream(seed, "base")
    rank = [stream.randint(1, priorities) for _ in sizes]
    return Cluster(
        seed=seed,
        nodes=nodes,
        node_cpu_m=_node_size(sizes, cpu, nodes, load),
        node_mem_b=_node_size(sizes, memory, nodes, load),
        replicasets=tuple(
            ReplicaSet(replicas=k, cpu_m=c, mem_b=m, priority=p)
            for k, c, m, p in zip(sizes, cpu, memory, rank, strict=True)
        ),
    )


def _spans(seed: int) -> Iterator[tuple[random.Random, tuple[int, int]]]:
    yield _stream(seed, "rs-cpu"), CPU
    yield _stream(seed, "rs-mem"), MEMORY


def _stream(seed: int, label: str) -> random.Random:
    """Return the stream of random numbers that belongs to a seed and a label."""
    digest = hashlib.blake2b(seed.to_bytes(16, "big") + b"\0" + label.encode(), digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "big"))


def _node_size(sizes: list[int], demand: list[int], nodes: int, load: int) -> int:
    # In floating point, as published: what is rounded up may differ by one from exact arithmetic.
    total = math.ceil(sum(k * d for k, d in zip(sizes, demand, strict=True)) / (load / 100))
    return max(*demand, math.ceil(total / nodes)) if demand else 1
