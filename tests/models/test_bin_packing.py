"""The packer against an enumeration of all ways to pack."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from stowplan.models.bin_packing import dual_weights, fewest_bins, pack
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn


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


def random_parts(choices: Choices, most: int, size: int) -> tuple[int, ...]:
    """Return up to so many parts in decreasing order, of a few kinds or of any."""
    kinds = [choices.integer(1, size) for _ in range(choices.integer(1, 5))]
    loose = choices.chance(0.5)
    parts = [choices.integer(1, size) if loose else choices.one(kinds) for _ in range(choices.integer(0, most))]
    return tuple(sorted(parts, reverse=True))


def parts_of(*sizes: int, most: int) -> st.SearchStrategy[tuple[int, tuple[int, ...]]]:
    """Return the strategy of devices of one of these sizes, and of parts for them."""

    def made(choices: Choices) -> tuple[int, tuple[int, ...]]:
        size = choices.one(sizes)
        return size, random_parts(choices, most, size)

    return drawn(made)


@cases(150, at_least={"several devices": 32}, packing=parts_of(5, 10, 20, most=7))
def test_as_few_devices_as_enumeration_finds(packing: tuple[int, tuple[int, ...]]) -> None:
    size, parts = packing
    bins = pack(parts, size)[0]
    assert bins == enumerated(parts, size)
    count("several devices", bins > 1)


def test_where_first_fit_is_wasteful() -> None:
    # First-fit decreasing takes 3: 6+3, 5+2+2, 2. But 6+2+2 and 5+3+2 fill two.
    assert pack((6, 5, 3, 2, 2, 2), 10)[0] == 2
    # Three parts of more than half need three devices, whatever the volume says.
    assert pack((6, 6, 6), 10)[0] == 3
    assert pack((), 10) == (0, ())


@cases(50, at_least={"several devices": 16}, packing=parts_of(1000, most=60))
def test_no_device_of_a_packing_is_overfull_or_empty(packing: tuple[int, tuple[int, ...]]) -> None:
    size, parts = packing
    bins, where = pack(parts, size)
    load = [0] * bins
    for part, k in zip(parts, where, strict=True):
        load[k] += part
    assert all(0 < used <= size for used in load)
    assert bins >= -(-sum(parts) // size)
    count("several devices", bins > 1)


@cases(100, at_least={"weights beside the sizes": 24}, packing=parts_of(4, 6, 10, 12, 60, 100, most=6))
def test_weights_of_parts_on_a_device_stay_within_the_limit(packing: tuple[int, tuple[int, ...]]) -> None:
    size, given = packing
    assume(given)
    parts = tuple(sorted(set(given)))
    first, *others = found = dual_weights(parts, size)
    assert first == (size, parts)
    count("weights beside the sizes", len(others) > 0)
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


@cases(50, at_least={"several devices": 16}, packing=parts_of(100, most=30))
def test_more_than_at_most_is_said_as_soon_as_it_is_known(packing: tuple[int, tuple[int, ...]]) -> None:
    size, parts = packing
    bins = pack(parts, size)[0]
    for at_most in range(bins + 2):
        assert fewest_bins(parts, len(parts), size, at_most, [0] * len(parts)) == min(bins, at_most + 1)
    count("several devices", bins > 1)
