"""What can be chosen about the search for a way from one placement to another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReconfigurationParameters:
    """Parameters of the search for a way; a unit of temperature is a pod that is not where it shall be.

    Parameters
    ----------
    largest_table
        Pairs of class and node up to which a way is searched.
    hottest, coldest, coldest_part
        Temperatures at the beginning and at the end of a try, and at the end of the search for a shorter part.
    temperatures
        How many there are between them.
    share
        Share of the work for rearrangements.
    homing
        Shares of the other steps in which a pod goes where it shall be, one after the other: many find near ways soon,
        few find far ones.
    first_work
        Looks at single nodes of the first try, for each pod; each further one has twice as many, until one succeeds.
    first_share
        Share of the time after which no further try begins; the rest is for a shorter way.
    work_at_once
        Looks between two questions for the time.
    shortest_part
        Moves of the shortest part of a way for which another one is searched.
    part_work
        Looks of such a search, for each move of the part.
    longest_part
        Moves that such a search writes down at most, for each move of the part.
    round_parts
        Parts that a thread looks at before the threads compare their ways.
    idle_rounds
        Rounds without a shorter way after which the search ends.
    moves_at_first
        Moves that a way may have for each pod that comes to be elsewhere, and for as many pods more, before shorter
        ones are searched.
    most_moves
        The same for the shortest way that was found; longer ones are none.
    longest
        Moves that are written down at most.
    work_per_second
        Looks that count as a second in deterministic mode.
    """

    largest_table: int = 3_000_000
    hottest: float = 0.9
    coldest: float = 0.15
    coldest_part: float = 0.05
    temperatures: int = 50
    share: float = 0.5
    homing: tuple[float, ...] = (0.2, 0.05)
    first_work: int = 2_000
    first_share: float = 0.5
    work_at_once: int = 200_000
    shortest_part: int = 4
    part_work: int = 5_000
    longest_part: int = 100
    round_parts: int = 20
    idle_rounds: int = 10
    moves_at_first: float = 30.0
    most_moves: float = 3.0
    longest: int = 1 << 18
    work_per_second: int = 5_000_000
