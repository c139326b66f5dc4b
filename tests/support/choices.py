"""Where generators of test data get their numbers from: drawn by hypothesis, which shrinks them, or from a seed."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from hypothesis import strategies as st

from stowplan.models.arrays import Ints

T = TypeVar("T")
P = ParamSpec("P")


class Choices(ABC):
    """Numbers for a generator. Whatever it makes of the least numbers should be the plainest case."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """Return a number from ``low`` to ``high``, both included."""

    def one(self, options: Sequence[T]) -> T:
        """Return one of the options; the first is the plainest. Options listed twice come twice as often."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, share: float) -> bool:
        """Return true in about such a share of the cases; the plainest answer is no."""
        return self.integer(0, 99) >= 100 - round(100 * share)

    def some(self, options: Sequence[T], number: int) -> list[T]:
        """Return so many different options, in any order; the plainest are the first ones."""
        left = list(options)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(number)]

    def any_order(self, options: Sequence[T]) -> list[T]:
        """Return all options in any order; the plainest is the given one."""
        return self.some(options, len(options))

    def subset(self, options: Sequence[T], share: float = 0.5) -> list[T]:
        """Return those options that chance picks, each with the same share, in their order."""
        return [option for option in options if self.chance(share)]

    def array(self, shape: int | tuple[int, ...], low: int, high: int) -> Ints:
        """Return an array of numbers from ``low`` to ``high``, both included."""
        numbers = [self.integer(low, high) for _ in range(int(np.prod(shape)))]
        return np.array(numbers, dtype=np.int64).reshape(shape)


class Drawn(Choices):
    """Numbers that hypothesis draws, each from a strategy of its own.

    Of each case that it draws, hypothesis tries up to five more in which one part is a copy of another part of the same
    strategy. Where all numbers are of one strategy, five of six cases differ in one number alone; measured on rules
    that 41 % of the cases should have, 60 cases had 13 % or 67 %, by chance.
    """

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._drawn = 0

    def integer(self, low: int, high: int) -> int:
        self._drawn += 1
        base = self._drawn << 40
        return self._draw(st.sampled_from(range(base + low, base + high + 1))) - base


class Seeded(Choices):
    """Numbers that follow from a seed, where one fixed case is wanted."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


def drawn(generator: Callable[Concatenate[Choices, P], T], *args: P.args, **options: P.kwargs) -> st.SearchStrategy[T]:
    """Return the strategy of whatever a generator makes of drawn numbers."""

    @st.composite
    def made(draw: st.DrawFn) -> T:
        return generator(Drawn(draw), *args, **options)

    return made()


def steps(most: int, width: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Return the strategy of walks: up to so many steps of two or three numbers, to be taken modulo what there is."""
    base = 240

    def walk(choices: Choices) -> list[tuple[int, ...]]:
        drawn_steps = [choices.integer(0, base**width - 1) for _ in range(choices.integer(1, most))]
        return [tuple(step // base**i % base for i in range(width)) for step in drawn_steps]

    return drawn(walk)
