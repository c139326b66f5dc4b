"""An operations platform as a snapshot: machines are nodes, instances are pods, samples are metrics.

What a machine uses beside its instances is a pod of its own that stays. So all that is done with clusters can be done
with machines: the same problem, engines, plans and reports.
"""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from stowplan.instances.documents import Document
from stowplan.models.errors import InputError
from stowplan.models.interning import FrozenMap, interning
from stowplan.models.kubernetes import Container, Node, NodeStatus, ObjectMeta, OwnerReference, Pod, PodSpec, PodStatus
from stowplan.models.kubernetes.pod import ContainerPort, ResourceRequirements
from stowplan.models.metrics import AVERAGE, CPU, DEVIATION, MEMORY, LoadMetrics, Metric
from stowplan.models.platform import (
    CLUSTER,
    KIND,
    MASTERS,
    PREFIX,
    ROLE,
    Instance,
    Machine,
    Platform,
    exact,
    peak,
    resource,
)
from stowplan.models.quantity import NANO, Nanos
from stowplan.models.snapshot import Snapshot
from stowplan.models.validation import refusal
from stowplan.models.yaml_input import parse_one_yaml

NAMESPACE = "platform"
TABLES = {
    ("machine", "cpu", "memory"): "machines",
    ("instance", "cluster", "kind"): "instances",
    ("time", "machine"): "samples",
}
"""First columns of the tables."""
SAYS_SO = re.compile(rb"""^[\s{]*["']?kind["']?\s*:\s*["']?""" + KIND.encode(), re.MULTILINE)
"""The line that says what a file is, wherever in the file."""
NESTED = ("used", "peak", "resources")
MOST_INSTANCES = 100_000
METRICS = {"cpu": CPU, "memory": MEMORY}


def is_platform(document: Document) -> bool:
    """Whether a document is a platform file, or one of its tables."""
    return _table(document) is not None or SAYS_SO.search(document.data) is not None


def read_platform(documents: Sequence[Document]) -> Snapshot:
    """Read a platform from one YAML file, from tables, or from tables and a YAML file with the settings.

    Raises
    ------
    InputError
        With the line or field that cannot be used.
    """
    content: dict[str, Any] = {}
    for document in documents:
        table = _table(document)
        if table is not None:
            content[table] = [*content.get(table, ()), *_rows(document, table)]
        elif is_platform(document):
            content |= _mapping(document)
        else:
            raise InputError("is no part of an operations platform", file=document.name)
    try:
        platform = Platform.model_validate(content)
    except ValidationError as error:
        raise refusal(error, documents[0].name) from None
    try:
        return as_snapshot(platform)
    except InputError as error:
        raise error.in_file(documents[0].name) from None


def as_snapshot(platform: Platform) -> Snapshot:
    """Return a platform as a snapshot."""
    _check(platform)
    on: defaultdict[str, list[Instance]] = defaultdict(list)
    for instance in platform.instances:
        if instance.machine is not None:
            on[instance.machine].append(instance)
    metrics = _metrics(platform)
    with interning():
        snapshot = Snapshot(
            nodes=tuple(_node(machine, platform) for machine in platform.machines),
            pods=(
                *(_rest(machine, on[machine.name], metrics, platform) for machine in platform.machines),
                *(_pod(instance, platform.limits.peak) for instance in platform.instances),
            ),
            metrics=metrics if platform.samples else None,
        )
    snapshot.check()
    return snapshot


def _check(platform: Platform) -> None:
    names = [machine.name for machine in platform.machines]
    known = set(names)
    for what, found in (("machine", names), ("instance", [instance.name for instance in platform.instances])):
        if (
            twice := next((name for name in found if found.count(name) > 1), None)
            if len(set(found)) < len(found)
            else None
        ):
            raise InputError(f"{what} {twice!r} appears twice; names must be unique", field=f"{what}s")
    for i, instance in enumerate(platform.instances):
        if instance.machine is not None and instance.machine not in known:
            raise InputError(f"is {instance.machine!r}, which is no machine", field=f"instances[{i}].machine")
    has = {name for machine in platform.machines for name in machine.totals}
    limits = platform.limits
    for where, shares in (("shares", platform.shares), ("limits.usage", limits.usage), ("limits.peak", limits.peak)):
        if has and (nowhere := sorted(set(shares) - has)):
            raise InputError(f"no machine has {nowhere[0]!r}", field=where)
    for i, sample in enumerate(platform.samples):
        if sample.machine not in known:
            raise InputError(f"is {sample.machine!r}, which is no machine", field=f"samples[{i}].machine")


# -- objects ----------------------------------------------------------------------------------------------------


