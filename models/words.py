"""Numbers with their nouns, for messages and reports."""

from __future__ import annotations


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Write a number with its noun.

    Parameters
    ----------
    nouns
        The plural, where it is not the noun with an ``s``.
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
