"""Divides a time limit among many searches, each of which takes a time that is not known before."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from stowplan.models.options import Options

LEAST_TIME = 1.0
"""Seconds, or units of work, that a search has, unless less is left."""


class SharedTime:
    """What is left of a time limit, and how long what is done again and again has taken.

    Parameters
    ----------
    options
        Theirs is the limit. It does not end deterministic searches, whose work is counted instead.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._began = time.monotonic()
        self._taken: dict[str, list[float]] = {}

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.left(1) <= 0

    def left(self, until: float) -> float:
        """Return the seconds until a share of the limit is over; endless if the search is deterministic."""
        if self.options.deterministic:
            return math.inf
        return until * self.options.time_limit - (time.monotonic() - self._began)

    def share(self, until: float, searches: int) -> Options:
        """Return options for the next of some searches, which are to end at a share of the limit."""
        if self.options.deterministic:
            return replace(self.options, time_limit=max(LEAST_TIME, until * self.options.time_limit / searches))
        left = max(self.left(until), 0.1)
        return replace(self.options, time_limit=min(left, max(LEAST_TIME, left / searches)))

    @contextmanager
    def taking(self, what: str) -> Iterator[None]:
        """Measure how long something takes."""
        began = time.monotonic()
        yield
        self._taken.setdefault(what, []).append(time.monotonic() - began)

    def mean(self, what: str) -> float:
        """Return how long something has taken on average; 0 if it was not done yet."""
        taken = self._taken.get(what, [0.0])
        return sum(taken) / len(taken)

    def longest(self, what: str) -> float:
        """Return how long something has taken at most; 0 if it was not done yet."""
        return max(self._taken.get(what, [0.0]))
