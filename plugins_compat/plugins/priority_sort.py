"""PrioritySort: which pod is tried first."""

from __future__ import annotations

from typing import Any

from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.plugin import Plugin


class PrioritySort(Plugin):
    """Higher priority first; equal priorities in the order they entered the queue."""

    name = "PrioritySort"

    def queue_key(self, pod: Pod) -> tuple[Any, ...]:
        """Sort by falling priority; the queue itself is stable."""
        return (-pod.priority,)
