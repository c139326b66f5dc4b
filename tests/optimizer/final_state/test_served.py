"""Surrogates end once the tiers above are closed and their least time is over, or when the solve is told to stop."""

from __future__ import annotations

from stowplan.models.stop import Stop
from stowplan.optimizer.final_state.stages import Served
from stowplan.optimizer.run import Step


def test_closed_tiers_and_the_least_time_end_surrogates() -> None:
    now, later = Served(Stop(), 2, 0.0), Served(Stop(), 2, 1000.0)
    for served in (now, later):
        served.hear(Step(0.1, "annealing", (3, 5, 9), (3, 4, 0)))
        assert not served.is_set()
        served.hear(Step(0.2, "room bound", (3, 5, 9), (3, 5, 0)))
    assert now.is_set()
    assert not later.is_set()


def test_a_stop_of_the_solve_ends_surrogates() -> None:
    stop = Stop()
    served = Served(stop, 1, 1000.0)
    assert not served.is_set()
    stop.set()
    assert served.is_set()
