"""From moves to waves."""

from __future__ import annotations

from plans.sequencing.task import Sequencing, Task


def sequence(task: Task) -> Sequencing:
    """Put moves in order; see `Task` and `Sequencing`."""
    raise NotImplementedError
