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
    bounding, bounding_room
        Part of that share for the bound and the changes, before a placement is made of them; the second one in tiers
        that count unscheduled pods, of which changes of nodes prove little.
    largest
        Kinds of pods times nodes above which no changes are generated.
    kinds
        Kinds of pods above which no changes are generated.
    rounds
        Rounds of pricing at most.
    drawn
        How far from the best one so far a dual of the master is whose row is violated by one pod, as a share of the
        price of a move.
    tightest
        Share at which pricing ends.
    tightening, loosening
        Factors by which that share falls when the master finds nothing where it looks, and rises when it does.
    close
        Relative gap between master and bound at which pricing ends.
    few
        Share of all pods up to which a limit on moves is first met with the duals of the placement.
    begin
        Share of the time for the linear relaxation, whose duals are tried where those of the placement lead nowhere.
    relaxed
        Relative gap of the linear relaxation at which its duals are taken.
    bisections
        Prices of a move that are tried with the multipliers of the placement, and with those of the relaxation.
    first_budget, budget
        Branching decisions in the search of one node, at the first duals and at later ones.
    largest_budget, more_budget
        The most decisions, and the factor by which they grow where a pricing finds no change that the master lacks.
    whole_share
        Share of the remaining time in which whole changes are searched for.
    branches
        Nodes of the tree in which whole changes are searched for.
    variables, variables_for_room
        (class, node) variables of the first neighborhood, about; the second one in tiers that count unscheduled pods.
    growth
        Factor by which the next neighborhood is larger after one that was solved without gain.
    variables_per_second
        Variables of a neighborhood that are worth a try, for each second that is left.
    work
        Deterministic time of CP-SAT for a neighborhood.
    """

    share: float = 0.7
    early_share: float = 0.4
    bounding: float = 0.7
    bounding_room: float = 0.1
    largest: int = 4_000_000
    kinds: int = 2_000
    rounds: int = 120
    drawn: float = 0.02
    tightest: float = 1e-5
    tightening: float = 0.5
    loosening: float = 2.0
    close: float = 1e-5
    few: float = 0.07
    begin: float = 0.7
    relaxed: float = 1e-3
    bisections: int = 10
    first_budget: int = 400
    budget: int = 30_000
    largest_budget: int = 2_000_000
    more_budget: int = 4
    whole_share: float = 0.3
    branches: int = 2_000
    variables: int = 1_500
    variables_for_room: int = 1_000
    growth: float = 1.6
    variables_per_second: float = 20_000.0
    work: float = 4.0
