"""Parameters of search and bounds for costs that read the final state as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stowplan.optimizer.deadline import Deadline


@dataclass(frozen=True, slots=True)
class Temperatures:
    """How hot a search on the exact cost is.

    Parameters
    ----------
    least_hot, heating, hottest
        The first temperature as a multiple of what moves change in the middle: the least one, how much it rises with
        each trial of a pair of a class and a node for which there is time, and the highest one.
    coolest
        Temperature at the end of a round, as a multiple of that at its beginning.
    trials_of_rounds, trials_of_more
        Trials of each such pair from which there are two rounds, and for which there are two more.
    cool, reheated
        How hot every other round begins, and each of the others but the first, as multiples of the first temperature.
    """

    least_hot: float
    heating: float
    hottest: float
    coolest: float
    trials_of_rounds: float
    trials_of_more: float
    cool: float
    reheated: float


@dataclass(frozen=True, slots=True)
class FinalStateParameters:
    """How a cost of the final state is minimized and bounded.

    Parameters
    ----------
    surrogate_share, long_surrogate_share, limited_surrogate_share, small_surrogate_share
        Share of the time for the engines that search on the surrogate terms; the long one where a tier above is open,
        the limited one where pods wait besides, and moves are limited; and the most where branch and bound has a
        process of its own from the beginning.
    bound_share
        Share of what is left then for the bound.
    beside_seconds, beside_margin
        Where the bound is worked on by a process beside the search: seconds that must be left beside those for its
        tables, and seconds that it has less than the search.
    library_bytes, bytes_per_pair
        Memory of such a process, and what it takes for each pair of a class and a node.
    split_share, short_split_share, loads_share
        Share of that for loads and the cost of the final state each by itself, where a tier has both, and where there
        is time for a linear program over patterns besides; and the part of it for the loads.
    prepared
        Pairs of a class and a node that the bound reads in a second: where it has less time than that, it is left out.
    prepared_from_start, start_bytes_per_pair
        Pairs that the bound from the start reads in a second, which takes its place then, and the memory for each; with
        twice the time it asks what classes cost that rest. The search that asks plugins begins no faster.
    enumerated, enumeration_share
        Placements up to which all are listed, and the share of the time for that.
    descent_share, short_descent_share, waiting_share
        Share of what is left before the bound for the descent from today's placement; the short one where a tier above
        is open; and the part of that for placing pods where moves are limited, which the surrogates do with more time.
    compared, most_compared
        Descent: moves of which the best is made, in deterministic mode, and at most where time allows.
    in_vain, rounds_ahead
        Descent: moves after which it ends if none gains, and steps for which time is kept at most.
    tried
        Targets of a pod that are tried, the most promising first.
    swapped
        Pods on a full target that are tried in exchange.
    measured, measuring, longest_measuring
        The search first makes moves that improve something, until it has measured so many and spent the second share of
        the time, and no longer than the third.
    least_hot, heating, hottest, coolest, trials_of_rounds, trials_of_more, cool, reheated
        `Temperatures` of the search that asks plugins.
    compiled_least_hot, compiled_heating, compiled_hottest, compiled_coolest, compiled_trials_of_rounds
        The first five of the compiled search, which makes a hundred times as many trials.
    compiled_trials_of_more
        And the next; the others are the same.
    pause
        Seconds between two placements that the search hands over; each is evaluated anew.
    trials
        Moves tried per unit of work in deterministic mode.
    work
        Compiled search: nodes that are looked at for a pod, per unit of work in deterministic mode.
    first_batch, batch_seconds, longest_batch
        Compiled search: steps before the clock is read first, seconds between two looks at it, and steps at most.
    measured_steps
        Compiled search: of how many steps the changes are kept, to choose a temperature.
    swaps
        Compiled search: share of the steps that exchange two pods.
    sure
        Compiled search: share of the steps that must not be better than they seem at first by more than the margin up
        to which steps are scored to the end.
    most_walked_pairs, walked_bytes_per_pair, tabled_pairs
        Compiled search: pairs of a class and a node up to which there is one, the memory for each, and of how many
        tables are made in a second; there is none where they take more than a quarter of the time.
    iterations, stepped_pairs
        Steps of the subgradient method per unit of work in deterministic mode; more where there are fewer pairs of a
        class and a node than these.
    most_steps, most_rounds
        Steps of the subgradient method in all, and of generating patterns, after which the bound is taken as it is.
    finest_share
        Least difference between shares of the first prices that are tried.
    rate, finest_rate, memory
        Length of the first step of the subgradient method, in what pods are worth on average, halved for each further
        run from the best point, and the least one; share of the last direction in the next one.
    many_steps, probed
        How many steps there must be time for to make some from each of two beginnings, and how many; with fewer, the
        first one has half the length.
    in_vain_steps
        Steps after which a run ends if the bound has not risen.
    patience, least_rise
        Steps after which a run ends unless it has come so much nearer to the incumbent's value, as a share.
    kept_every
        Steps after which patterns are kept again.
    largest_program, pairs_a_second, most_pairs
        Classes times nodes above which there is no linear program over patterns, only the subgradient method; how many
        more there may be by second of the time, and in all.
    branched_nodes, branched_pairs, branching_share
        Nodes, and pairs of a class and a node that can hold its pods, up to which placements are divided by the numbers
        of pods on nodes; and the share of the bound's time for that.
    before_branching
        Share of that for a search before.
    boxes
        Boxes of that division per unit of work in deterministic mode.
    toward_master
        How far to go from the best multipliers to those of the master.
    rounds
        Steps of generating patterns per unit of work in deterministic mode.
    """

    surrogate_share: float = 0.35
    long_surrogate_share: float = 0.6
    limited_surrogate_share: float = 0.75
    small_surrogate_share: float = 0.15
    bound_share: float = 0.35
    beside_seconds: float = 5.0
    beside_margin: float = 0.5
    library_bytes: int = 300_000_000
    bytes_per_pair: int = 260
    split_share: float = 0.6
    short_split_share: float = 0.2
    loads_share: float = 0.6
    prepared: int = 500_000
    prepared_from_start: int = 1_500_000
    start_bytes_per_pair: int = 40
    enumerated: int = 4_000
    enumeration_share: float = 0.5
    descent_share: float = 0.2
    short_descent_share: float = 0.1
    waiting_share: float = 0.3
    compared: int = 12
    most_compared: int = 80
    in_vain: int = 60
    rounds_ahead: int = 50
    tried: int = 3
    swapped: int = 3
    measured: int = 50
    measuring: float = 0.03
    longest_measuring: float = 0.1
    least_hot: float = 0.15
    heating: float = 0.08
    hottest: float = 2.5
    coolest: float = 0.015
    trials_of_rounds: float = 5.0
    trials_of_more: float = 100.0
    cool: float = 0.25
    reheated: float = 0.5
    compiled_least_hot: float = 0.12
    compiled_heating: float = 0.0001
    compiled_hottest: float = 0.25
    compiled_coolest: float = 0.1
    compiled_trials_of_rounds: float = 5_000.0
    compiled_trials_of_more: float = 10_000.0
    pause: float = 1.0
    trials: int = 150
    work: int = 100_000_000
    first_batch: int = 20
    batch_seconds: float = 0.03
    longest_batch: int = 20_000
    measured_steps: int = 2_000
    swaps: float = 0.5
    sure: float = 0.98
    most_walked_pairs: int = 20_000_000
    walked_bytes_per_pair: int = 150
    tabled_pairs: int = 500_000
    iterations: int = 30
    stepped_pairs: int = 100_000
    most_steps: int = 20_000
    most_rounds: int = 600
    finest_share: float = 0.1
    rate: float = 0.4
    finest_rate: float = 0.0125
    many_steps: int = 300
    probed: int = 30
    in_vain_steps: int = 25
    memory: float = 0.9
    patience: int = 100
    least_rise: float = 0.005
    kept_every: int = 10
    largest_program: int = 8_000
    pairs_a_second: float = 10_000.0
    most_pairs: int = 120_000
    branched_nodes: int = 8
    branched_pairs: int = 500
    branching_share: float = 0.85
    before_branching: float = 0.1
    boxes: int = 300
    toward_master: float = 0.1
    rounds: int = 10

    @property
    def temperatures(self) -> Temperatures:
        """Those of the search that asks plugins."""
        return Temperatures(
            self.least_hot,
            self.heating,
            self.hottest,
            self.coolest,
            self.trials_of_rounds,
            self.trials_of_more,
            self.cool,
            self.reheated,
        )

    @property
    def compiled_temperatures(self) -> Temperatures:
        """Those of the compiled search."""
        return replace(
            self.temperatures,
            least_hot=self.compiled_least_hot,
            heating=self.compiled_heating,
            hottest=self.compiled_hottest,
            coolest=self.compiled_coolest,
            trials_of_rounds=self.compiled_trials_of_rounds,
            trials_of_more=self.compiled_trials_of_more,
        )

    def knows_changes(self, changes: int, spent: float) -> bool:
        """Whether enough changes are measured for a temperature, or there is no more time to measure them.

        Parameters
        ----------
        spent
            The share of the time that is spent.
        """
        enough = changes >= self.measured and spent >= self.measuring
        return enough or (changes > 0 and spent >= self.longest_measuring)

    def steps(self, pairs: int, deadline: Deadline) -> int:
        """Return how many steps of the subgradient method there may be."""
        if not deadline.deterministic:
            return self.most_steps
        more = max(1.0, self.stepped_pairs / max(1, pairs))
        return min(self.most_steps, max(5, int(self.iterations * deadline.seconds * more)))

    def in_time(self, pairs: int, deadline: Deadline) -> bool:
        """Whether there is time to solve a linear program over patterns of so many pairs of a class and a node."""
        seconds = 0.0 if deadline.deterministic else deadline.remaining
        return pairs <= min(self.pairs_a_second * seconds, self.most_pairs)

    def programmed(self, pairs: int, deadline: Deadline) -> bool:
        """Whether to begin with such a program."""
        return pairs <= self.largest_program or self.in_time(pairs, deadline)
