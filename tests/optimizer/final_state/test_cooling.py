"""The schedule of the search on the exact score: how hot it begins, how often, and that it goes on from the best."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.problem import Placement, Problem
from stowplan.models.settings import Settings
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state import search as searching
from stowplan.optimizer.final_state.cooling import Cooling
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.position import Position
from stowplan.optimizer.final_state.search import FinalStateSearch
from stowplan.settings.problem import make_problem

CHOSEN = FinalStateParameters()


@pytest.mark.parametrize(
    ("trials", "hottest"),
    [
        (0.0, (15.0,)),
        (4.0, (47.0,)),
        (10.0, (95.0, 23.75)),
        (99.0, (250.0, 62.5)),
        (250.0, (250.0, 62.5, 125.0, 62.5, 125.0, 62.5)),
    ],
)
def test_more_time_is_more_heat_and_more_rounds(trials: float, hottest: tuple[float, ...]) -> None:
    assert Cooling.of(CHOSEN.temperatures, 100.0, 0.1, trials).hottest == pytest.approx(hottest)


def test_each_round_cools_down() -> None:
    cooling = Cooling(0.2, (100.0, 40.0), 0.01)
    assert cooling.temperature(0.2) == pytest.approx(100.0)
    assert cooling.temperature(0.4) == pytest.approx(10.0)
    assert cooling.temperature(0.6 - 1e-9) == pytest.approx(1.0)
    assert cooling.temperature(0.6 + 1e-9) == pytest.approx(40.0)
    assert cooling.temperature(1.0) == pytest.approx(0.4)
    assert [cooling.round(spent) for spent in (0.2, 0.59, 0.61, 1.0, 1.2)] == [0, 0, 1, 1, 1]
    assert cooling.temperature(1.2) == pytest.approx(0.4)


def test_later_rounds_begin_with_the_best_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(synthetic_snapshot(6, 40, 3), Settings(objective="kube")).problem
    tier = next(t for t, one in enumerate(problem.tiers) if one.final is not None)
    begun: list[Placement] = []

    class Watched(Position):
        def __init__(self, evaluator: Evaluator, problem: Problem, tier: int, placement: Placement) -> None:
            begun.append(placement)
            super().__init__(evaluator, problem, tier, placement)

    monkeypatch.setattr(searching, "Position", Watched)
    found: list[Placement] = []
    parameters = replace(CHOSEN, trials=100, measured=5, trials_of_rounds=0.1, trials_of_more=3.0, pause=0.0)
    search = FinalStateSearch(Evaluator(problem.steered), problem, tier, problem.start, found.append, parameters)
    search.run(Deadline(10, deterministic=True))
    assert len(begun) > 2
    assert found
    full = Evaluator(problem)
    values = [full.evaluate(placement).values[tier] for placement in found]
    assert values == sorted(values, reverse=True)
    assert values[-1] < full.evaluate(problem.start).values[tier]
    tables = [placement.table(*problem.shape) for placement in (*begun, found[-1])]
    assert any((table == tables[-1]).all() for table in tables[1:-1])
