"""Parameters of the integer program over transfers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransferParameters:
    """When transfers are searched, and for how long.

    Parameters
    ----------
    share, room_share, moves_share
        Share of the time that is left: for a tier that counts nodes in use alone, one that counts unscheduled pods
        alone, and for others.
    far, far_share
        The gap, as a share of the value, above which a tier that counts nodes in use has a smaller share of the time.
    early_variables
        (class, node) variables up to which unscheduled pods are searched before walks and CP-SAT, and not after them.
    largest_here, largest
        Variables up to which a program is solved in this process, and above which none is made.
    variables_per_second
        Variables of a program that are worth a try, for each second that is granted.
    bytes_per_variable
        Memory that a solver needs for a variable, in bytes.
    """

    share: float = 0.5
    room_share: float = 0.15
    moves_share: float = 0.6
    far: float = 0.06
    far_share: float = 0.15
    early_variables: int = 4_000
    largest_here: int = 1_000
    largest: int = 30_000
    variables_per_second: float = 5_000.0
    bytes_per_variable: int = 20_000
