"""Objects back as manifests: what was read of them, in the words of the API."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

_adapters: dict[type[Any], TypeAdapter[Any]] = {}


def manifest(obj: Any) -> dict[str, Any]:
    """Return a Kubernetes object as a manifest; fields that placement does not read are gone."""
    model = type(obj)
    if model not in _adapters:
        _adapters[model] = TypeAdapter(model)
    plain: dict[str, Any] = _adapters[model].dump_python(obj, by_alias=True, exclude_defaults=True, mode="json")
    return plain
