"""Calibration of temperatures: the schedules of a round, and what is learned from the winner."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.annealing.schedule import Calibration

DEFAULTS = AnnealingParameters()
CALIBRATION_ROUNDS = DEFAULTS.calibration_rounds

UPHILL = np.arange(100, 10_100, 10, dtype=np.int64)


def test_every_round_has_a_share_of_the_time() -> None:
    assert len(DEFAULTS.rounds) == CALIBRATION_ROUNDS + 1


@pytest.mark.parametrize("chains", [1, 2, 3])
@pytest.mark.parametrize("wins", [0, -1])
def test_a_round_continues_around_the_winner(chains: int, wins: int) -> None:
    calibration = Calibration(UPHILL)
    for _ in range(CALIBRATION_ROUNDS - 1):
        starts = calibration.starts(chains)
        assert len(starts) == chains
        assert all(start.initial >= start.final > 0 for start in starts)
        assert [start.initial for start in starts] == sorted((start.initial for start in starts), reverse=True)
        calibration.learn(starts, wins % chains)
        after = [start.initial for start in calibration.starts(chains)]
        assert min(after) <= starts[wins].initial * 1.001
        assert starts[wins].initial <= max(after) * 1.001


@pytest.mark.parametrize("chains", [1, 2, 3])
def test_a_long_chain_is_hotter_than_a_calibration_and_a_later_one_cooler(chains: int) -> None:
    calibration = Calibration(UPHILL)
    hottest = []
    for _ in range(CALIBRATION_ROUNDS + 3):
        starts = calibration.starts(chains)
        hottest.append(max(start.initial for start in starts))
        calibration.learn(starts, chains // 2)
        assert all(start.initial >= start.final > 0 for start in starts)
    long, later = hottest[CALIBRATION_ROUNDS], hottest[CALIBRATION_ROUNDS + 1 :]
    assert long > hottest[CALIBRATION_ROUNDS - 1]
    assert later == [later[0]] * 2
    assert later[0] < long


@pytest.mark.parametrize("wins", [0, 1])
def test_a_long_chain_that_begins_hotter_than_the_winner_gets_as_cold(wins: int) -> None:
    calibration = Calibration(UPHILL)
    for _ in range(CALIBRATION_ROUNDS):
        starts = calibration.starts(2)
        calibration.learn(starts, wins)
    initial, cool = calibration.starts(2)
    won = starts[wins].initial
    assert initial.initial > won > cool.initial
    assert initial.final == pytest.approx(won / DEFAULTS.cooling)
    assert cool.final == pytest.approx(cool.initial / DEFAULTS.cooling)


@pytest.mark.parametrize("wins", [0, 1])
def test_chains_after_the_long_one_end_at_the_final_temperature_of_its_winner(wins: int) -> None:
    calibration = Calibration(UPHILL)
    for _ in range(CALIBRATION_ROUNDS + 1):
        starts = calibration.starts(2)
        calibration.learn(starts, wins)
    assert [start.final for start in calibration.starts(2)] == [starts[wins].final] * 2
    calibration.learn(calibration.starts(2), 0)
    assert [start.final for start in calibration.starts(2)] == [starts[wins].final] * 2


def test_a_chain_that_continues_is_not_colder_than_the_coldest() -> None:
    calibration = Calibration(np.ones(10, dtype=np.int64))
    for _ in range(CALIBRATION_ROUNDS + 1):
        calibration.learn(calibration.starts(2), 1)
    assert all(start.initial >= start.final > 0 for start in calibration.starts(2))


def test_only_the_first_calibration_of_the_temperature_begins_afresh() -> None:
    for tight in (False, True):
        calibration, afresh = Calibration(UPHILL, tight=tight), []
        for _ in range(CALIBRATION_ROUNDS + 2):
            afresh.append(calibration.afresh)
            calibration.learn(calibration.starts(2), 1)
        assert afresh == [not tight, tight, False, False, False]


@pytest.mark.parametrize(("first", "second"), [(1, None), (0, 1), (0, 0)])
def test_calibration_decides_whether_to_overload(first: int, second: int | None) -> None:
    calibration = Calibration(UPHILL, tight=True)
    for turn, wins in enumerate((first, 0, second)):
        one, other = calibration.starts(2)
        if turn == 1 or wins is None:
            assert one.initial > other.initial
            assert one.overloads == other.overloads
        else:
            assert (one.initial, one.final) == (other.initial, other.final)
            assert [one.overloads, other.overloads] == [False, True]
        calibration.learn([one, other], wins or 0)
    for _ in range(2):
        assert {start.overloads for start in calibration.starts(2)} == {1 in (first, second)}
        calibration.learn(calibration.starts(2), 0)


def test_nothing_uphill_means_temperature_zero() -> None:
    calibration = Calibration(np.zeros(0, dtype=np.int64), tight=True)
    for _ in range(CALIBRATION_ROUNDS + 2):
        starts = calibration.starts(2)
        assert [(start.initial, start.overloads) for start in starts] == [(0.0, False)] * 2
        assert not calibration.afresh
        calibration.learn(starts, 0)
