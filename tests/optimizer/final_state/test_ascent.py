"""Steps of the subgradient method come near the top of a concave function whose multipliers differ widely in size."""

from __future__ import annotations

import numpy as np

from stowplan.optimizer.final_state.ascent import Ascent, Multipliers


def test_steps_come_near_the_top() -> None:
    top = Multipliers(
        np.array([300.0, -2.0]),
        np.array([[0.01, 0.4]]),
        7.0,
        (np.array([5.0, 50.0]),),
        np.array([1.0, 0.0]),
        np.array([0.5]),
    )
    at = Multipliers.of([np.zeros_like(array) for array in top.arrays])
    ascent = Ascent([100.0, np.array([[0.1]]), 10.0, 10.0, 1.0, 0.5], 0.4, 0.9)

    def away() -> float:
        return sum(float(np.abs(a - b).sum()) for a, b in zip(at.arrays, top.arrays, strict=True))

    first, nearest = away(), away()
    for _ in range(500):
        at = ascent.step(at, Multipliers.of([np.sign(a - b) for a, b in zip(top.arrays, at.arrays, strict=True)]))
        nearest = min(nearest, away())
    assert nearest < 0.02 * first
