"""A snapshot back as the list that it could have been read from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stowplan.instances.completeness import ASKED, RESOURCES, statement_of
from stowplan.models.kubernetes import Pod
from stowplan.models.manifest import manifest
from stowplan.models.snapshot import Snapshot

Manifest = dict[str, Any]

MOUNTED = "mounted"
"""What a volume is called that a pod mounts and does not have."""


def manifest_list(snapshot: Snapshot) -> Manifest:
    """Return a ``List`` that is read as the same objects: with what placement reads of them, and nothing else.

    A snapshot without gaps becomes a list that says of itself that it is whole.
    """
    items = list(_items(snapshot))
    meta = {} if snapshot.gaps else {"metadata": {"annotations": {ASKED: statement_of(items)}}}
    return {"apiVersion": "v1", "kind": "List", **meta, "items": items}


def written(snapshot: Manifest) -> bytes:
    """Return a list as JSON, an object on each line."""
    head = {key: value for key, value in snapshot.items() if key != "items"}
    lines = ",\n".join(json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in snapshot["items"])
    return f'{json.dumps(head)[:-1]}, "items": [\n{lines}\n]}}\n'.encode()


def _items(snapshot: Snapshot) -> Iterator[Manifest]:
    for resource, (field, kind) in RESOURCES.items():
        group = resource.partition(".")[2]
        version = f"{group}/v1" if group else "v1"
        for obj in getattr(snapshot, field):
            item = manifest(obj)
            yield {"apiVersion": version, "kind": kind, **(_mounting(obj, item) if isinstance(obj, Pod) else item)}


def _mounting(pod: Pod, item: Manifest) -> Manifest:
    """Return the manifest of a pod with the mounts that tell what was read of them.

    Placement reads whether a host path is mounted for reading only, and whether a volume is mounted that is missing.
    """
    mounts = [
        {"name": volume.name, "readOnly": True}
        for volume in pod.spec.volumes
        if volume.host_path is not None and volume.host_path.read_only
    ]
    mounts += [{"name": MOUNTED}] if pod.spec.missing_volumes else []
    if not mounts or not pod.spec.containers:
        return item
    first, *others = item["spec"]["containers"]
    containers = [{**first, "volumeMounts": mounts}, *others]
    return {**item, "spec": {**item["spec"], "containers": containers}}
