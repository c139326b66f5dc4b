"""The time budget of column generation: seconds, or work where the result must not depend on the clock."""

from __future__ import annotations

from stowplan.optimizer.column_generation.parameters import ColumnGenerationParameters
from stowplan.optimizer.deadline import Deadline

DEFAULT_RATE = ColumnGenerationParameters().work_per_second


class Budget:
    """What is left of a deadline. In deterministic mode, work counts instead of seconds.

    Parameters
    ----------
    share
        Share of the deadline's time, and of its work, that may be used.
    rate
        Work that counts as a second.
    """

    def __init__(
        self, deadline: Deadline, rate: int = DEFAULT_RATE, share: float = 1.0, parent: Budget | None = None
    ) -> None:
        self.rate = rate
        self._deadline = deadline
        self._parent = parent
        self.deterministic = deadline.deterministic
        if deadline.deterministic:
            self._left = (parent.seconds if parent else deadline.seconds) * share * rate
            self._end = 0.0
        else:
            self._left = 0.0
            self._end = deadline.remaining - (parent.seconds if parent else deadline.remaining) * share

    @property
    def seconds(self) -> float:
        """Seconds left, or what counts as seconds."""
        if self.deterministic:
            return max(0.0, self._left / self.rate)
        return max(0.0, self._deadline.remaining - self._end)

    @property
    def over(self) -> bool:
        """Whether to return now."""
        return self._deadline.stop.is_set() or self.seconds <= 0

    @property
    def stopped(self) -> bool:
        """Whether a stop was requested."""
        return self._deadline.stop.is_set()

    @property
    def work(self) -> int:
        """Work that may still be done, in one go."""
        return max(1000, int(self.seconds * self.rate))

    def spend(self, work: float) -> None:
        """Charge work that was done."""
        self._left -= work
        if self._parent:
            self._parent.spend(work)

    def part(self, share: float) -> Budget:
        """Return a budget for a part of what is left."""
        return Budget(self._deadline, self.rate, share, self)
