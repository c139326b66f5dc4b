"""Steepest descent on the exact cost of a final state, guided by surrogates.

Tables of the surrogate terms tell at once which moves of single pods promise most; the first few of them are made and
measured, and the one that gains most by the exact cost is kept. With few moves allowed, that decides what they are
spent on.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from stowplan.models.problem import Placement
from stowplan.optimizer.constructive.descent import Descent
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.position import Position


class FinalStateDescent:
    """Descent from a placement.

    Parameters
    ----------
    position
        Where it begins, and ends.
    steered
        The same placement, in the problem with surrogates.
    found
        Called with the placement that is reached, if it is better than the first.
    """

    def __init__(
        self,
        position: Position,
        steered: State,
        tier: int,
        found: Callable[[Placement], object],
        parameters: FinalStateParameters,
    ) -> None:
        self._position, self._found, self._parameters = position, found, parameters
        self._guide = Descent(steered, tier)

    def run(self, deadline: Deadline) -> int:
        """Make moves until none of those that promise most gains anything; return how many were made."""
        made = in_vain = 0
        began, measured, tried = time.monotonic(), 0, 1
        while in_vain < self._parameters.in_vain and not deadline.over:
            candidates = self._guide.promising(tried)
            if not candidates:
                break
            best: tuple[int, tuple[int, int, int]] | None = None
            for c, source, target in candidates:
                measure = self._position.attempt([(c, source, target)], lambda change: False)
                if measure is None or measure[0] >= 0:
                    self._guide.ban(c, target)
                    in_vain += 1
                elif best is None or measure[0] < best[0]:
                    best = measure[0], (c, source, target)
            measured += len(candidates)
            if best is not None:
                self._position.attempt([best[1]], lambda change: True)
                self._guide.make(*best[1])
                made, in_vain = made + 1, 0
            if not deadline.deterministic:
                each = (time.monotonic() - began) / (measured + made)
                rounds = max(1, min(self._position.left, self._parameters.rounds_ahead))
                tried = int(max(1, min(self._parameters.compared, deadline.remaining / rounds / max(each, 1e-6))))
            else:
                tried = self._parameters.compared
        if made:
            self._found(self._position.placement)
        return made
