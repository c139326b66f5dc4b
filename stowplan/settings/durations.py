"""Durations as users write them: ``90s``, ``30m``, ``2h``, ``1d``, ``1h30m``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
LONGEST = timedelta(days=365)
"""Maximum time until a plan expires."""

_PART = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_WHOLE = re.compile(r"(\d{1,9}[smhd])+", re.ASCII)


def read_duration(word: str) -> timedelta:
    """Return a duration such as ``90s``, ``30m``, ``2h``, ``1d`` or ``1h30m``.

    Raises
    ------
    ValueError
        If the text is not a duration.
    """
    if not _WHOLE.fullmatch(word):
        raise ValueError(f"{word!r} is not a duration such as 30m, 2h or 1d")
    seconds = sum(int(number) * UNITS[unit] for number, unit in _PART.findall(word))
    if not 0 < seconds <= LONGEST.total_seconds():
        raise ValueError(f"{word!r} is not a duration such as 30m, 2h or 1d")
    return timedelta(seconds=seconds)


def write_duration(length: timedelta) -> str:
    """Return the text that `read_duration` reads as this duration, in whole seconds."""
    word, left = "", round(length.total_seconds())
    for unit, seconds in UNITS.items():
        number, left = divmod(left, seconds)
        word += f"{number}{unit}" if number else ""
    return word


def _read(value: Any) -> Any:
    return read_duration(value) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(_read), Field(gt=timedelta(), le=LONGEST)]
"""A duration above 0, up to a year; may be given as text."""
