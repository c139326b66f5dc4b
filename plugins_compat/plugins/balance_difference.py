"""How release 1.20 scores the balance of a node: by a difference of two fractions, or a variance of three."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import POINTS


def fractions(used: Ints, capacity: Ints) -> Floats:
    """Return the used fractions; without capacity a fraction is 1."""
    found: Floats = np.where(capacity == 0, 1.0, used / np.maximum(capacity, 1))
    return found


def difference_points(cpu: Floats, memory: Floats) -> Ints:
    """Return ``trunc((1 − |cpu − memory|)·100)``, and 0 where a fraction is 1 or more."""
    points: Ints = ((1.0 - np.abs(cpu - memory)) * float(POINTS)).astype(np.int64)
    return np.where((cpu >= 1) | (memory >= 1), 0, points)


def variance_points(cpu: Floats, memory: Floats, volumes: Floats) -> Ints:
    """Return ``trunc((1 − σ²)·100)`` for the population variance of three fractions; 0 where one is 1 or more.

    Three fractions below 1 have a variance of at most 2/9, so what is not 0 is at least 77.
    """
    mean = (cpu + memory + volumes) / 3.0
    squares = (cpu - mean) * (cpu - mean) + (memory - mean) * (memory - mean) + (volumes - mean) * (volumes - mean)
    points: Ints = ((1.0 - squares / 3.0) * float(POINTS)).astype(np.int64)
    full: Bools = (cpu >= 1) | (memory >= 1) | (volumes >= 1)
    return np.where(full, 0, points)
