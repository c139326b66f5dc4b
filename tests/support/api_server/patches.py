"""The three patches that clients send."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.support.api_server.errors import ApiError, Object

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "ports": "containerPort",
    "conditions": "type",
    "ownerReferences": "uid",
    "finalizers": "",
    "schedulingGates": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
"""Lists that a strategic merge patch merges, by which key; an empty key is a list of plain values."""


def patch(found: Object, body: bytes, content_type: str) -> Object:
    """Return an object patched."""
    content = json.loads(body)
    match content_type.partition(";")[0]:
        case "application/merge-patch+json":
            return dict(_merge(found, content))
        case "application/strategic-merge-patch+json":
            return dict(_strategic(found, content))
        case "application/json-patch+json":
            return _apply_operations(found, content)
    raise ApiError(415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {content_type}")


def _merge(old: Any, new: Any) -> Any:
    """Merge as RFC 7386 says."""
    if not isinstance(new, dict):
        return new
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def _strategic(old: Any, new: Any) -> Any:
    if not isinstance(new, dict):
        return new
    if new.get("$patch") == "replace":
        return {key: value for key, value in new.items() if key != "$patch"}
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            merged[field] = [element for element in merged.get(field, []) if element not in value]
        elif key.startswith("$setElementOrder/") or key == "$retainKeys":
            continue
        elif value is None:
            merged.pop(key, None)
        elif isinstance(value, list) and key in MERGE_KEYS:
            merged[key] = _merge_lists(merged.get(key) or [], value, MERGE_KEYS[key])
        else:
            merged[key] = _strategic(merged.get(key), value)
    return merged


def _merge_lists(old: list[Any], new: list[Any], key: str) -> list[Any]:
    if not key:
        return list(dict.fromkeys([*old, *new]))
    merged = {element[key]: element for element in old}
    for element in new:
        if element.get("$patch") == "delete":
            merged.pop(element[key], None)
        else:
            merged[element[key]] = _strategic(merged.get(element[key]), element)
    return list(merged.values())


def _apply_operations(found: Object, operations: list[Object]) -> Object:
    """Apply the operations of RFC 6902."""
    document: Any = copy.deepcopy(found)
    for operation in operations:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        parent = document
        try:
            for step in steps[:-1]:
                parent = parent[int(step)] if isinstance(parent, list) else parent[step]
            _operate(parent, steps[-1], operation)
        except (KeyError, IndexError, ValueError, TypeError):
            raise ApiError(
                422, "Invalid", f"the server rejected our request: {operation['op']} {operation['path']}"
            ) from None
    return dict(document)


def _operate(parent: Any, step: str, operation: Object) -> None:
    place: Any = step
    if isinstance(parent, list):
        place = len(parent) if step == "-" else int(step)
    match operation["op"]:
        case "add" if isinstance(parent, list):
            parent.insert(place, operation["value"])
        case "add":
            parent[place] = operation["value"]
        case "replace":
            parent[place]
            parent[place] = operation["value"]
        case "remove":
            del parent[place]
        case "test" if parent[place] != operation["value"]:
            raise ValueError
        case "test":
            pass
        case unknown:
            raise ApiError(400, "BadRequest", f"operation {unknown!r} is not served")
