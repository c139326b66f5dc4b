"""Who improves what is still open, in which order, and when nobody does any more."""

from __future__ import annotations

import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.problem import Placement
from stowplan.models.settings import Settings
from stowplan.optimizer.backend import Backend, SerialBackend
from stowplan.optimizer.portfolio import Options, _Portfolio, solve
from stowplan.planning.drain import draining
from stowplan.settings.problem import make_problem
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


def test_the_last_tier_is_bounded_before_others_that_stay_open_take_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a nearly full cluster, a node is drained: that no more pods can be scheduled is not proven."""
    cluster = synthetic_snapshot(10, 80, 1, fill=0.95)
    problem = make_problem(cluster, draining(Settings(), [cluster.nodes[0].name])).problem
    bounds: list[int] = []

    def first(portfolio: _Portfolio, tier: int, share: float | None = None, repaired: int | None = None) -> None:
        assert portfolio.run.is_open(0)
        bounds.append(portfolio.run.bounds[-1])
        portfolio.run.stop.set()

    monkeypatch.setattr(_Portfolio, "_prove", first)
    outcome = solve(problem, Options(0.2, deterministic=True))
    assert 0.5 * outcome.values[-1] <= bounds[0] <= outcome.values[-1]
