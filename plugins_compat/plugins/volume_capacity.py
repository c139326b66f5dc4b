"""How well existing volumes fit the claims that would take them, as a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import PersistentVolume, PersistentVolumeClaim
from stowplan.models.problem import POINTS
from stowplan.models.quantity import whole
from stowplan.plugins_compat.plugins.shape import ShapePoint, broken_line

DEFAULT_SHAPE = (ShapePoint(utilization=0, score=0), ShapePoint(utilization=100, score=10))
"""The fuller, the better."""


def capacity_points(
    taken: Sequence[tuple[PersistentVolumeClaim, Ints]],
    volumes: Sequence[PersistentVolume],
    shape: Sequence[ShapePoint] = DEFAULT_SHAPE,
) -> Ints:
    """``[nodes]`` the mean over storage classes of the score of requested / capacity, rounded half away from zero.

    Parameters
    ----------
    taken
        Claims, each with ``[nodes]`` the position of the volume that it takes on each node, or -1.
    volumes
        The volumes.
    shape
        Points from utilization to score.
    """
    size = len(taken[0][1]) if taken else 0
    sums: dict[str, tuple[Ints, Ints]] = {}
    capacities = np.array([*(whole(volume.capacity) for volume in volumes), 0], dtype=np.int64)
    for claim, which in taken:
        nothing = np.zeros(size, dtype=np.int64)
        requested, capacity = sums.get(claim.class_name, (nothing, nothing))
        found = which >= 0
        sums[claim.class_name] = (
            requested + np.where(found, whole(claim.size or 0), 0),
            capacity + np.where(found, capacities[which], 0),
        )
    total, classes = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for name, (requested, capacity) in sums.items():
        used = np.any([which >= 0 for claim, which in taken if claim.class_name == name], axis=0)
        full = (capacity == 0) | (requested > capacity)
        percent = np.where(full, POINTS, requested * POINTS // np.maximum(capacity, 1))
        total += np.where(used, broken_line(percent, shape), 0)
        classes += used
    mean = total / np.maximum(classes, 1)
    points: Ints = (np.floor(mean) + (mean - np.floor(mean) >= 0.5)).astype(np.int64)
    return points
