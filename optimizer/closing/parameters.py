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
    bounding
        Share of the time that is left for a bound, which says how many nodes can be closed at most.
    bold
        Share of what that leaves which is closed together at most. The number doubles after a success, and is halved
        after a failure.
    trial
        Share of the time that is left for each trial.
    shortest, shortest_of_pod, longest
        Least seconds of a trial, at all and for each pod, and most seconds. In less, a walk that begins hot leaves more
        on the nodes that shall be closed than was there.
    scarcity
        Power of a capacity's use in what a pod counts: what is scarce decides which pods fit.
    unit
        What a pod of mean size counts, in whole numbers.
    """

    share: float = 0.5
    settling_share: float = 0.4
    bounding: float = 0.1
    bold: float = 0.7
    trial: float = 0.05
    shortest: float = 0.3
    shortest_of_pod: float = 2e-4
    longest: float = 20.0
    scarcity: float = 2.0
    unit: float = 1000.0
