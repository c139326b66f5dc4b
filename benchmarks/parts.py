"""What the split into exact parts gains and costs: ``python -m benchmarks.parts``; ``--help`` lists its options.

Clusters of ``stowplan generate``, each a pool of nodes of its own, as one cluster: their pods select the nodes of
their pool. It is solved as a whole and in its parts, in the same time, for several objectives.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from stowplan.instances.load import load_bytes
from stowplan.instances.synthetic import generate
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.parts.parameters import PartParameters
from stowplan.optimizer.portfolio import solve
from stowplan.settings.problem import make_problem

PODS = 10
"""Pods of a node, on average."""

WHOLE = Parameters(parts=PartParameters(least_share=1.0))
"""Never split."""


def side_by_side(pools: int, nodes: int, seed: int) -> Snapshot:
    """Return generated clusters side by side as one cluster, the first ones larger than those that follow."""
    items: list[dict[str, Any]] = []
    for pool in range(pools):
        size = max(2, nodes >> pool)
        items += _of_pool(generate(size, PODS * size, seed + pool)["items"], f"pool-{pool}")
    return load_bytes(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode(), "pools")


def _of_pool(items: list[dict[str, Any]], pool: str) -> list[dict[str, Any]]:
    """Rename what a cluster consists of, and let its pods select its nodes."""
    made = []
    for item in items:
        if item["kind"] in ("PriorityClass", "StorageClass"):
            continue
        meta = {**item["metadata"], "uid": f"{pool}-{item['metadata'].get('uid')}"}
        owners = meta.get("ownerReferences", [])
        meta["ownerReferences"] = [{**owner, "uid": f"{pool}-{owner['uid']}"} for owner in owners]
        copy = {**item, "metadata": meta}
        named = "namespace" if "namespace" in meta else "name"
        meta[named] = f"{pool}-{meta[named]}"
        if item["kind"] == "Node":
            meta["labels"] = {**meta["labels"], "pool": pool, "kubernetes.io/hostname": meta["name"]}
        if item["kind"] == "Pod":
            spec = copy["spec"] = {**item["spec"]}
            spec["nodeSelector"] = {**spec.get("nodeSelector", {}), "pool": pool}
            if "nodeName" in spec:
                spec["nodeName"] = f"{pool}-{spec['nodeName']}"
        made.append(copy)
    return made


def main() -> None:
    """Print a row for each objective and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=int, default=6)
    parser.add_argument("--nodes", type=int, default=100, help="of the first pool; each following one has half as many")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--objective", nargs="+", default=["balance", "pack", "spread"])
    given = parser.parse_args()
    snapshot = side_by_side(given.pools, given.nodes, given.seed)
    print("| objective | way | seconds | values | bounds |", flush=True)
    print("| --- | --- | --- | --- | --- |", flush=True)
    for objective in given.objective:
        problem = make_problem(snapshot, Settings(objective=objective)).problem
        for way, parameters in (("whole", WHOLE), ("parts", Parameters())):
            outcome = solve(problem, Options(time_limit=given.seconds, parameters=parameters))
            values = ", ".join(f"{tier.tier.shown(tier.value):,.6g}" for tier in outcome.tiers)
            bounds = ", ".join(f"{tier.tier.shown(tier.bound):,.6g}" for tier in outcome.tiers)
            print(f"| `{objective}` | {way} | {outcome.seconds:.1f} | {values} | {bounds} |", flush=True)


if __name__ == "__main__":
    main()
