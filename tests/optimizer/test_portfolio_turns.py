"""Who improves what is still open, in which order, and when nobody does any more."""

from __future__ import annotations

import pytest

from stowplan.models.problem import Placement
from stowplan.optimizer.backend import Backend, SerialBackend
from stowplan.optimizer.portfolio import Options, _Portfolio
from tests.optimizer.test_run import run_of

START = [9, 8, 7, 6, 5, 4, 3, 2, 1]
"""What the nodes cost: the pod stands on the first, and who gains puts it on the next."""

ANNEALING, LNS = "annealing", "large neighborhood search"


class _Turns(_Portfolio):
    """A portfolio whose engines gain in the turns that a test names."""

    def __init__(self, gaining: set[int], *, small: bool) -> None:
        run = run_of(START)
        super().__init__(run, Options(largest_model=run.variables if small else 0), SerialBackend(run.stop))
        self.gaining = gaining
        self.turns: list[str] = []

    def anneal(self, share: float, tiers: int | None = None) -> None:
        self._turn(ANNEALING)

    def _lns(self, backend: Backend, share: float, only: int | None = None) -> None:
        self._turn(LNS)

    def _turn(self, name: str) -> None:
        if len(self.turns) in self.gaining:
            (now,) = self.run.best.node.tolist()
            assert self.run.offer(Placement.of([(0, now + 1, 1)]), name)
        self.turns.append(name)


@pytest.mark.parametrize(
    ("small", "gaining", "turns"),
    [
        (False, set(), [ANNEALING, LNS, ANNEALING]),
        (True, set(), [LNS, ANNEALING, LNS]),
        (False, {0}, [ANNEALING, LNS, ANNEALING, LNS]),
        (
            False,
            {1},
            [
                ANNEALING,
                LNS,
                LNS,
                ANNEALING,
                LNS,
            ],
        ),
        (
            True,
            {1, 2},
            [LNS, ANNEALING, ANNEALING, ANNEALING, LNS],
        ),
    ],
)
def test_who_gained_goes_on_and_among_equals_who_waits(small: bool, gaining: set[int], turns: list[str]) -> None:
    portfolio = _Turns(gaining, small=small)
    portfolio._improve()
    assert portfolio.turns == turns
