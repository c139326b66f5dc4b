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
    first_share
        The same before changes of nodes are searched, under a limit on moves.
    leaving_share
        Share of the time that is left for taking pods away from nodes that a tier charges.
    settling_share
        Share of the time that is left for improving the next tier, with the nodes in use that were left.
    bounding
        Share of the time that is left for a bound, which says how many nodes can be closed at most.
    bold
        Share of what that leaves which is closed together at most. The number doubles after a success, and is halved
        after a failure.
    few_stuck
        Share of the nodes closed together that are few if they still hold pods: others are tried before those again.
    dearest_move
        Highest price of a share of the moves that there may be, in shares of the room that is left: where moves
        end before all nodes are named that could be closed, the price doubles.
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
    first_share: float = 0.6
    leaving_share: float = 0.3
    settling_share: float = 0.4
    bounding: float = 0.1
    bold: float = 0.7
    few_stuck: float = 0.5
    dearest_move: float = 1024.0
    trial: float = 0.05
    shortest: float = 0.3
    shortest_of_pod: float = 2e-4
    longest: float = 20.0
    scarcity: float = 2.0
    unit: float = 1000.0
