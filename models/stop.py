"""A request to stop, which any thread or signal handler can make."""

from __future__ import annotations

import threading
import time


class Stop(threading.Event):
    """Set from anywhere, a signal handler included, to ask for the best answer so far."""


class Either(Stop):
    """A stop signal that another one sets too."""

    def __init__(self, other: Stop) -> None:
        super().__init__()
        self.other = other

    def is_set(self) -> bool:
        """Whether either is set."""
        return super().is_set() or self.other.is_set()


class Grace:
    """Says whether to end now: some seconds after a stop, in which a stage makes the best answer so far usable.

    Parameters
    ----------
    seconds
        From when the stage first sees that the stop is set.
    """

    def __init__(self, stop: Stop, seconds: float) -> None:
        self._stop = stop
        self._seconds = seconds
        self._end: float | None = None

    def __call__(self) -> bool:
        """Whether the stop is set and the time is over."""
        if not self._stop.is_set():
            return False
        now = time.monotonic()
        if self._end is None:
            self._end = now + self._seconds
        return now >= self._end
