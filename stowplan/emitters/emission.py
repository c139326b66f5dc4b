"""Arguments and results of emitters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.models.snapshot import Snapshot

PREFIX = "stowplan.io/"
"""Prefix of every label, annotation, and scheduling gate that we add to an object."""
PLAN_LABEL, WAVE_LABEL = f"{PREFIX}plan", f"{PREFIX}wave"


@dataclass(frozen=True)
class File:
    """A file to write.

    Parameters
    ----------
    name
        Path inside the folder that the user gives.
    executable
        Whether it is a script.
    """

    name: str
    content: str
    executable: bool = False


@dataclass(frozen=True)
class Emission:
    """Result of an emitter: files, and notes for the user, one line each."""

    files: Sequence[File]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class EmitOptions:
    """Options of emitters; each reads those that concern it.

    Parameters
    ----------
    snapshot
        The cluster that the plan was made for, if whole pods are needed.
    image
        Container image of the descheduler.
    namespace
        Namespace of the descheduler's Jobs.
    url
        URL of ``stowplan serve`` for the scheduler.
    config
        Path of a KubeSchedulerConfiguration that the extender is added to.
    kubeconfig
        Path of the scheduler's kubeconfig, where the scheduler runs.
    """

    snapshot: Snapshot | None = None
    image: str = "registry.k8s.io/descheduler/descheduler:v0.36.0"
    namespace: str = "kube-system"
    url: str = "http://127.0.0.1:8888/v1"
    config: str | None = None
    kubeconfig: str | None = None
