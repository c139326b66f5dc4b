"""Random operations platforms, and small ones made by hand."""

from __future__ import annotations

import random
from typing import Any

from stowplan.instances.platform import as_snapshot
from stowplan.models.platform import Platform
from stowplan.models.snapshot import Snapshot


def random_platform(rng: random.Random, machines: int = 3, instances: int = 5) -> dict[str, Any]:
    """Return the content of a platform file: every field, limit, and kind of instance comes up now and then."""
    names = [f"m{n}" for n in range(rng.randint(1, machines))]
    sizes = [(rng.choice([4, 16, 64]), rng.choice([8, 64, 96])) for _ in names]
    made = []
    for name, (cpu, memory) in zip(names, sizes, strict=True):
        machine: dict[str, Any] = {"name": name, "cpu": cpu, "memory": f"{memory}Gi"}
        if rng.random() < 0.5:
            machine["used"] = {"cpu": rng.randint(0, cpu), "memory": f"{rng.randint(0, memory)}Gi"}
        if rng.random() < 0.3:
            machine["network"] = "10G"
        if rng.random() < 0.3:
            machine["resources"] = {"gpu": rng.randint(1, 4)}
        if rng.random() < 0.4:
            machine["peak"] = {"cpu": rng.randint(0, cpu)}
        made.append(machine)
    placed = []
    for i in range(rng.randint(1, instances)):
        instance: dict[str, Any] = {
            "name": f"i{i}",
            "cluster": rng.choice("ab"),
            "kind": rng.choice(["master", "master", "replica", "proxy"]),
            "maxmemory": f"{rng.randint(1, 12)}Gi",
        }
        if rng.random() < 0.6:
            instance |= {"cpu": f"{rng.randint(1, 4000)}m", "memory": f"{rng.randint(1, 9000)}Mi"}
        if rng.random() < 0.4:
            instance["machine"] = rng.choice(names)
        if rng.random() < 0.4:
            instance["port"] = rng.choice([6379, 6380])
        if rng.random() < 0.15:
            instance["network"] = f"{rng.randint(1, 5)}G"
        if rng.random() < 0.15:
            instance["resources"] = {"gpu": rng.randint(0, 2)}
        placed.append(instance)
    samples = [
        {
            "time": rng.randint(0, 7200),
            "machine": rng.choice(names),
            "values": {"cpu": rng.random(), "memory": rng.random()},
        }
        for _ in range(rng.choice([0, 0, 4]))
    ]
    limits: dict[str, Any] = {"masters": rng.choice([0.25, 0.5, 0.75, 1.0])}
    if rng.random() < 0.5:
        limits["usage"] = {"cpu": rng.choice([0.5, 0.8, 1.0])}
    if rng.random() < 0.4:
        limits["maxmemory"] = rng.choice([0.5, 0.75, 1.0])
    if rng.random() < 0.3:
        limits["instances"] = rng.randint(0, 3)
    if rng.random() < 0.4:
        limits["peak"] = {"cpu": rng.choice([0.5, 0.9])}
    content = {"machines": made, "instances": placed, "samples": samples, "limits": limits}
    return content if rng.random() < 0.5 else {**content, "shares": {"cpu": 0.95, "memory": rng.choice([0.8, 1.0])}}


def platform_of(content: dict[str, Any]) -> Snapshot:
    """Return the snapshot of a platform file's content."""
    return as_snapshot(Platform.model_validate(content))
