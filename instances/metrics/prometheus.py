"""Measured load from a Prometheus server, by the queries that load-watcher asks.

Each figure is asked for as kube-prometheus records it (``instance:node_cpu:ratio``,
``instance:node_memory_utilisation:ratio``); where nothing is recorded under that name, it is worked out from what
node-exporter exposes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlunsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from stowplan.instances.metrics.http import Access, get_json, split_url
from stowplan.models import metrics
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Node
from stowplan.models.metrics import LoadMetrics, Metric
from stowplan.models.moments import parse_time, stamp
from stowplan.models.network import shown
from stowplan.models.validation import refusal

WINDOW = "15m"

RECORDED = {metrics.CPU: "instance:node_cpu:ratio", metrics.MEMORY: "instance:node_memory_utilisation:ratio"}

IDLE = 'rate(node_cpu_seconds_total{mode=~"idle|iowait|steal"}[5m])'
EXPOSED = {
    metrics.CPU: f"1 - avg by (instance) (sum without (mode) ({IDLE}))",
    metrics.MEMORY: "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
}
"""The busy share of the processors, and the share of memory that is not available."""

FUNCTIONS = {metrics.LATEST: None, metrics.AVERAGE: "avg_over_time", metrics.DEVIATION: "stddev_over_time"}
"""The average comes after the latest value, so that readers who take the last prefer it, as upstream's do."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Sample(_Part):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(_Part):
    result: tuple[_Sample, ...]


class _Response(_Part):
    status: str
    data: _Vector


@dataclass(frozen=True, slots=True)
class Server:
    """A Prometheus server, and what it is asked about.

    Parameters
    ----------
    address
        Base of its HTTP API, as far as before ``/api/v1``.
    window
        How far back averages and deviations reach, as Prometheus writes durations.
    at
        Moment at which the window ends, in seconds since 1970.
    """

    address: str
    window: str
    at: int
    access: Access

    def ask(self, expression: str) -> list[tuple[str, float]]:
        """Return value by ``instance`` label, sorted; values that are not numbers are left out."""
        query = {"query": expression, "time": str(self.at)}
        answer = get_json(f"{self.address}/api/v1/query", self.access, query)
        content = answer.content if isinstance(answer.content, dict) else {}
        if answer.status != 200 or content.get("status") != "success":
            raise InputError(_refusal(answer.status, content), file=answer.url)
        try:
            samples = _Response.model_validate(content).data.result
            pairs = [(sample.metric.get("instance", ""), float(sample.value[1])) for sample in samples]
        except ValidationError as error:
            raise refusal(error, answer.url) from None
        except ValueError as error:
            raise InputError(f"has a value that is not a number: {error}", file=answer.url) from None
        return sorted((instance, value) for instance, value in pairs if abs(value) < float("inf"))


def read_prometheus(address: str, nodes: tuple[Node, ...], access: Access) -> LoadMetrics:
    """Ask a Prometheus server for the load of nodes.

    Parameters
    ----------
    address
        ``http://host:port``, with ``?window=15m&time=…`` for another window or an earlier moment.
    nodes
        An ``instance`` label names a node by name or address, with or without a port.

    Raises
    ------
    InputError
        If the server does not answer as Prometheus does, or knows nothing about these nodes.
    """
    server = _server(address, access)
    names = _node_names(nodes)
    figures: dict[str, list[Metric]] = {}
    strangers: set[str] = set()
    for kind in RECORDED:
        for instance, metric in _measure(server, kind):
            name = names.get(instance) or names.get(_without_port(instance))
            if name is None:
                strangers.add(instance)
            else:
                figures.setdefault(name, []).append(metric)
    if not figures and strangers:
        seen = ", ".join(sorted(strangers)[:3])
        raise InputError(f"no instance is a node of the snapshot; instances are {seen}, …", file=shown(address))
    if not figures:
        wanted = " or ".join([*RECORDED.values(), "node-exporter's series"])
        raise InputError(f"has no {wanted} in the {server.window} before {_written(server.at)}", file=shown(address))
    return LoadMetrics({name: tuple(found) for name, found in figures.items()}, server.at, shown(address))


def _measure(server: Server, kind: str) -> Iterator[tuple[str, Metric]]:
    for operator, function in FUNCTIONS.items():
        found = server.ask(_over_time(RECORDED[kind], function, f"[{server.window}]"))
        found = found or server.ask(_over_time(f"({EXPOSED[kind]})", function, f"[{server.window}:1m]"))
        for instance, ratio in found:
            yield instance, Metric(kind, operator, max(0.0, ratio * 100))


def _over_time(series: str, function: str | None, span: str) -> str:
    return f"{function}({series}{span})" if function else series


def _server(address: str, access: Access) -> Server:
    parts = split_url(address)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    window, moment = options.pop("window", WINDOW), options.pop("time", None)
    if options:
        raise InputError(f"{next(iter(options))!r} is not an option; options are window and time", file=shown(address))
    if not re.fullmatch(r"([1-9]\d*[smhd])+", window):
        raise InputError(f"{window!r} is not a duration, such as 15m or 1h", file=shown(address), field="window")
    base = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return Server(base, window, int(time.time()) if moment is None else _moment(moment, address), access)


def _moment(text: str, address: str) -> int:
    if re.fullmatch(r"\d{1,10}", text):
        return int(text)
    read = parse_time(text)
    if read is None:
        problem = f"{text!r} is not a moment, such as 2026-01-31T12:00:00Z or seconds since 1970"
        raise InputError(problem, file=shown(address), field="time")
    return int(read.timestamp())


def _node_names(nodes: tuple[Node, ...]) -> dict[str, str]:
    """Return the node's name by each of its names and addresses; names come first."""
    names = {address.address: node.name for node in nodes for address in (node.status.addresses if node.status else ())}
    return names | {node.name: node.name for node in nodes}


def _without_port(instance: str) -> str:
    return re.sub(r":\d+$", "", instance).strip("[]")


def _refusal(status: int, content: dict[str, Any]) -> str:
    if "error" in content:
        return f"refused the query: {content['error']}"
    hint = "; the address of a load-watcher ends in /watcher" if status == 404 else ""
    return f"does not answer as a Prometheus server does (status {status}){hint}"


def _written(seconds: int) -> str:
    return stamp(datetime.fromtimestamp(seconds, UTC))
