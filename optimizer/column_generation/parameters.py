"""Parameters of column generation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColumnGenerationParameters:
    """Sizes up to which patterns are tried, and the work that each step may take. *Work* is candidates examined.

    Parameters
    ----------
    work_per_second
        Candidates that pricing examines in about a second.
    first_fill_share, refutation_share, first_proof_share, generation_share
        Shares of the remaining time for what comes once, in this order: filling nodes, refuting the bound, proving it
        while there are few patterns, and generating columns.
    short_share
        Share of the remaining time of a certificate, of the quick enumeration, and of the fillings of a round.
    step_share
        Share of the remaining time of each dive, enumeration and integer program of a round.
    rows
        Inequalities that patterns obey at most; capacities come first, and further rules are left out.
    largest_structure
        Kinds of classes times groups of nodes above which there is no column generation.
    quick_enumeration, longest_enumeration
        Work of an enumeration that may not end, at first and at most.
    few_patterns, many_patterns
        Patterns up to which an enumeration goes into an integer program, before the duals have converged and at most.
    largest_table
        Patterns times kinds that an enumeration lists at most.
    attempts
        Rounds of dives, enumerations and integer programs at most.
    dives
        Dives between enumerations.
    filled_groups
        Groups of nodes up to which nodes are filled one by one.
    fills, first_fills
        Randomized fillings at a time, and before anything else is tried.
    idle
        Rounds without progress after which to give up.
    restricted_patterns
        Patterns in the integer program that only looks for a better placement.
    smoothing
        Weight of the best duals so far in the duals at which pricing is done (Wentges 1997).
    greedy_columns
        Greedy patterns that enter the master at once, for each group.
    short_pricing, long_pricing
        Work of pricing one group when patterns are wanted, and when a bound is wanted.
    certified_share
        Share of the remaining time that pricing all groups for a bound may take.
    largest_pool
        Patterns up to which more are generated.
    epsilon
        Smallest reduced cost that counts, relative to the highest dual.
    simplex_work
        Work that a simplex iteration counts as, for each row and column.
    shortest_solve
        Seconds that the master's linear program is granted in any case.
    kept_patterns
        Patterns kept of one exact pricing: the last ones found, which are the best.
    listed_multisets
        Multisets that meet in the middle lists at most, where a single enumeration has to pay for it.
    rare
        Ratio of possible to acceptable amounts of the key row from which on meet in the middle is worth it.
    share_grid
        Steps of a device that the cutting stock program distinguishes; smaller shares are rounded down.
    share_rounds
        Columns of the cutting stock program that are generated at most.
    core_multisets
        Multisets listed at most for core items, in all groups together.
    core_items
        Core items after which it is more likely that the value can be reached.
    core_patterns
        Patterns of core items beyond which there is little hope of a proof.
    core_work
        Work for the patterns of one core item at most.
    core_large
        Share of the largest kind's size from which on kinds with many pods come first.
    fixed_together
        Fraction of a pattern from which on it is fixed together with others in a dive.
    dive_pricings
        Rounds of pricing before the next fixing.
    dive_noise
        Share by which counts are lowered at random, where dives are to differ.
    fill_work
        Work of filling one node.
    fill_power
        Largest power of a pod's size that values it when nodes are filled.
    """

    work_per_second: int = 40_000_000
    first_fill_share: float = 0.1
    refutation_share: float = 0.9
    first_proof_share: float = 0.4
    generation_share: float = 0.5
    short_share: float = 0.2
    step_share: float = 0.3
    rows: int = 48
    largest_structure: int = 24_000
    quick_enumeration: int = 3_000_000
    longest_enumeration: int = 400_000_000
    few_patterns: int = 12_000
    many_patterns: int = 60_000
    largest_table: int = 30_000_000
    attempts: int = 60
    dives: int = 4
    filled_groups: int = 12
    fills: int = 200
    first_fills: int = 12
    idle: int = 3
    restricted_patterns: int = 3_000
    smoothing: float = 0.5
    greedy_columns: int = 40
    short_pricing: int = 3_000_000
    long_pricing: int = 40_000_000
    certified_share: float = 0.3
    largest_pool: int = 60_000
    epsilon: float = 1e-7
    simplex_work: float = 0.5
    shortest_solve: float = 0.05
    kept_patterns: int = 24
    listed_multisets: int = 400_000
    rare: int = 2_000
    share_grid: int = 4096
    share_rounds: int = 200
    core_multisets: int = 8_000_000
    core_items: int = 12
    core_patterns: int = 4_000
    core_work: int = 300_000_000
    core_large: float = 0.8
    fixed_together: float = 0.75
    dive_pricings: int = 2
    dive_noise: float = 0.4
    fill_work: int = 100_000
    fill_power: float = 1.4
