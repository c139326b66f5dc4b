"""What an emitter takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.models.snapshot import Snapshot

PREFIX = "stowplan.io/"
"""Begins every label, annotation and scheduling gate that we put on an object."""
PLAN_LABEL, WAVE_LABEL = f"{PREFIX}plan", f"{PREFIX}wave"


@dataclass(frozen=True)
class File:
    """A file to write.

    Parameters
    ----------
    name
        Inside the folder that the user names.
    executable
        Whether it is a program.
    """

    name: str
    content: str
    executable: bool = False


@dataclass(frozen=True)
class Emission:
    """What an emitter gives: files, and what the user has to know about them, a line each."""

    files: Sequence[File]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class EmitOptions:
    """What a user can choose, beside the executor. An emitter reads what concerns it.

    Parameters
    ----------
    snapshot
        The cluster the plan was made for, where pods are needed as a whole.
    image
        Container image of the descheduler.
    namespace
        Namespace of the descheduler's Jobs.
    url
        Where the scheduler finds ``stowplan serve``.
    config
        Path of a KubeSchedulerConfiguration that the extender is added to.
    """

    snapshot: Snapshot | None = None
    image: str = "registry.k8s.io/descheduler/descheduler:v0.36.0"
    namespace: str = "kube-system"
    url: str = "http://127.0.0.1:8888/v1"
    config: str | None = None
