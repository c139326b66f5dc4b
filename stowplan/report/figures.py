"""What every report counts with; nothing heavy is imported here."""

from __future__ import annotations

SHOWN_MOVES = 20
"""Moves that a table shows; ``-o wide`` shows all."""


def plural(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
