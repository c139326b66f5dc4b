"""The far end: an actor that does one job at a time and listens while it does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from stowplan.models.stop import Stop


class Worker:
    """Does jobs; it has two threads, of which the second one listens.

    A worker serves one solve after another. A group is the jobs of one of them, which stop together.
    """

    def __init__(self) -> None:
        self._stops: dict[str, Stop] = {}

    def hello(self) -> int:
        """Return the process id, by which it is known that the worker has begun."""
        return os.getpid()

    def do(self, group: str, function: Callable[..., Any], *args: Any, **keywords: Any) -> tuple[Any, float]:
        """Return ``function(stop, *args, **keywords)``, and the processor time of it in seconds.

        What it needs from the object store has been fetched.
        """
        began = time.process_time()
        found = function(self._stop_of(group), *args, **keywords)
        return found, time.process_time() - began

    def tell_to_stop(self, group: str) -> None:
        """Ask the jobs of a group to come to an end."""
        self._stop_of(group).set()

    def _stop_of(self, group: str) -> Stop:
        return self._stops.setdefault(group, Stop())
