"""Recommended requests, as tools write them: krr, VerticalPodAutoscalers, and Goldilocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError

from stowplan.instances.documents import read_documents
from stowplan.models.errors import InputError
from stowplan.models.quantity import Nanos, parse_quantity
from stowplan.models.validation import refusal, without_nulls
from stowplan.models.yaml_input import parse_yaml
from stowplan.plugins_compat.requests import CPU

UNKNOWN = "?"
"""What krr writes where it recommends nothing."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What one container of a workload should request.

    Parameters
    ----------
    kind
        Of the workload, or empty if the tool does not say.
    requests
        In nanos, by resource.
    """

    namespace: str
    kind: str
    workload: str
    container: str
    requests: Mapping[str, int]


def read_recommendations(path: str) -> Sequence[Recommendation]:
    """Read the recommendations of a file, whose form is recognized by content.

    Raises
    ------
    InputError
        If the file cannot be read, or recommends nothing.
    """
    found: list[Recommendation] = []
    for document in read_documents([path]):
        name = document.name
        try:
            for content in parse_yaml(document.data, name):
                found += _read(content)
        except ValidationError as error:
            raise refusal(error, name) from None
        except InputError as error:
            raise error.in_file(name) from None
    if not found:
        raise InputError("recommends no requests", file=path)
    return found


def _read(content: Any) -> Iterator[Recommendation]:
    if isinstance(content, dict) and "scans" in content:
        yield from _Krr.model_validate(content).recommendations()
    elif isinstance(content, dict) and isinstance(content.get("Namespaces"), dict):
        yield from _Goldilocks.model_validate(content).recommendations()
    elif isinstance(content, dict) and isinstance(content.get("items"), list):
        for item in content["items"]:
            yield from _read_object(item)
    else:
        yield from _read_object(content)


def _read_object(item: Any) -> Iterator[Recommendation]:
    """Yield what a VerticalPodAutoscaler recommends; other objects of a list recommend nothing."""
    kind = item.get("kind") if isinstance(item, dict) else None
    if kind == "VerticalPodAutoscaler":
        yield from _Autoscaler.model_validate(item).recommendations()
    elif not isinstance(kind, str):
        raise InputError("is neither of krr (scans), nor VerticalPodAutoscalers, nor of Goldilocks (Namespaces)")


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def _quantity(value: Any) -> Nanos:
    nanos = parse_quantity(value)
    if nanos < 0:
        raise ValueError(f"is {value}; must not be negative")
    return nanos


_Quantities = Annotated[dict[str, Annotated[int, PlainValidator(_quantity)]], BeforeValidator(without_nulls)]


class _Value(_Read):
    value: float | str | None = None


class _Requests(_Read):
    requests: Annotated[dict[str, _Value], BeforeValidator(without_nulls)] = {}


class _Scanned(_Read):
    namespace: str
    kind: str
    name: str
    container: str


class _Scan(_Read):
    object: _Scanned
    recommended: _Requests


class _Krr(_Read):
    """What ``krr simple -f json`` prints: cores and bytes as numbers."""

    scans: tuple[_Scan, ...]

    def recommendations(self) -> Iterator[Recommendation]:
        for scan in self.scans:
            one = scan.object
            numbers = {
                resource: value.value
                for resource, value in scan.recommended.requests.items()
                if isinstance(value.value, float) and math.isfinite(value.value)
            }
            if any(number < 0 for number in numbers.values()):
                raise InputError("recommends a negative request", obj=f"{one.kind} {one.namespace}/{one.name}")
            requests = {
                resource: parse_quantity(f"{math.ceil(number * 1000)}m" if resource == CPU else str(math.ceil(number)))
                for resource, number in numbers.items()
            }
            yield Recommendation(one.namespace, one.kind, one.name, one.container, requests)


class _Meta(_Read):
    name: str
    namespace: str = "default"


class _Target(_Read):
    kind: str
    name: str


class _AutoscalerSpec(_Read):
    targetRef: _Target


class _Container(_Read):
    containerName: str = ""
    target: _Quantities = Field(default_factory=dict)


class _Recommended(_Read):
    containerRecommendations: tuple[_Container, ...] = ()


class _AutoscalerStatus(_Read):
    recommendation: _Recommended | None = None


class _Autoscaler(_Read):
    metadata: _Meta
    spec: _AutoscalerSpec
    status: _AutoscalerStatus = _AutoscalerStatus()

    def recommendations(self) -> Iterator[Recommendation]:
        target = self.spec.targetRef
        for one in self.status.recommendation.containerRecommendations if self.status.recommendation else ():
            yield Recommendation(self.metadata.namespace, target.kind, target.name, one.containerName, one.target)


class _Workload(_Read):
    controllerName: str = ""
    controllerType: str = ""
    deploymentName: str = ""
    containers: dict[str, _Container] = {}


class _Namespace(_Read):
    workloads: dict[str, _Workload] = {}
    deployments: dict[str, _Workload] = {}


class _Goldilocks(_Read):
    """What ``goldilocks summary`` prints; older releases know Deployments alone."""

    Namespaces: dict[str, _Namespace]

    def recommendations(self) -> Iterator[Recommendation]:
        for namespace, held in self.Namespaces.items():
            for key, workload in (*held.workloads.items(), *held.deployments.items()):
                kind = workload.controllerType or ("Deployment" if key in held.deployments else "")
                name = workload.controllerName or workload.deploymentName or key
                for container, one in workload.containers.items():
                    yield Recommendation(namespace, kind, name, container, one.target)