def _node(machine: Machine, platform: Platform) -> Node:
    """Return a machine as a node: what can be allocated, and the thresholds as its capacity."""
    shares, limits = platform.shares, platform.limits
    most = MOST_INSTANCES if limits.instances is None else limits.instances + 1  # and the pod of the machine itself
    allocatable = {"pods": MOST_INSTANCES * NANO}
    capacity = {"pods": most * NANO}
    for name, total in machine.totals.items():
        allocatable[resource(name)] = _part(name, total, shares.get(name, 1.0))
        capacity[resource(name)] = _part(name, total, limits.usage.get(name, shares.get(name, 1.0)))
        if name in limits.peak:
            allocatable[peak(name)] = _of_peak(name, total)
            capacity[peak(name)] = _of_peak(name, _part(name, total, limits.peak[name]))
    allocatable[PREFIX + "maxmemory"] = machine.memory
    if limits.maxmemory is not None:
        # Strictly below the share: at most the whole number of bytes before it.
        capacity[PREFIX + "maxmemory"] = (math.ceil(machine.memory // NANO * exact(limits.maxmemory)) - 1) * NANO
    labels = {"kubernetes.io/hostname": machine.name, MASTERS: repr(limits.masters)}
    status = NodeStatus(_amounts(allocatable), _amounts(capacity))
    return Node(ObjectMeta(machine.name, labels=FrozenMap(labels)), status=status)


def _amounts(nanos: Mapping[str, int]) -> FrozenMap[int]:
    return FrozenMap({name: Nanos(amount) for name, amount in nanos.items()})


def _part(name: str, total: int, share: float) -> int:
    """Return a share of a total in nanos, rounded down to what amounts are counted in: millicores, bytes, pieces."""
    unit = NANO // 1000 if name == "cpu" else NANO
    return math.floor(total * exact(share) / unit) * unit


def _of_peak(name: str, amount: int) -> int:
    """Return an amount of a peak, in which cores are counted in thousandths, as further resources are whole."""
    return amount * 1000 if name == "cpu" else amount


def _pod(instance: Instance, peaks: Iterable[str]) -> Pod:
    uses = instance.uses
    amounts = {resource(name): amount for name, amount in uses.items()}
    amounts |= {peak(name): _of_peak(name, uses.get(name, 0)) for name in peaks}
    if instance.maxmemory is not None:
        amounts[PREFIX + "maxmemory"] = instance.maxmemory
    ports = () if instance.port is None else (ContainerPort(instance.port, instance.port),)
    labels = FrozenMap({CLUSTER: instance.cluster, ROLE: instance.kind})
    owner = OwnerReference("StatefulSet", f"{instance.cluster}-{instance.kind}", api_version="apps/v1", controller=True)
    container = Container(instance.kind, resources=ResourceRequirements(_amounts(amounts)), ports=ports)
    meta = ObjectMeta(instance.name, NAMESPACE, instance.name, labels=labels, owner_references=(owner,))
    phase = "Running" if instance.machine else "Pending"
    return Pod(meta, PodSpec((container,), node_name=instance.machine), PodStatus(phase))


def _rest(machine: Machine, instances: Iterable[Instance], metrics: LoadMetrics, platform: Platform) -> Pod:
    """Return what a machine uses beside its instances, as a pod that stays there.

    With them it comes to what is measured, so instances count here as they are counted: rounded up.
    """
    mine: defaultdict[str, int] = defaultdict(int)
    for instance in instances:
        for name, amount in instance.uses.items():
            mine[name] += -_part(name, -amount, 1.0)
    averages = {metric.type: metric.value / 100 for metric in metrics.of(machine.name) if metric.operator == AVERAGE}
    amounts = {}
    for name, total in machine.totals.items():
        measured = machine.used.get(name)
        if measured is None and METRICS.get(name, name) in averages:
            measured = round(total * platform.shares.get(name, 1.0) * averages[METRICS.get(name, name)])
        amounts[resource(name)] = max(0, (measured or 0) - mine[name])
        if name in platform.limits.peak:
            amounts[peak(name)] = _of_peak(name, max(0, machine.peak.get(name, 0) - mine[name]))
    owner = OwnerReference("DaemonSet", "machine", api_version="apps/v1", controller=True)
    container = Container("rest", resources=ResourceRequirements(_amounts(amounts)))
    meta = ObjectMeta(f"machine-{machine.name}", "machines", owner_references=(owner,))
    return Pod(meta, PodSpec((container,), node_name=machine.name), PodStatus("Running"))


def _metrics(platform: Platform) -> LoadMetrics:
    """Return mean and population standard deviation of each machine's samples in the window.

    Samples are shares of a machine's total; the figures are percent of what can be allocated of it, as requests are.
    """
    end = max((sample.time for sample in platform.samples), default=0.0)
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for sample in platform.samples:
        if sample.time > end - platform.window:
            for name, value in sample.values.items():
                found[sample.machine, name].append(value)
    nodes: defaultdict[str, list[Metric]] = defaultdict(list)
    for (machine, name), values in found.items():
        kind, whole = METRICS.get(name, name), 100 / platform.shares.get(name, 1.0)
        nodes[machine].append(Metric(kind, AVERAGE, whole * statistics.fmean(values)))
        nodes[machine].append(Metric(kind, DEVIATION, whole * statistics.pstdev(values)))
    return LoadMetrics({name: tuple(metrics) for name, metrics in nodes.items()}, None, "samples")


# -- files ------------------------------------------------------------------------------------------------------


def _table(document: Document) -> str | None:
    first = document.data[:4096].partition(b"\n")[0].decode("utf-8", "replace").strip().split(",")
    return next((table for columns, table in TABLES.items() if tuple(first[: len(columns)]) == columns), None)


def _mapping(document: Document) -> dict[str, Any]:
    content = parse_one_yaml(document.data, document.name, "not YAML")
    if not isinstance(content, dict):
        raise InputError(f"must be an object of kind {KIND}", file=document.name)
    return content


def _rows(document: Document, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table; ``used.cpu`` is a field of ``used``, and an empty cell is no field."""
    for row in csv.DictReader(io.StringIO(document.data.decode("utf-8", "replace"))):
        cells = {key: value for key, value in row.items() if key and value not in (None, "")}
        if table == "samples":
            yield {
                "time": cells.pop("time", None),
                "machine": cells.pop("machine", None),
                "values": cells,
            }
        else:
            yield _nested(cells)


def _nested(cells: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for key, value in cells.items():
        outer, dot, inner = key.partition(".")
        if dot and outer in NESTED:
            entry.setdefault(outer, {})[inner] = value
        else:
            entry[
                "name" if key in ("machine", "instance") and "name" not in entry and key == next(iter(cells)) else key
            ] = value
    return entry
