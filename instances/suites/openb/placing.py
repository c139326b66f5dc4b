"""The lists as a problem, solutions as files, and what a written solution is worth.

A solution is CSV with the columns ``name``, ``node`` and ``devices``: one row for each pod that has a node, with the
numbers of its devices there, counted from 0 and separated by blanks.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from stowplan.instances.suites.openb.lists import WHOLE, Cluster
from stowplan.models.arrays import Ints
from stowplan.models.bin_packing import pack
from stowplan.models.errors import InputError
from stowplan.models.problem import (
    PENALTY_WEIGHT,
    Allow,
    Capacity,
    Devices,
    Origin,
    Placement,
    Problem,
    Rule,
    Tier,
    Unplaced,
    Weighted,
    project,
    refine,
)

PODS_PER_NODE = 1001
COLUMNS = ("name", "node", "devices")


@dataclass(frozen=True, slots=True, eq=False)
class DeviceProblem:
    """The lists as a problem.

    Parameters
    ----------
    class_of
        ``[p]`` the class of each pod.
    """

    cluster: Cluster
    problem: Problem
    class_of: Ints

    def write(self, placement: Placement) -> str:
        """Write a placement as a solution, with a device for every share."""
        waiting = [np.flatnonzero(self.class_of == c).tolist() for c in range(len(self.problem.classes))]
        on: dict[int, list[int]] = defaultdict(list)
        for c, n, count in placement.entries():
            for _ in range(count):
                on[n].append(waiting[c].pop())
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(COLUMNS)
        for n, pods in sorted(on.items()):
            devices = self._devices(pods)
            rows.writerows([self.cluster.pods[p], self.cluster.nodes[n], devices[p]] for p in sorted(pods))
        return out.getvalue()

    def _devices(self, pods: list[int]) -> dict[int, str]:
        """Give the pods of a node their devices: shares packed as tightly as can be, whole devices after them."""
        sharing = sorted((p for p in pods if self.cluster.share[p]), key=lambda p: (-int(self.cluster.share[p]), p))
        used, where = pack(tuple(int(self.cluster.share[p]) for p in sharing), WHOLE)
        devices = {p: str(k) for p, k in zip(sharing, where, strict=True)}
        for p in pods:
            if p not in devices:
                whole = int(self.cluster.whole[p])
                devices[p] = " ".join(map(str, range(used, used + whole)))
                used += whole
        return devices


def device_problem(cluster: Cluster) -> DeviceProblem:
    """State the lists as a problem: minimize the unscheduled GPU demand, then the number of unscheduled pods."""
    pods = len(cluster.pods)
    kinds: dict[tuple[str, ...], int] = {}
    row = np.array([kinds.setdefault(models, len(kinds)) for models in cluster.models], dtype=np.int64)
    mask = np.array([[not models or model in models for model in cluster.model] for models in kinds], dtype=np.bool_)
    nobody = np.zeros(0, dtype=np.int64)
    rules: list[Rule] = [
        _capacity("cpu", cluster.asks[:, 0], cluster.room[:, 0]),
        _capacity("memory", cluster.asks[:, 1], cluster.room[:, 1]),
        _capacity("pods", np.ones(pods, dtype=np.int64), np.full(len(cluster.nodes), PODS_PER_NODE, dtype=np.int64)),
        Devices(
            Origin("devices", "gpu"),
            cluster.whole,
            cluster.share,
            WHOLE,
            cluster.devices,
            np.zeros(len(cluster.nodes), dtype=np.int64),
            nobody,
            nobody,
        ),
        Allow(Origin("gpu models"), row, mask.reshape(len(kinds), len(cluster.nodes))),
    ]
    asked = Unplaced(Origin("pending"), WHOLE * cluster.whole + cluster.share)
    each = Unplaced(Origin("pending"), np.ones(pods, dtype=np.int64))
    class_of = refine(pods, [*rules, asked])
    representative = np.unique(class_of, return_index=True)[1]
    size = np.bincount(class_of, minlength=len(representative))
    problem = Problem(
        nodes=cluster.nodes,
        classes=tuple(cluster.pods[p] for p in representative.tolist()),
        size=size,
        optional=size.copy(),
        start=Placement.of(()),
        rules=tuple(project(rule, class_of, representative) for rule in rules),
        tiers=(
            Tier("pending demand", (Weighted(1, project(asked, class_of, representative)),), WHOLE, "GPUs"),
            Tier("pending", (Weighted(1, project(each, class_of, representative)),), unit="pods"),
        ),
    )
    return DeviceProblem(cluster, problem, class_of)


def check_devices(cluster: Cluster, name: str, data: bytes) -> tuple[tuple[int, int], list[str]]:
    """Check a written solution.

    Returns
    -------
    (demand, pods), violations
        Thousandths of devices and pods that stay unscheduled, and one line for each thing that is wrong.

    Raises
    ------
    InputError
        If it is not a solution of these lists at all.
    """
    pods, nodes = ({key: i for i, key in enumerate(names)} for names in (cluster.pods, cluster.nodes))
    placed: dict[int, int] = {}
    used = np.zeros_like(cluster.room)
    load: Counter[tuple[int, int]] = Counter()
    violations = []
    for line, row in _rows(name, data):
        if row["name"] not in pods or row["node"] not in nodes:
            raise InputError("names a pod or node that is not in the lists", file=name, field=f"line {line}")
        p, n = pods[row["name"]], nodes[row["node"]]
        if p in placed:
            raise InputError(f"{row['name']} appears twice", file=name, field=f"line {line}")
        placed[p] = n
        used[n] += cluster.asks[p]
        devices = row["devices"].split()
        if not all(k.isascii() and k.isdigit() and int(k) < cluster.devices[n] for k in devices):
            violations.append(f"{row['name']}: device {row['devices']} is not on {row['node']}")
            continue
        wanted, each = (1, int(cluster.share[p])) if cluster.share[p] else (int(cluster.whole[p]), WHOLE)
        if len({*map(int, devices)}) != len(devices) or len(devices) != wanted:
            violations.append(f"{row['name']}: has {len(devices)} devices; must be {wanted} different ones")
        if cluster.models[p] and cluster.model[n] not in cluster.models[p]:
            violations.append(f"{row['name']}: does not run on {row['node']}, which has {cluster.model[n] or 'none'}")
        for k in devices:
            load[n, int(k)] += each
    violations += [f"{cluster.nodes[n]}: device {k} gives {total}" for (n, k), total in load.items() if total > WHOLE]
    for n in np.flatnonzero((used > cluster.room).any(axis=1)).tolist():
        violations.append(f"{cluster.nodes[n]}: {used[n, 0]} millicores and {used[n, 1]} MiB exceed what it has")
    crowd = Counter(placed.values())
    violations += [
        f"{cluster.nodes[n]}: {k} pods exceed {PODS_PER_NODE}" for n, k in crowd.items() if k > PODS_PER_NODE
    ]
    standing = np.array([p in placed for p in range(len(cluster.pods))], dtype=np.bool_)
    demand = WHOLE * cluster.whole + cluster.share
    return (int(demand[~standing].sum()), int((~standing).sum())), violations


def _rows(name: str, data: bytes) -> list[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(data.decode("utf-8", "replace")))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise InputError(f"must have the columns {', '.join(COLUMNS)}", file=name)
    rows = list(enumerate(reader, 2))
    for line, row in rows:
        if None in row or None in row.values():
            raise InputError(f"must have {len(COLUMNS)} fields", file=name, field=f"line {line}")
    return rows


def _capacity(resource: str, demand: Ints, room: Ints) -> Capacity:
    unit = max(1, int(np.gcd.reduce(demand)))
    free = room // unit
    return Capacity(
        Origin("capacity", resource), demand // unit, free, np.maximum(1, PENALTY_WEIGHT // (free + 1)), unit
    )
