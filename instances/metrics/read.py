"""The front door of metrics: a file, a load-watcher or a Prometheus server, as the user names it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from stowplan.instances.documents import read_documents
from stowplan.instances.metrics.http import Access, get_json, split_url
from stowplan.instances.metrics.load_watcher import parse_load_watcher
from stowplan.instances.metrics.percent import parse_percent
from stowplan.instances.metrics.prometheus import read_prometheus
from stowplan.models.errors import InputError
from stowplan.models.input_bounds import require_sparse
from stowplan.models.kubernetes import Node
from stowplan.models.metrics import LoadMetrics
from stowplan.models.yaml_input import parse_one_yaml

WATCHER_PATH = "/watcher"


def read_metrics(where: str, nodes: Sequence[Node], access: Access | None = None) -> LoadMetrics:
    """Read measured load of nodes.

    Parameters
    ----------
    where
        A file; the URL of a load-watcher, which ends in ``/watcher``; or that of a Prometheus server.
    nodes
        Nodes of the snapshot.
    access
        How a server lets us in.

    Raises
    ------
    InputError
        If there is nothing to read, or nothing about any of these nodes.
    """
    access = access or Access()
    if not where.startswith(("http://", "https://")):
        metrics = _read_file(where)
    elif split_url(where).path.rstrip("/").endswith(WATCHER_PATH):
        metrics = _ask_load_watcher(where, access)
    else:
        metrics = read_prometheus(where, tuple(nodes), access)
    names = {node.name for node in nodes}
    if not any(figures and name in names for name, figures in metrics.nodes.items()):
        seen = ", ".join(list(metrics.nodes)[:3])
        about = f"its nodes are {seen}{', …' if len(metrics.nodes) > 3 else ''}" if seen else "it has no nodes"
        raise InputError(f"has metrics of no node of the snapshot; {about}", file=metrics.source)
    return metrics


def _read_file(path: str) -> LoadMetrics:
    if Path(path).is_dir():
        raise InputError("is a directory; must be one file", file=path)
    (document,) = read_documents([path])
    content = _parse(document.data, document.name)
    if isinstance(content, dict) and "nodes" in content:
        return parse_percent(content, document.name)
    if isinstance(content, dict) and "data" in content:
        return parse_load_watcher(content, document.name)
    raise InputError("has neither data, as documents of load-watcher do, nor nodes", file=document.name)


def _parse(data: bytes, name: str) -> Any:
    require_sparse(data, name)
    if data.lstrip().startswith(b"{"):
        with suppress(ValueError, RecursionError):  # YAML says better what is wrong, and allows more
            return json.loads(data)
    return parse_one_yaml(data, name)


def _ask_load_watcher(url: str, access: Access) -> LoadMetrics:
    answer = get_json(url, access)
    if answer.status != 200:
        hint = "; a load-watcher has nothing to tell before it has measured once" if answer.status >= 500 else ""
        raise InputError(f"answered with status {answer.status}{hint}", file=answer.url)
    return parse_load_watcher(answer.content, answer.url)
