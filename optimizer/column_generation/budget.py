"""Time as patterns see it: the clock, or counted work where the answer must not depend on the clock."""

from __future__ import annotations

from stowplan.optimizer.deadline import Deadline

RATE = 40_000_000
"""Candidates that pricing looks at in about a second."""


class Budget:
    """What is left of a deadline. In deterministic mode, work counts instead of seconds.

    Parameters
    ----------
    share
        Part of the deadline's time, and of its work, that may be used.
    """

    def __init__(self, deadline: Deadline, share: float = 1.0, parent: Budget | None = None) -> None:
        self._deadline = deadline
        self._parent = parent
        self.deterministic = deadline.deterministic
        if deadline.deterministic:
            self._left = (parent.seconds if parent else deadline.seconds) * share * RATE
            self._end = 0.0
        else:
            self._left = 0.0
            self._end = deadline.remaining - (parent.seconds if parent else deadline.remaining) * share

    @property
    def seconds(self) -> float:
        """Seconds left, or what counts as seconds."""
        if self.deterministic:
            return max(0.0, self._left / RATE)
        return max(0.0, self._deadline.remaining - self._end)

    @property
    def over(self) -> bool:
        """Whether to return now."""
        return self._deadline.stop.is_set() or self.seconds <= 0

    @property
    def stopped(self) -> bool:
        """Whether somebody asked to stop."""
        return self._deadline.stop.is_set()

    @property
    def work(self) -> int:
        """Candidates that may still be looked at, in one go."""
        return max(1000, int(self.seconds * RATE))

    def spend(self, work: float) -> None:
        """Book work that was done."""
        self._left -= work
        if self._parent:
            self._parent.spend(work)

    def part(self, share: float) -> Budget:
        """Return a budget for a part of what is left."""
        return Budget(self._deadline, share, self)
