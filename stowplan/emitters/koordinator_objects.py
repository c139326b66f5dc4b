"""Koordinator's two kinds, ``scheduling.koordinator.sh/v1alpha1``: the fields that we write; nothing else passes."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

API: Literal["scheduling.koordinator.sh/v1alpha1"] = "scheduling.koordinator.sh/v1alpha1"

Duration = Annotated[str, Field(pattern=r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$")]
Label = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]


class _Strict(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid", strict=True
    )


class ClusterMeta(_Strict):
    """Metadata of an object that is in no namespace."""

    name: Name
    labels: dict[str, Label] = Field(default_factory=dict)
    annotations: dict[str, str] | None = None


class ObjectReference(_Strict):
    """An object by name."""

    api_version: str
    kind: str
    namespace: str | None = None
    name: Name
    uid: str | None = None


class ControllerReference(_Strict):
    """The controller whose pods may use a reservation, identified by its uid."""

    api_version: str
    kind: str
    name: Name
    uid: Annotated[str, Field(min_length=1)]
    controller: Literal[True] = True
    namespace: str


class ReservationOwner(_Strict):
    """Pods that may use a reservation: exactly one of the fields, though the API accepts several."""

    object: ObjectReference | None = None
    controller: ControllerReference | None = None

    @model_validator(mode="after")
    def _one(self) -> ReservationOwner:
        if (self.object is None) == (self.controller is None):
            raise ValueError("must have object or controller, not both")
        return self


class PodTemplate(_Strict):
    """A pod template; its spec is Kubernetes' own and is checked as such."""

    metadata: dict[str, Any]
    spec: dict[str, Any]

    @model_validator(mode="after")
    def _placed(self) -> PodTemplate:
        if not self.spec.get("nodeName"):
            raise ValueError("spec.nodeName is missing: nothing says where to reserve")
        if not self.spec.get("containers"):
            raise ValueError("spec.containers is missing: nothing says how much to reserve")
        return self


class ReservationSpec(_Strict):
    """Pod template, owners, and lifetime of a reservation."""

    template: PodTemplate
    owners: Annotated[list[ReservationOwner], Field(min_length=1)]
    ttl: Duration
    allocate_once: Literal[True] = True
    allocate_policy: Literal["Aligned", "Restricted"] = "Aligned"


class Reservation(_Strict):
    """Resources of a node, reserved for the pods of an owner."""

    api_version: Literal["scheduling.koordinator.sh/v1alpha1"] = API
    kind: Literal["Reservation"] = "Reservation"
    metadata: ClusterMeta
    spec: ReservationSpec


class ReservationOptions(_Strict):
    """The reservation that a migration waits for."""

    reservation_ref: ObjectReference


class Preconditions(_Strict):
    """What must hold when the pod is deleted."""

    uid: Annotated[str, Field(min_length=1)]


class DeleteOptions(_Strict):
    """Options of the deletion of the pod."""

    preconditions: Preconditions


class MigrationSpec(_Strict):
    """The pod to migrate, and how."""

    ttl: Duration
    mode: Literal["ReservationFirst", "EvictDirectly"]
    pod_ref: ObjectReference
    reservation_options: ReservationOptions | None = None
    delete_options: DeleteOptions

    @model_validator(mode="after")
    def _reserved(self) -> MigrationSpec:
        if (self.mode == "ReservationFirst") == (self.reservation_options is None):
            raise ValueError("reservationOptions are for mode ReservationFirst, and needed there")
        return self


class PodMigrationJob(_Strict):
    """The migration of one pod: reservation first, then eviction."""

    api_version: Literal["scheduling.koordinator.sh/v1alpha1"] = API
    kind: Literal["PodMigrationJob"] = "PodMigrationJob"
    metadata: ClusterMeta
    spec: MigrationSpec


_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(duration: str) -> float:
    """Return a duration in seconds."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))


def check_pair(reservation: Reservation, job: PodMigrationJob) -> None:
    """Check that the reservation outlives the migration, and that the migration waits for it.

    Raises
    ------
    ValueError
        If not.
    """
    if seconds(reservation.spec.ttl) <= seconds(job.spec.ttl):
        raise ValueError(f"the reservation's ttl {reservation.spec.ttl} must be more than the job's {job.spec.ttl}")
    options = job.spec.reservation_options
    if options is None or options.reservation_ref.name != reservation.metadata.name:
        raise ValueError("the job waits for another reservation")
    if any(owner.controller is None for owner in reservation.spec.owners):
        raise ValueError("an owner that is an object means that no pod is evicted")
