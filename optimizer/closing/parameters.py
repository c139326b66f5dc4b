"""Parameters of the closing of nodes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClosingParameters:
    """How many nodes are closed at once, and for how long that is tried.

    Parameters
    ----------
    share
        Share of the time that is left for closing the nodes of a tier.
    settling_share
        Share of the time that is left for improving the next tier, with the nodes in use that were left.
    first
        Share of the nodes that are closed together at first. The number doubles after a success, and is halved after
        a failure.
    trial
        Share of the time that is left for each trial.
    shortest, longest
        Least and most seconds of a trial.
    scarcity
        Power of a capacity's use in what a pod counts: what is scarce decides which pods fit.
    unit
        What a pod of mean size counts, in whole numbers.
    """

    share: float = 0.5
    settling_share: float = 0.4
    first: float = 0.02
    trial: float = 0.05
    shortest: float = 0.5
    longest: float = 10.0
    scarcity: float = 2.0
    unit: float = 1000.0
