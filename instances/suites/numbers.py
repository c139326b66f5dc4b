"""Files that are nothing but whole numbers between blanks, taken one group after the other."""

from __future__ import annotations

import re

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.errors import InputError

LONGEST = 18
"""Digits of a number that certainly fits into 64 bits."""

_TOO_LONG = re.compile(rb"[0-9]{%d,}" % (LONGEST + 1))
_FOREIGN = {False: re.compile(rb"[^0-9\s]\S*"), True: re.compile(rb"(?:(?<=[0-9])-|(?!-[0-9]+(?:\s|$))[^0-9\s])\S*")}
_WANTED = {False: "an integer of 0 or more", True: "an integer"}


class Numbers:
    """The numbers of one file.

    Parameters
    ----------
    name
        The file, for messages.
    data
        What the file holds.
    signed
        Whether numbers may be negative.

    Raises
    ------
    InputError
        If anything in it is not a whole number, with its line.
    """

    def __init__(self, name: str, data: bytes, *, signed: bool = False) -> None:
        self.name = name
        for pattern, what in ((_FOREIGN[signed], f"is not {_WANTED[signed]}"), (_TOO_LONG, "is too large")):
            if found := pattern.search(data):
                line = data.count(b"\n", 0, found.start()) + 1
                word = found.group()[:40].decode("utf-8", "replace")
                raise InputError(f"{word!r} {what}", file=name, field=f"line {line}")
        self._numbers: Ints = np.fromstring(data.decode("ascii"), dtype=np.int64, sep=" ")
        self._at = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def take(self, count: int, what: str) -> Ints:
        """Return the next ``count`` numbers.

        Raises
        ------
        InputError
            If the file ends before; ``what`` says what is missing.
        """
        end = self._at + count
        if end > len(self._numbers):
            raise InputError(f"ends after {len(self)} numbers; {what} must follow", file=self.name)
        taken = self._numbers[self._at : end]
        self._at = end
        return taken

    def one(self, what: str) -> int:
        """Return the next number."""
        return int(self.take(1, what)[0])

    def count(self, what: str) -> int:
        """Return the next number, which says how many of something follow."""
        count = self.one(what)
        if count < 0:
            raise InputError(f"{what} is {count}; must be 0 or more", file=self.name)
        return count

    def table(self, rows: int, columns: int, what: str) -> Ints:
        """Return the next ``rows · columns`` numbers as a table."""
        return self.take(rows * columns, what).reshape(rows, columns)

    def rest(self) -> Ints:
        """Return all numbers that are left."""
        return self.take(len(self) - self._at, "nothing")

    def finish(self) -> None:
        """Make sure that nothing is left.

        Raises
        ------
        InputError
            If there is.
        """
        if left := len(self) - self._at:
            raise InputError(f"has {left} more numbers after its end", file=self.name)
