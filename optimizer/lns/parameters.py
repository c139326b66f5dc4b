"""Parameters of large neighborhood search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LnsParameters:
    """How sub-problems are chosen, sized and limited. *Work* is CP-SAT's deterministic time; a unit is about 6 seconds.

    Parameters
    ----------
    round_size
        Sub-problems of one round, where the result must not depend on how many are solved at a time.
    seconds_per_work
        Seconds for a unit of work after which a sub-problem is cut off in any case, where the clock counts.
    seconds_of_work
        Seconds that a unit of work counts as, where the result must not depend on the clock.
    overhead
        Work that is charged for choosing and building a sub-problem.
    patience
        Sub-problems in a row without improvement after which to give up.
    offer_every
        Seconds between incumbents that are handed out, since the receiver evaluates each of them again.
    move_share
        Share of the sub-problems that destroy moves where only moves can cost less.
    fruitless
        Attempts in a row to choose a sub-problem after which there is none.
    first_size
        Variables of the first sub-problem of each destroy operator.
    smallest, largest
        Variables between which sizes adapt.
    growth, shrinkage
        Factors of the size after a sub-problem that was solved quickly, and after one that was cut off.
    quick
        Share of the granted work up to which a sub-problem was solved quickly.
    memory
        Weight of the past in the averages of weights, gains and success rates.
    exploration
        Weight that every destroy operator has in any case, relative to the best one.
    least_work, most_work
        Work between which the limit of a sub-problem adapts.
    rare, frequent
        Success rate below which sub-problems are granted more work, and above which less.
    worthwhile
        Share of a usual gain from which on a sub-problem counts as a success.
    most_nodes
        Nodes that are considered for one sub-problem.
    fewest_nodes
        Nodes below which classes are left out instead.
    waiting_share
        Share of a sub-problem's variables that unplaced pods may take.
    seldom
        Share of the sub-problems that include unplaced pods although these cost nothing in the tier.
    exchanged_pods, offered_pods
        Pods of a node that may leave, and pods elsewhere that may replace them, that ``exchange`` evaluates.
    longest_chain
        Nodes after which a chain of moves is long enough.
    traced_classes, tied_nodes
        Classes of a node whose moves are followed, and nodes to which that leads.
    """

    round_size: int = 4
    seconds_per_work: float = 12.0
    seconds_of_work: float = 6.0
    overhead: float = 0.005
    patience: int = 200
    offer_every: float = 1.0
    move_share: float = 0.75
    fruitless: int = 20
    first_size: int = 100
    smallest: int = 40
    largest: int = 4000
    growth: float = 1.25
    shrinkage: float = 0.8
    quick: float = 0.4
    memory: float = 0.9
    exploration: float = 0.05
    least_work: float = 0.02
    most_work: float = 0.5
    rare: float = 0.15
    frequent: float = 0.6
    worthwhile: float = 0.1
    most_nodes: int = 200
    fewest_nodes: int = 3
    waiting_share: float = 0.3
    seldom: float = 0.2
    exchanged_pods: int = 16
    offered_pods: int = 2000
    longest_chain: int = 64
    traced_classes: int = 16
    tied_nodes: int = 8
