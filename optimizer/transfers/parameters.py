"""Parameters of the integer program over transfers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransferParameters:
    """When transfers are searched, and for how long.

    Parameters
    ----------
    share, later_share
        Share of the time that is left: for a tier that counts pods or nodes where moves are limited, and for one that
        counts moves alone.
    largest
        Variables above which no program is made.
    variables_per_second
        Variables of a program that are worth a try, for each second that is granted.
    bytes_per_variable
        Memory that a solver needs for a variable, in bytes.
    """

    share: float = 0.5
    later_share: float = 0.3
    largest: int = 30_000
    variables_per_second: float = 5_000.0
    bytes_per_variable: int = 20_000
