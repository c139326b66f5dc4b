"""How Kubernetes objects are declared here: frozen, slotted, camelCase on the wire, forgiving where the API is.

The API server prints ``null`` where its schema says array or map, and adds fields every release. So every
collection accepts ``null``, and unknown fields pass. What is read is kept exactly; what is not read is dropped.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, dataclass_transform

from pydantic import AfterValidator, ConfigDict, PlainSerializer, PlainValidator
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass

from stowplan.models.interning import FrozenMap, freeze, intern
from stowplan.models.quantity import NANO, Nanos, format_quantity, parse_quantity

T = TypeVar("T")

CONFIG = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="ignore")


@dataclass_transform(frozen_default=True)
def kube(cls: type[T]) -> type[T]:
    """Declare a Kubernetes object or a part of one."""
    declared: type[T] = dataclass(frozen=True, slots=True, config=CONFIG)(cls)  # type: ignore[assignment]
    return declared


LARGEST_AMOUNT = 2**53
"""Whole units of a resource that one object may name: what a float, in which upstream scores, holds exactly."""


def _amount(nanos: Nanos) -> Nanos:
    if nanos < 0:
        raise ValueError("must not be negative")
    if nanos > LARGEST_AMOUNT * NANO:
        raise ValueError(f"is too large; the maximum is {LARGEST_AMOUNT} units")
    return nanos


def _shared(items: tuple[Any, ...] | None) -> tuple[Any, ...]:
    return intern(items or ())


if TYPE_CHECKING:
    Many = tuple[T, ...]
    Name = str
    Names = tuple[str, ...]
    StringMap = FrozenMap[str]
    Quantity = int
    ResourceList = FrozenMap[int]
    StorageList = FrozenMap[int]
else:

    class Many(Generic[T]):
        """A list on the wire, a tuple here; ``null`` is empty; equal lists are one object."""

        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[tuple[item, ...] | None, AfterValidator(_shared)]

    Name = Annotated[str, AfterValidator(sys.intern)]
    Names = Many[Name]
    StringMap = Annotated[dict[Name, Name] | None, AfterValidator(freeze)]
    Quantity = Annotated[int, PlainValidator(parse_quantity), PlainSerializer(format_quantity)]
    ResourceList = Annotated[dict[Name, Annotated[Quantity, AfterValidator(_amount)]] | None, AfterValidator(freeze)]
    StorageList = Annotated[dict[Name, Quantity] | None, AfterValidator(freeze)]

EMPTY: FrozenMap[Any] = FrozenMap()
