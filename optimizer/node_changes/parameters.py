"""Parameters of column generation over changes of nodes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeChangeParameters:
    """How changes of nodes are generated, and which of them are searched.

    Parameters
    ----------
    share, early_share
        Share of the time that is left, and that while tiers above are open.
    bounding
        Part of that share for the bound and the changes, before a placement is made of them.
    largest
        Kinds of pods times nodes above which no changes are generated.
    kinds
        Kinds of pods above which no changes are generated.
    rounds
        Rounds of pricing at most.
    box
        How far a dual of the master may be from the best one so far, as a share of the price of a move.
    least_box
        Share at which pricing ends.
    shrinking, widening
        Factors by which that share falls when the master finds nothing new there, and rises when it is met by a bound.
    close
        Relative gap between master and bound at which pricing ends.
    begin
        Share of the time for the linear relaxation, whose duals are the first ones.
    relaxed
        Relative gap of the linear relaxation at which its duals are taken.
    bisections
        Prices of a move that are tried with the multipliers of the placement, and with those of the relaxation.
    first_budget, budget
        Branching decisions in the search of one node, at the first duals and at later ones.
    whole_share
        Share of the remaining time in which whole changes are searched for.
    branches
        Nodes of the tree in which whole changes are searched for.
    variables
        (class, node) variables of the first neighborhood, about.
    growth
        Factor by which the next neighborhood is larger after one that was solved without gain.
    work
        Deterministic time of CP-SAT for a neighborhood.
    """

    share: float = 0.7
    early_share: float = 0.4
    bounding: float = 0.7
    largest: int = 4_000_000
    kinds: int = 2_000
    rounds: int = 120
    box: float = 0.02
    least_box: float = 1e-4
    shrinking: float = 0.5
    widening: float = 2.0
    close: float = 1e-5
    begin: float = 0.7
    relaxed: float = 1e-3
    bisections: int = 10
    first_budget: int = 400
    budget: int = 30_000
    whole_share: float = 0.3
    branches: int = 2_000
    variables: int = 1_500
    growth: float = 1.6
    work: float = 4.0
