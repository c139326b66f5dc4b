"""What each node costs in an hour: read from a file of prices, in one of several forms.

A file holds YAML or JSON documents, of which each may be

- our own list: ``prices``, of entries with ``price`` and the ``labels`` of the nodes that it is for;
- OpenCost's custom prices: ``CPU`` and ``RAM`` (a core and a GiB for an hour), ``GPU``, and the same for spot nodes;
- Karpenter's ``NodeOverlay``: ``price`` or ``priceAdjustment`` for the nodes that meet its ``requirements``;

or, if its name ends in ``.csv``, rows of OpenCost's CSV prices. A list or OpenCost gives a node its price, and overlays
change it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from stowplan.instances.documents import Document, read_documents
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Node
from stowplan.models.kubernetes.selectors import NodeSelectorRequirement
from stowplan.models.quantity import NANO
from stowplan.models.validation import refusal
from stowplan.models.words import plural
from stowplan.models.yaml_input import parse_yaml
from stowplan.plugins_compat.requests import CPU, MEMORY

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
GPU = "nvidia.com/gpu"
GIB = 2**30
LABEL_FIELD = "metadata.labels."

Price = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
"""In an hour, in any currency."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Listed(_Model):
    price: Price
    labels: dict[str, str] = {}
    instanceType: str | None = None

    def matches(self, node: Node) -> bool:
        wanted = self.labels | ({INSTANCE_TYPE: self.instanceType} if self.instanceType is not None else {})
        return all(node.labels.get(key) == value for key, value in wanted.items())


class _List(_Model):
    prices: Annotated[tuple[_Listed, ...], Field(min_length=1)]

    def price(self, node: Node) -> float | None:
        return next((entry.price for entry in self.prices if entry.matches(node)), None)


