"""Parameters of constructive heuristics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConstructiveParameters:
    """How much constructive heuristics look at.

    Parameters
    ----------
    share
        Share of the time left of a turn.
    seconds, of_node
        The most seconds of a turn where nothing limits moves: at all, or for each node where that is longer.
    waiting_seconds, waiting_of_node
        The same where moves are limited and pods wait.
    spreading_share, spreading_of_node
        Share and seconds for each node of the first turn where a tier counts only pods in domains.
    steps
        Pods that each heuristic tries to move or to place at most, so that the work is limited where no clock is read.
    attempts
        Moves that steepest descent tries at most: those that a rule forbids count here, and not as steps.
    emptying_steps
        The same for emptying nodes, where each step costs less.
    spreading_steps
        The same for spreading, which looks at one class at a time.
    leveling_share
        Share of the first turn where leveling suits.
    leveling_rounds, leveling_worth, leveling_patience
        Rounds of leveling at most, and how many rounds in a row may gain less than this share of the best one.
    leveling_sample
        Classes by which it is told which nodes are cheap.
    clearing_share, clearing_of_node
        Share and seconds for each node of the first turn where nodes are cleared.
    clearing_table
        Classes times nodes from which nodes are cleared: in smaller clusters, emptying them one by one does as much.
    clearing_first, clearing_last, clearing_done, clearing_vain
        Share of the nodes in use that are to be cleared at first; it is halved whenever some, but no more than a part
        of them are emptied, until it is smaller than the last one. It ends after several choices in vain.
    clearing_rounds
        Rounds for one choice of nodes at most.
    clearing_trials
        Nodes that are tried for a pod in a round.
    clearing_worth, clearing_patience
        How many rounds in a row may move pods of no more than this share of the nodes that are not empty yet.
    largest
        Pods or nodes above which no heuristic runs, since each step looks at all of them.
    table
        Entries of the largest table of marginal costs; where there are more classes and nodes, only the nodes that are
        cheapest to add to can receive pods.
    counters
        Domains of all terms that count pods in domains above which steepest descent does not run, since each term is
        tabulated for them.
    sample
        Classes by which it is told which nodes are cheap.
    ejecting_pods
        Pods without a node for which room is to be made at most.
    ejecting_trials
        Nodes on which room is to be made for a pod, those with the fewest leavers first.
    emptying_trials, insertion_trials
        Nodes that are tried for a pod before it stays where it is.
    """

    share: float = 0.15
    seconds: float = 2.5
    of_node: float = 6e-4
    waiting_seconds: float = 0.5
    waiting_of_node: float = 1e-3
    spreading_share: float = 0.6
    spreading_of_node: float = 4e-3
    steps: int = 400
    attempts: int = 6_000
    emptying_steps: int = 4_000
    spreading_steps: int = 20_000
    leveling_share: float = 0.25
    leveling_rounds: int = 60
    leveling_worth: float = 0.03
    leveling_patience: int = 3
    leveling_sample: int = 24
    clearing_share: float = 0.4
    clearing_of_node: float = 2e-3
    clearing_table: int = 150_000_000
    clearing_first: float = 0.2
    clearing_last: float = 0.02
    clearing_done: float = 0.5
    clearing_vain: int = 4
    clearing_rounds: int = 200
    clearing_trials: int = 8
    clearing_worth: float = 0.01
    clearing_patience: int = 5
    largest: int = 1_000_000
    table: int = 2_000_000
    counters: int = 50_000_000
    sample: int = 200
    ejecting_pods: int = 60
    ejecting_trials: int = 24
    emptying_trials: int = 12
    insertion_trials: int = 24
