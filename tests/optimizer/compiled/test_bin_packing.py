"""The compiled packer gives the answers of the plain one, whatever the order of the parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stowplan.models.bin_packing import pack
from stowplan.optimizer.compiled.bin_packing import least_bins
from tests.models.test_bin_packing import random_parts
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn


class Parts(NamedTuple):
    """Parts in decreasing order, and in some other."""

    size: int
    decreasing: tuple[int, ...]
    shuffled: list[int]


def random_packing(choices: Choices) -> Parts:
    size = choices.one([4, 10, 100, 1000])
    parts = random_parts(choices, 40, size)
    return Parts(size, parts, choices.any_order(parts))


@cases(250, at_least={"several devices": 120}, parts=drawn(random_packing))
def test_the_compiled_packer_agrees_with_plain_python(parts: Parts) -> None:
    bins, number = pack(parts.decreasing, parts.size)[0], len(parts.decreasing)
    shuffled = np.array([*parts.shuffled, 7, 7], dtype=np.int64)
    before = shuffled.copy()
    for at_most in {0, max(0, bins - 1), bins, number}:
        assert least_bins(shuffled, number, parts.size, at_most) == min(bins, at_most + 1)
    assert np.array_equal(shuffled, before)
    count("several devices", bins > 1)
