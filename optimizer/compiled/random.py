"""Random numbers whose state is an array, so that equal seeds give equal sequences on every machine and thread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stowplan.optimizer.compiled.jit import inlined

RandomState = NDArray[np.uint64]


@inlined
def bits(state: RandomState) -> int:
    """Return 63 random bits (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int(np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(1)))


@inlined
def below(state: RandomState, n: int) -> int:
    """Return a random integer from 0 to ``n`` - 1."""
    return bits(state) % n


@inlined
def uniform(state: RandomState) -> float:
    """Return a random number above 0 and at most 1."""
    return ((bits(state) >> 10) + 1) / 9007199254740992.0


def start_of(seed: int) -> RandomState:
    """Return the initial state of a seed."""
    return np.array([(seed * 0x9E3779B97F4A7C15 + 0x2545F4914F6CDD1D) % (1 << 64)], dtype=np.uint64)
