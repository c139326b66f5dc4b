"""Files of an operations platform: machines, instances, and measured samples, without Kubernetes."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from stowplan.models.kubernetes.base import Quantity
from stowplan.models.quantity import NANO

KIND, VERSION = "OperationsPlatform", "stowplan.dev/v1"
PREFIX = "platform.stowplan.dev/"
"""Of the names that resources, labels and annotations of a platform have in a snapshot."""
CLUSTER, ROLE, MASTER = PREFIX + "cluster", PREFIX + "kind", "master"
MASTERS = PREFIX + "masters"
"""Label of every machine: the share of a cluster's masters that those on one machine must stay below."""
NATIVE = ("cpu", "memory")

Share = Annotated[float, Field(gt=0, le=1)]

_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,50}[A-Za-z0-9])?", re.ASCII)
_TAKEN = ("cpu", "memory", "network", "maxmemory")


def resource(name: str) -> str:
    """Return the name that a resource of a machine has in a snapshot; one with a domain keeps its own."""
    return name if name in NATIVE or "/" in name else PREFIX + name


def peak(name: str) -> str:
    """Return the name that yesterday's peak of a resource has in a snapshot."""
    return PREFIX + "peak-" + name.replace("/", ".")


def exact(share: float) -> Fraction:
    """Return a share as it is written: 0.9 is nine tenths, which no floating-point number is."""
    return Fraction(str(share))


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, validate_by_name=True)


def _counted(resources: dict[str, int]) -> dict[str, int]:
    """Refuse further resources that a scheduler does not count by name, or of which amounts are not whole.

    What is left of an amount that was rounded is not known.
    """
    for name, nanos in resources.items():
        if _NAME.fullmatch(name) is None or name.startswith("requests.") or "kubernetes.io/" in name:
            raise ValueError(f"{name!r} is no name of a resource, such as gpu or example.com/gpu")
        if name in _TAKEN or name.startswith("peak-"):
            raise ValueError(f"{name!r} is the name of something else; give the resource another one")
        if nanos % NANO:
            raise ValueError(f"{name} is {nanos / NANO:g}, must be a whole number")
    return resources


Pieces = Annotated[dict[str, Quantity], AfterValidator(_counted)]


def _seconds(value: Any) -> Any:
    """Read ``30m`` or ``1h`` as seconds."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    if isinstance(value, str) and value[-1:] in units and value[:-1].isdecimal():
        return int(value[:-1]) * units[value[-1]]
    return value


class Limits(_Part):
    """Thresholds, each with the instance in place.

    Parameters
    ----------
    usage
        Share of the total of a resource that may be used, at most.
    maxmemory
        Share of memory that the sum of ``maxmemory`` must stay below.
    masters
        Share of the masters of a cluster that those on one machine must stay below; one is always allowed.
    instances
        Number of instances on a machine, at most.
    peak
        Share of the total of a resource that yesterday's peak and what was placed since may come to, at most.
    """

    usage: dict[str, Share] = {}
    maxmemory: Share | None = None
    masters: Share = 1.0
    instances: Annotated[int, Field(ge=0)] | None = None
    peak: dict[str, Share] = {}


class Machine(_Part):
    """A machine: totals by resource, what is measured to be used now, and yesterday's peak."""

    name: Annotated[str, Field(min_length=1)]
    cpu: Quantity
    memory: Quantity
    network: Quantity | None = None
    resources: Pieces = {}
    used: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}

    @property
    def totals(self) -> dict[str, int]:
        """Totals in nanos by resource."""
        network = {"network": self.network} if self.network is not None else {}
        return {"cpu": self.cpu, "memory": self.memory, **network, **self.resources}

    @model_validator(mode="after")
    def _measures_what_it_has(self) -> Machine:
        if unknown := sorted({*self.used, *self.peak} - set(self.totals)):
            raise ValueError(f"measures {unknown[0]}, of which it has no total")
        return self


class Instance(_Part):
    """An instance; what it uses is measured or, for a new one, estimated: one core, and its ``maxmemory``."""

    name: Annotated[str, Field(min_length=1)]
    cluster: Annotated[str, Field(min_length=1)]
    kind: Literal["master", "replica", "proxy"]
    machine: str | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    maxmemory: Quantity | None = None
    cpu: Quantity | None = None
    memory: Quantity | None = None
    network: Quantity | None = None
    resources: Pieces = {}

    @model_validator(mode="after")
    def _has_memory(self) -> Instance:
        if self.memory is None and self.maxmemory is None:
            raise ValueError("needs memory, or maxmemory to estimate it by")
        return self

    @property
    def uses(self) -> dict[str, int]:
        """What it takes of each resource, in nanos."""
        memory = self.memory if self.memory is not None else self.maxmemory or 0
        network = {"network": self.network} if self.network is not None else {}
        return {"cpu": 10**9 if self.cpu is None else self.cpu, "memory": memory, **network, **self.resources}


class Sample(_Part):
    """Utilization of a machine at one time, in seconds since 1970, from 0 to 1 by resource."""

    time: float
    machine: str
    values: dict[str, Annotated[float, Field(ge=0)]]


class Platform(_Part):
    """A platform file.

    Parameters
    ----------
    shares
        Share of each resource that can be allocated at all, 1 if not said; the article takes 0.9 of memory.
    window
        Seconds before the last sample in which samples count.
    """

    kind: Literal["OperationsPlatform"] = "OperationsPlatform"
    api_version: Literal["stowplan.dev/v1"] = "stowplan.dev/v1"
    shares: dict[str, Share] = {"memory": 0.9}
    limits: Limits = Limits()
    window: Annotated[float, BeforeValidator(_seconds), Field(gt=0)] = 3600.0
    machines: tuple[Machine, ...] = ()
    instances: tuple[Instance, ...] = ()
    samples: tuple[Sample, ...] = ()
