"""Steepest descent on the exact cost of a final state, guided by surrogates.

Tables of the surrogate terms tell at once which moves of single pods promise most; the first few of them are made and
measured, and the one that gains most by the exact cost is kept. With few moves allowed, that decides what they are
spent on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
        while in_vain < self._parameters.in_vain and not deadline.over:
            rounds = max(1, min(self._position.left, self._parameters.rounds_ahead))
            best, failed = self._compare(deadline.share(1 / rounds))
            in_vain += failed
            if best is not None:
                self._position.attempt([best], lambda change: True)
                self._guide.make(*best)
                made, in_vain = made + 1, 0
            elif not failed:
                break
        if made:
            self._found(self._position.placement)
        return made

    def _compare(self, deadline: Deadline) -> tuple[tuple[int, int, int] | None, int]:
        """Measure the moves that promise most; return the best one, and how many gain nothing and are left from now on.

        As many are measured as time allows, and one in any case.
        """
        best, least, failed = None, 0, 0
        most = self._parameters.compared if deadline.deterministic else self._parameters.most_compared
        for i, (c, source, target) in enumerate(self._guide.promising(most)):
            if i and deadline.over:
                break
            measure = self._position.attempt([(c, source, target)], lambda change: False)
            if measure is None or measure[0] >= 0:
                self._guide.ban(c, np.array([target]))
                failed += 1
            elif best is None or measure[0] < least:
                best, least = (c, source, target), measure[0]
        return best, failed
