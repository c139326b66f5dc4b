"""Races: who begins how, and what is learned of who won."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.optimizer.annealing.anneal import ROUNDS
from stowplan.optimizer.annealing.schedule import FALL, RACES, Race

UPHILL = np.arange(100, 10_100, 10, dtype=np.int64)


def test_every_turn_has_a_share_of_the_time() -> None:
    assert len(ROUNDS) == RACES + 1


@pytest.mark.parametrize("walkers", [1, 2, 3])
@pytest.mark.parametrize("wins", [0, -1])
def test_a_race_goes_on_around_what_won(walkers: int, wins: int) -> None:
    race = Race(UPHILL)
    for _ in range(RACES - 1):
        starts = race.starts(walkers)
        assert len(starts) == walkers
        assert all(start.hot >= start.cold > 0 for start in starts)
        assert [start.hot for start in starts] == sorted((start.hot for start in starts), reverse=True)
        race.learn(starts, wins % walkers)
        after = [start.hot for start in race.starts(walkers)]
        assert min(after) <= starts[wins].hot * 1.001
        assert starts[wins].hot <= max(after) * 1.001


@pytest.mark.parametrize("walkers", [1, 2, 3])
def test_a_long_walk_is_hotter_than_a_race_and_a_later_one_cooler(walkers: int) -> None:
    race = Race(UPHILL)
    hottest = []
    for _ in range(RACES + 3):
        starts = race.starts(walkers)
        hottest.append(max(start.hot for start in starts))
        race.learn(starts, walkers // 2)
        assert all(start.hot >= start.cold > 0 for start in starts)
    long, later = hottest[RACES], hottest[RACES + 1 :]
    assert long > hottest[RACES - 1]
    assert later == [later[0]] * 2
    assert later[0] < long


@pytest.mark.parametrize("wins", [0, 1])
def test_a_long_walk_that_begins_hotter_than_what_won_gets_as_cold(wins: int) -> None:
    race = Race(UPHILL)
    for _ in range(RACES):
        starts = race.starts(2)
        race.learn(starts, wins)
    hot, cool = race.starts(2)
    won = starts[wins].hot
    assert hot.hot > won > cool.hot
    assert hot.cold == pytest.approx(won / FALL)
    assert cool.cold == pytest.approx(cool.hot / FALL)


@pytest.mark.parametrize("wins", [0, 1])
def test_walks_after_the_long_one_end_where_who_won_it_ended(wins: int) -> None:
    race = Race(UPHILL)
    for _ in range(RACES + 1):
        starts = race.starts(2)
        race.learn(starts, wins)
    assert [start.cold for start in race.starts(2)] == [starts[wins].cold] * 2
    race.learn(race.starts(2), 0)
    assert [start.cold for start in race.starts(2)] == [starts[wins].cold] * 2


def test_a_walk_that_goes_on_is_not_colder_than_the_coldest() -> None:
    race = Race(np.ones(10, dtype=np.int64))
    for _ in range(RACES + 1):
        race.learn(race.starts(2), 1)
    assert all(start.hot >= start.cold > 0 for start in race.starts(2))


def test_only_the_first_race_for_the_temperature_begins_afresh() -> None:
    for tight in (False, True):
        race, afresh = Race(UPHILL, tight=tight), []
        for _ in range(RACES + 2):
            afresh.append(race.afresh)
            race.learn(race.starts(2), 1)
        assert afresh == [not tight, tight, False, False, False]


@pytest.mark.parametrize(("first", "second"), [(1, None), (0, 1), (0, 0)])
def test_a_race_says_whether_to_overfill(first: int, second: int | None) -> None:
    race = Race(UPHILL, tight=True)
    for turn, wins in enumerate((first, 0, second)):
        one, other = race.starts(2)
        if turn == 1 or wins is None:
            assert one.hot > other.hot
            assert one.overfills == other.overfills
        else:
            assert (one.hot, one.cold) == (other.hot, other.cold)
            assert [one.overfills, other.overfills] == [False, True]
        race.learn([one, other], wins or 0)
    for _ in range(2):
        assert {start.overfills for start in race.starts(2)} == {1 in (first, second)}
        race.learn(race.starts(2), 0)


def test_nothing_uphill_means_no_heat() -> None:
    race = Race(np.zeros(0, dtype=np.int64), tight=True)
    for _ in range(RACES + 2):
        starts = race.starts(2)
        assert [(start.hot, start.overfills) for start in starts] == [(0.0, False)] * 2
        assert not race.afresh
        race.learn(starts, 0)
