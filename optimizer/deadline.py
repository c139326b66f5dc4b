"""When to stop: at a deadline, when asked from outside, or neither."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from stowplan.models.stop import Stop


class Over(Exception):
    """The time is over, or a stop was asked for: raised by searches of several steps, to end with what is known."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment after which to return what there is.

    Parameters
    ----------
    seconds
        How long from now. In deterministic mode a solver counts this in its own deterministic time, and search by
        steps, so that the answer does not depend on the machine.
    """

    seconds: float
    deterministic: bool = False
    stop: Stop = field(default_factory=Stop)
    began: float = field(default_factory=time.monotonic)

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.seconds - (time.monotonic() - self.began))

    @property
    def over(self) -> bool:
        """Whether to return now."""
        return self.stop.is_set() or (not self.deterministic and self.remaining <= 0)

    @property
    def left(self) -> float:
        """What is left to be shared: seconds, or in deterministic mode all that there is."""
        return self.seconds if self.deterministic else self.remaining

    def share(self, fraction: float) -> Deadline:
        """Return a deadline for a part of the time that is left."""
        return Deadline(self.left * fraction, self.deterministic, self.stop)
