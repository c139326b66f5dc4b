"""ArrivalOrder: pods are tried in the order in which they arrive."""

from __future__ import annotations

from typing import Any

from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.plugin import Plugin


class ArrivalOrder(Plugin):
    """Keeps the order of arrival; release 1.5 knows no priorities of pods."""

    name = "ArrivalOrder"
    not_upstream = "it replaces the first-in, first-out queue of release 1.5"

    def queue_key(self, pod: Pod) -> tuple[Any, ...]:
        """Sort by nothing; the queue itself is stable."""
        return ()
