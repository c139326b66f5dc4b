"""Object metadata: names, labels, owners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from stowplan.models.interning import FrozenMap, freeze
from stowplan.models.kubernetes.base import EMPTY, Many, Name, StringMap, kube

# Annotations hold most of the bytes of a cluster dump and almost none of its meaning for placement.
READ_ANNOTATIONS = (
    "alibabacloud.com/gpu-card-model",
    "alibabacloud.com/gpu-count",
    "alibabacloud.com/gpu-milli",
    "batch.kubernetes.io/job-index-failure-count",
    "cluster-autoscaler.kubernetes.io/",
    "controller.kubernetes.io/pod-deletion-cost",
    "descheduler.alpha.kubernetes.io/",
    "karpenter.sh/",
    "kubernetes.io/config.mirror",
    "kubernetes.io/config.source",
    "pv.kubernetes.io/",
    "scheduler.alpha.kubernetes.io/preferAvoidPods",
    "scheduling.koordinator.sh/",
    "storage.alpha.kubernetes.io/migrated-plugins",
    "stowplan.io/pinned-by",
    "volume.beta.kubernetes.io/storage-class",
    "volume.kubernetes.io/selected-node",
)


ISOLATION = "isol"
"""Annotations with this in their key are kept too: they say which CPUs are isolated, and for which pods."""

_asked: ContextVar[frozenset[str]] = ContextVar("annotations to keep", default=frozenset())


@contextmanager
def keeping(keys: Iterable[str]) -> Iterator[None]:
    """Keep annotations of these keys too while objects are read inside the block."""
    token = _asked.set(frozenset(keys))
    try:
        yield
    finally:
        _asked.reset(token)


def always_kept(key: str) -> bool:
    """Whether annotations of a key are kept without being asked for."""
    return key.startswith(READ_ANNOTATIONS) or ISOLATION in key.lower()


def _read_only(annotations: dict[str, str] | None) -> FrozenMap[str]:
    asked = _asked.get()
    return freeze({key: value for key, value in (annotations or {}).items() if always_kept(key) or key in asked})


if TYPE_CHECKING:
    Annotations = FrozenMap[str]
else:
    Annotations = Annotated[dict[str, str] | None, AfterValidator(_read_only)]


TEMPLATE_LABELS = ("pod-template-hash", "controller-revision-hash")
"""Labels that say from which template a controller made a pod."""


@kube
class OwnerReference:
    """Who owns an object; at most one owner is its controller."""

    kind: Name
    name: Name
    uid: Name = ""
    api_version: Name = ""
    controller: bool | None = None


@kube
class ObjectMeta:
    """The part of ``metadata`` that placement reads."""

    name: str
    namespace: Name = ""
    uid: str = ""
    generate_name: Name = ""
    labels: StringMap = EMPTY
    annotations: Annotations = EMPTY
    owner_references: Many[OwnerReference] = ()
    generation: int | None = None
    creation_timestamp: Name | None = None
    deletion_timestamp: str | None = None

    @property
    def template_hash(self) -> str:
        """What tells the template a pod was made from; empty if nothing does."""
        return next((self.labels[label] for label in TEMPLATE_LABELS if label in self.labels), "")

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)
