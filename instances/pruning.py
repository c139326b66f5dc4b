"""Dumps without what no reader reads: environment, arguments, configuration, foreign annotations, managed fields.

The fields that are kept are those of `stowplan.models.kubernetes`, so nothing has to be listed here that a reader may
read one day. What is kept is kept as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeAlias, get_args

import msgspec
from pydantic.fields import FieldInfo

from stowplan.instances.completeness import PRUNED
from stowplan.instances.items import identify
from stowplan.instances.manifests import READ
from stowplan.models.kubernetes.meta import ObjectMeta, always_kept
from stowplan.models.kubernetes.pod import PodSpec

Shape: TypeAlias = "Mapping[str, Shape | None]"
"""The fields of an object that are kept; ``None`` for a field that is kept whole."""

_MOUNT: Shape = {"name": None, "readOnly": None}
_MOUNTS: Shape = {"volumeMounts": _MOUNT}
_MOUNTING = ("containers", "initContainers", "ephemeralContainers")
"""Fields of a pod's ``spec`` whose mounts are read, although no field of a model holds them."""

_NAMED: Shape = {"metadata": {"name": None, "namespace": None}}
"""What is kept of an object of a kind that no reader reads."""


class _Header(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str | None = None


def pruned(data: bytes, annotations: Iterable[str] = ()) -> bytes:
    """Return a JSON ``List`` without what no reader reads; it is read as the same snapshot.

    Parameters
    ----------
    annotations
        Keys of further annotations to keep, as for `stowplan.instances.load.load`. The list says which they were.
    """
    keys = frozenset(annotations)
    parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    items = [_pruned_item(item, keys) for item in msgspec.json.decode(parts["items"], type=list[msgspec.Raw])]
    meta = msgspec.json.decode(parts["metadata"], type=dict[str, Any]) if "metadata" in parts else {}
    meta["annotations"] = {**(meta.get("annotations") or {}), PRUNED: ",".join(sorted(keys))}
    return msgspec.json.encode({**parts, "metadata": meta, "items": items})


def _pruned_item(raw: msgspec.Raw, keys: frozenset[str]) -> msgspec.Raw:
    header = msgspec.json.decode(raw, type=_Header)
    group, kind = identify(header.api_version, header.kind)
    groups, _, model = READ.get(kind, ((), "", None))
    shape = _NAMED if model is None or (group is not None and group not in groups) else _shape(model)
    content = msgspec.json.decode(raw)
    kept = {field: content[field] for field in ("apiVersion", "kind") if field in content}
    kept |= _kept(content, shape, keys)
    return msgspec.Raw(msgspec.json.encode(kept))


def _kept(content: Any, shape: Shape, keys: frozenset[str]) -> Any:
    """Return content without the fields that a shape lacks, in lists too."""
    if isinstance(content, list):
        return [_kept(element, shape, keys) for element in content]
    if not isinstance(content, dict):
        return content  # what reads it says what is wrong
    kept = {}
    for field, value in content.items():
        if field not in shape:
            continue
        inner = shape[field]
        if inner is _ANNOTATIONS:
            kept[field] = _kept_annotations(value, keys)
        else:
            kept[field] = value if inner is None else _kept(value, inner, keys)
    return kept


_ANNOTATIONS: Shape = {}
"""Marks the field of which some keys are kept."""


def _kept_annotations(value: Any, keys: frozenset[str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: text for key, text in value.items() if always_kept(key) or key in keys}


_shapes: dict[type[Any], Shape] = {}


def _shape(model: type[Any]) -> Shape:
    """Return the fields of a model as the API names them."""
    if model in _shapes:
        return _shapes[model]
    fields: dict[str, FieldInfo] = model.__pydantic_fields__
    shape: dict[str, Shape | None] = {}
    for name, field in fields.items():
        if not field.exclude:  # otherwise it is worked out when the object is read
            inner = _model_in(field.annotation)
            shape[field.alias or name] = None if inner is None else _shape(inner)
    if model is ObjectMeta:
        shape["annotations"] = _ANNOTATIONS
    if model is PodSpec:
        for field_name in _MOUNTING:
            shape[field_name] = {**(shape.get(field_name) or {}), **_MOUNTS}
    return _shapes.setdefault(model, shape)


def _model_in(annotation: Any) -> type[Any] | None:
    """Return the model that an annotation is of, alone or in a list; ``None`` if it is of none."""
    if isinstance(annotation, type) and is_dataclass(annotation):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)
