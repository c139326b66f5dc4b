"""Room that a cluster's own objects ask for: CapacityBuffers and HorizontalPodAutoscalers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError

from stowplan.instances.documents import read_documents
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.quantity import parse_quantity
from stowplan.models.snapshot import Snapshot
from stowplan.models.validation import refusal, without_nulls
from stowplan.models.yaml_input import parse_yaml
from stowplan.plugins_compat.release import K36
from stowplan.plugins_compat.requests import requests, units
from stowplan.scenarios.headroom import Wish, pods_of, templated

BUFFER, SCALER, TEMPLATE = "CapacityBuffer", "HorizontalPodAutoscaler", "PodTemplate"

_Count = Annotated[int, Field(ge=0)]


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Meta(_Read):
    name: str
    namespace: str = "default"


class _Reference(_Read):
    name: str
    kind: str = ""


class _BufferSpec(_Read):
    podTemplateRef: _Reference | None = None
    scalableRef: _Reference | None = None
    replicas: _Count | None = None
    percentage: _Count | None = None
    limits: Annotated[
        dict[str, Annotated[int, PlainValidator(parse_quantity)]] | None, BeforeValidator(without_nulls)
    ] = None


class _BufferStatus(_Read):
    replicas: _Count | None = None


class _Buffer(_Read):
    metadata: _Meta
    spec: _BufferSpec
    status: _BufferStatus | None = None


class _ScalerSpec(_Read):
    scaleTargetRef: _Reference
    maxReplicas: Annotated[int, Field(ge=1)]


class _Scaler(_Read):
    metadata: _Meta
    spec: _ScalerSpec


def read_wishes(path: str, snapshot: Snapshot) -> Sequence[Wish]:
    """Read what room the objects of a file ask for.

    A CapacityBuffer asks for as many chunks as its status says, or as its spec comes to: the larger of ``replicas`` and
    ``percentage`` of the pods that the workload has, as the cluster autoscaler reads them, and no more than ``limits``
    allow. An autoscaler asks for the pods that are missing to ``maxReplicas``.

    Raises
    ------
    InputError
        If the file cannot be read or asks for nothing, or a workload has no pod to copy.
    """
    items: list[Any] = []
    for document in read_documents([path]):
        for content in parse_yaml(document.data, document.name):
            is_list = isinstance(content, dict) and isinstance(content.get("items"), list)
            items += content["items"] if is_list else [content]
    objects = [item for item in items if isinstance(item, dict)]
    templates = {_key(item): item for item in objects if item.get("kind") == TEMPLATE}
    found: list[Wish] = []
    asked = False
    for item in objects:
        try:
            if item.get("kind") == BUFFER:
                asked = True
                found += _of_buffer(_Buffer.model_validate(item), snapshot, templates)
            elif item.get("kind") == SCALER:
                asked = True
                found += _of_scaler(_Scaler.model_validate(item), snapshot)
        except ValidationError as error:
            wrong = refusal(error, path)
            raise InputError(wrong.problem, path, f"{item['kind']} {'/'.join(_key(item))}", wrong.field) from None
        except InputError as error:
            raise error.in_file(path) from None
    if not asked:
        raise InputError(f"contains no {BUFFER} and no {SCALER}", file=path)
    return found


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    meta = item.get("metadata") or {}
    return meta.get("namespace") or "default", meta.get("name") or ""


def _of_scaler(scaler: _Scaler, snapshot: Snapshot) -> Iterator[Wish]:
    namespace, target = scaler.metadata.namespace, scaler.spec.scaleTargetRef
    pods = pods_of(snapshot, namespace, target.name)
    if (missing := scaler.spec.maxReplicas - len(pods)) > 0:
        yield Wish(target.name, pods[0], missing)


def _of_buffer(
    buffer: _Buffer, snapshot: Snapshot, templates: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Iterator[Wish]:
    spec, namespace, name = buffer.spec, buffer.metadata.namespace, buffer.metadata.name
    obj = f"{BUFFER} {namespace}/{name}"
    if (spec.podTemplateRef is None) == (spec.scalableRef is None):
        raise InputError("must have one of podTemplateRef and scalableRef", obj=obj, field="spec")
    if spec.scalableRef is not None:
        pods = pods_of(snapshot, namespace, spec.scalableRef.name)
        model, replicas = pods[0], len(pods)
    else:
        assert spec.podTemplateRef is not None
        key = (namespace, spec.podTemplateRef.name)
        template = templates.get(key, {}).get("template")
        if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
            raise InputError(
                f"names {TEMPLATE} {key[1]}, which the file does not hold", obj=obj, field="spec.podTemplateRef"
            )
        model, replicas = templated(namespace, name, template), 0
    if count := _chunks(buffer, model, replicas, obj):
        yield Wish(name, model, count)


def _chunks(buffer: _Buffer, model: Pod, replicas: int, obj: str) -> int:
    spec, known = buffer.spec, buffer.status.replicas if buffer.status else None
    if known is not None:
        return known
    wanted = [] if spec.replicas is None else [spec.replicas]
    if spec.percentage is not None and spec.scalableRef is not None:
        wanted.append(max(1, math.ceil(spec.percentage * replicas / 100)) if spec.percentage else 0)
    most = [_within(spec.limits, model)] if spec.limits is not None else []
    bounds = [one for one in most if one is not None]
    if not wanted and not bounds:
        raise InputError("must have replicas, percentage, or limits of what its pods request", obj=obj, field="spec")
    return min([max(wanted), *bounds] if wanted else bounds)


def _within(limits: Mapping[str, int], model: Pod) -> int | None:
    """Return how many pods stay within limits, given in nanos; ``None`` if the pods request nothing of those."""
    asked = requests(model, K36)
    return min((units(name, limit) // asked[name] for name, limit in limits.items() if asked.get(name)), default=None)
