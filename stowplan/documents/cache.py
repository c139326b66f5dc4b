"""What a script of events does to the scheduler's cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from stowplan.models.document import API_VERSION, Document
from stowplan.plugins_compat.framework.cache_script import CacheStep


class CacheStepDocument(Document):
    """An event, what came of it, and the pods and charges of each node after it, in scheduler units."""

    at: float
    event: str
    pod: str | None
    node: str | None
    said: str
    error: bool
    pods: dict[str, tuple[str, ...]]
    requested: dict[str, dict[str, int]]


class CacheDocument(Document):
    """The scheduler's cache, event by event."""

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["CacheEvents"] = "CacheEvents"
    release: str
    steps: tuple[CacheStepDocument, ...]


def cache_document(release: str, steps: Sequence[CacheStep]) -> CacheDocument:
    """Describe the steps of a script."""
    return CacheDocument(
        release=release,
        steps=tuple(
            CacheStepDocument(
                at=step.event.at,
                event=step.event.event,
                pod=step.event.pod or None,
                node=step.event.node or None,
                said=step.said,
                error=step.error,
                pods={name: tuple(pods) for name, pods in step.pods.items()},
                requested={name: dict(amounts) for name, amounts in step.requested.items()},
            )
            for step in steps
        ),
    )
