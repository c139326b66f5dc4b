"""The compiled packer gives the answers of the plain one, whatever the order of the parts."""

from __future__ import annotations

import random

import numpy as np

from stowplan.models.bin_packing import pack
from stowplan.optimizer.compiled.bin_packing import least_bins
from tests.models.test_bin_packing import random_parts


def test_it_agrees_with_plain_python() -> None:
    rng = random.Random(1)
    for _ in range(1000):
        size = rng.choice([4, 10, 100, 1000])
        parts = random_parts(rng, 40, size)
        bins = pack(parts, size)[0]
        shuffled = np.array([*rng.sample(parts, len(parts)), 7, 7], dtype=np.int64)
        before = shuffled.copy()
        for at_most in {0, max(0, bins - 1), bins, len(parts)}:
            assert least_bins(shuffled, len(parts), size, at_most) == min(bins, at_most + 1)
        assert np.array_equal(shuffled, before)
