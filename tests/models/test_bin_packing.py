"""The packer against an enumeration of all ways to pack."""

from __future__ import annotations

import random

import pytest

from stowplan.models.bin_packing import dual_weights, fewest_bins, pack


def enumerated(parts: tuple[int, ...], size: int) -> int:
    """Put each part on every device in use, or on a new one."""

    def fewest(i: int, rooms: tuple[int, ...]) -> int:
        if i == len(parts):
            return len(rooms)
        best = fewest(i + 1, (*rooms, size - parts[i]))
        for k, room in enumerate(rooms):
            if room >= parts[i]:
                best = min(best, fewest(i + 1, (*rooms[:k], room - parts[i], *rooms[k + 1 :])))
        return best

    return fewest(0, ())


def random_parts(rng: random.Random, most: int, size: int) -> tuple[int, ...]:
    kinds = [rng.randint(1, size) for _ in range(rng.randint(1, 5))]
    loose = rng.random() < 0.5
    parts = [rng.randint(1, size) if loose else rng.choice(kinds) for _ in range(rng.randint(0, most))]
    return tuple(sorted(parts, reverse=True))


@pytest.mark.parametrize("seed", range(300))
def test_as_few_as_enumeration_finds(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.choice([5, 10, 20])
    parts = random_parts(rng, 7, size)
    assert pack(parts, size)[0] == enumerated(parts, size)


def test_where_first_fit_is_wasteful() -> None:
    # First-fit decreasing takes 3: 6+3, 5+2+2, 2. But 6+2+2 and 5+3+2 fill two.
    assert pack((6, 5, 3, 2, 2, 2), 10)[0] == 2
    # Three parts of more than half need three devices, whatever the volume says.
    assert pack((6, 6, 6), 10)[0] == 3
    assert pack((), 10) == (0, ())


@pytest.mark.parametrize("seed", range(100))
def test_the_packing_is_one(seed: int) -> None:
    rng = random.Random(seed)
    parts = random_parts(rng, 60, 1000)
    bins, where = pack(parts, 1000)
    load = [0] * bins
    for part, k in zip(parts, where, strict=True):
        load[k] += part
    assert all(0 < used <= 1000 for used in load)
    assert bins >= -(-sum(parts) // 1000)


@pytest.mark.parametrize("seed", range(200))
def test_weights_of_parts_on_a_device_stay_within_the_limit(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.choice([4, 6, 10, 12, 60, 100])
    parts = tuple(sorted({rng.randint(1, size) for _ in range(rng.randint(1, 6))}))
    first, *_ = found = dual_weights(parts, size)
    assert first == (size, parts)
    for limit, weights in found:
        most = [0] * (size + 1)  # the greatest weight that goes into so much room
        for room in range(size + 1):
            for part, weight in zip(parts, weights, strict=True):
                if part <= room:
                    most[room] = max(most[room], most[room - part] + weight)
        assert most[size] <= limit


def test_weights_see_what_the_volume_does_not() -> None:
    """Of two that take more than half, none shares a device with the other; three of a third do."""
    assert (2, (0, 2)) in dual_weights((300, 600), 1000)
    assert (6, (0, 3, 6)) in dual_weights((300, 400, 900), 1000)


def test_a_search_that_gives_up_answers_with_first_fit_decreasing_and_says_so() -> None:
    parts = (6, 5, 3, 2, 2, 2)
    where = [0] * len(parts)
    assert fewest_bins(parts, len(parts), 10, len(parts), where, effort=2) == 3
    assert max(where) == 2
    assert min(where) == 0
    assert fewest_bins(parts, len(parts), 10, 2, where, effort=2) == 3
    assert where[0] < 0  # two may do, and they do
    assert fewest_bins(parts, len(parts), 10, 2, where) == 2
    assert where[0] == 0
    assert fewest_bins(parts, len(parts), 10, 1, where, effort=2) == 2
    assert where[0] == 0  # proven by the sum


@pytest.mark.parametrize("seed", range(100))
def test_more_than_at_most_is_said_as_soon_as_it_is_known(seed: int) -> None:
    rng = random.Random(seed)
    parts = random_parts(rng, 30, 100)
    bins = pack(parts, 100)[0]
    for at_most in range(bins + 2):
        assert fewest_bins(parts, len(parts), 100, at_most, [0] * len(parts)) == min(bins, at_most + 1)