class _OpenCost(BaseModel):
    """OpenCost's custom prices; what is priced beside nodes is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    CPU: Price
    RAM: Price
    GPU: Price = 0.0
    spotCPU: Price | None = None
    spotRAM: Price | None = None
    spotGPU: Price | None = None
    spotLabel: str = ""
    spotLabelValue: str = ""

    def price(self, node: Node) -> float | None:
        spot = bool(self.spotLabel) and node.labels.get(self.spotLabel) == self.spotLabelValue
        prices = (
            (CPU, self.spotCPU if spot and self.spotCPU is not None else self.CPU, 1),
            (MEMORY, self.spotRAM if spot and self.spotRAM is not None else self.RAM, GIB),
            (GPU, self.spotGPU if spot and self.spotGPU is not None else self.GPU, 1),
        )
        amounts = node.capacity or node.allocatable
        if CPU not in amounts or MEMORY not in amounts:
            return None
        return sum(price * amounts.get(name, 0) / NANO / unit for name, price, unit in prices)


class _OverlaySpec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    requirements: tuple[NodeSelectorRequirement, ...] = ()
    price: str | None = None
    priceAdjustment: str | None = None
    weight: int = 0

    @model_validator(mode="after")
    def _is_one(self) -> _OverlaySpec:
        if self.price is not None and self.priceAdjustment is not None:
            raise ValueError("has both price and priceAdjustment; must have one of them")
        for requirement in self.requirements:
            if not requirement.valid_expression:
                raise ValueError(f"has a requirement of {requirement.key} that no node can meet")
        self.applied(1.0)
        return self

    def applied(self, base: float) -> float:
        """Return the price once this overlay is applied."""
        if self.price is not None:
            return _number(self.price, "price")
        if self.priceAdjustment is None:
            return base
        percent = self.priceAdjustment.endswith("%")
        change = _number(self.priceAdjustment.removesuffix("%"), "priceAdjustment")
        return max(0.0, base * (1 + change / 100) if percent else base + change)


class _Overlay(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Literal["NodeOverlay"]
    metadata: dict[str, Any] = {}
    spec: _OverlaySpec

    def matches(self, node: Node) -> bool:
        """Whether a node meets all requirements."""
        return all(requirement.matches(node.labels.get(requirement.key)) for requirement in self.spec.requirements)


@dataclass(slots=True)
class _Prices:
    bases: list[_List | _OpenCost] = field(default_factory=list)
    overlays: list[_Overlay] = field(default_factory=list)
    by_node: list[tuple[str, str, float]] = field(default_factory=list)

    def price(self, node: Node) -> float | None:
        base = next((price for wanted, value, price in self.by_node if _told(node, wanted) == value), None)
        if base is None:
            base = next((price for one in self.bases if (price := one.price(node)) is not None), None)
        fitting = [
            one.spec for one in self.overlays if one.matches(node) and (one.spec.price or one.spec.priceAdjustment)
        ]
        if not fitting:
            return base
        chosen = max(fitting, key=lambda spec: spec.weight)
        return None if base is None and chosen.price is None else chosen.applied(base or 0.0)


def node_prices(path: str, nodes: Sequence[Node]) -> Mapping[str, float]:
    """Return what each node costs in an hour, by name.

    Parameters
    ----------
    path
        A file, ``-`` or a folder of the forms above.

    Raises
    ------
    InputError
        If the file cannot be used, or gives some node no price: absent is not free.
    """
    prices = _Prices()
    for document in read_documents([path]):
        _read(document, prices)
    found = {node.name: prices.price(node) for node in nodes}
    missing = [name for name, price in found.items() if price is None]
    if missing:
        more = f", and {plural(len(missing) - 1, 'more node')}" if len(missing) > 1 else ""
        raise InputError(f"has no price for node {missing[0]}{more}; every node needs one", file=path)
    return {name: price for name, price in found.items() if price is not None}


def _read(document: Document, prices: _Prices) -> None:
    name = document.name
    try:
        if name.removesuffix(".gz").endswith(".csv"):
            prices.by_node += _rows(document)
            return
        for content in parse_yaml(document.data, name):
            for one in content.get("items", [content]) if isinstance(content, dict) else [content]:
                _add(one, prices)
    except ValidationError as error:
        raise refusal(error, name) from None
    except InputError as error:
        raise error.in_file(name) from None


def _add(content: Any, prices: _Prices) -> None:
    if isinstance(content, dict) and content.get("kind") == "NodeOverlay":
        prices.overlays.append(TypeAdapter(_Overlay).validate_python(content))
    elif isinstance(content, dict) and "CPU" in content:
        prices.bases.append(_OpenCost.model_validate(content))
    elif isinstance(content, dict) and "prices" in content:
        prices.bases.append(_List.model_validate(content))
    else:
        raise InputError("is no list of prices, no custom prices of OpenCost, and no NodeOverlay")


def _rows(document: Document) -> Iterator[tuple[str, str, float]]:
    """Yield field, value and price of each node in OpenCost's CSV."""
    reader = csv.DictReader(io.StringIO(document.data.decode("utf-8", "replace")))
    needed = {"InstanceID", "AssetClass", "InstanceIDField", "MarketPriceHourly"}
    if lacking := needed - set(reader.fieldnames or ()):
        raise InputError(f"has no column {', '.join(sorted(lacking))}")
    for number, row in enumerate(reader, 2):
        if row["AssetClass"] != "node":
            continue
        wanted = row["InstanceIDField"] or "metadata.name"
        if wanted != "metadata.name" and not wanted.startswith(LABEL_FIELD):
            raise InputError(
                f"is {wanted!r}; must be metadata.name or {LABEL_FIELD}KEY", field=f"line {number}: InstanceIDField"
            )
        yield wanted, row["InstanceID"], _number(row["MarketPriceHourly"], f"line {number}: MarketPriceHourly")


def _told(node: Node, wanted: str) -> str | None:
    return node.name if wanted == "metadata.name" else node.labels.get(wanted.removeprefix(LABEL_FIELD))


def _number(word: str, name: str) -> float:
    try:
        number = float(word)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"is {word!r}; must be a number", field=name)
    return number
