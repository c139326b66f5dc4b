"""Parameters of local search."""

from __future__ import annotations

from dataclasses import dataclass

TenWeights = tuple[float, float, float, float, float, float, float, float, float, float]
"""A number for each move operator."""


@dataclass(frozen=True, slots=True)
class AnnealingParameters:
    """How simulated annealing spends its time, cools, and penalizes what is temporarily violated.

    Parameters
    ----------
    steps_per_second
        Steps that count as a second where the result must not depend on the clock.
    batch
        Steps between looks at the clock.
    rounds
        Shares of the time left to a tier, round by round: `calibration_rounds` short ones, then a long one.
    thorough
        Steps, for every pair of a pod and a node, after which a tier is left.
    tight
        Share of a capacity in use from which on it is tried whether nodes should be overloaded on the way.
    uphill_samples
        Uphill proposals from which the first temperatures are estimated.
    operator_weights
        Relative frequency of each move operator, in the order of ``kernel.metropolis``; if not given, what suits the
        terms of the tier.
    hot_quantile, cool_quantile
        Quantiles, from 0 to 1, of the uphill changes between which the first calibration looks for a temperature.
    above
        Factor by which the range begins above the hot quantile.
    narrowest
        Ratio of the ends of a temperature range once it has been narrowed.
    cooling
        Ratio of the initial to the final temperature of a chain.
    frozen
        Temperature, in whole units of a tier, at which no uphill step is accepted any more.
    held_penalty
        Penalty for the capacity that an average moved pod holds on the node it left, in multiples of the temperature.
    largest_overload
        Overload that a node may have on the way, in shares of what an average node can hold.
    overload_penalty
        Penalty for overloading a node by all that an average node can hold, in multiples of the temperature.
    closing, latest
        Shares of a chain's time after which the overload penalty rises, and after which the chain returns to its
        feasible incumbent.
    closing_decades
        Powers of ten by which the overload penalty would rise during a whole chain.
    calibration_rounds
        Rounds that calibrate temperatures; a long chain follows.
    lengthened
        Multiples of the calibrated temperature between which the long chains begin.
    reheated
        Multiples of the calibrated temperature between which chains begin that continue an annealed placement.
    sampled_pods
        Pods drawn at a time as starting points of steps.
    node_powers
        A node is drawn with its cost to one of these powers.
    tie_break
        Initial temperature of the preference for fuller and emptier nodes that breaks ties, in average nodes.
    longest_lists
        Slots of the pod lists of all nodes together, up to which each list holds whatever fits.
    extra_slots
        Slots of every list beyond that.
    staying_weight
        Factor of the overload of a capacity that stays charged on the node that a pod left.
    """

    steps_per_second: int = 1_000_000
    batch: int = 20_000
    rounds: tuple[float, ...] = (0.04, 0.08, 0.2, 1.0)
    thorough: int = 1000
    tight: float = 0.75
    uphill_samples: int = 2000
    operator_weights: TenWeights | None = None
    hot_quantile: float = 0.75
    cool_quantile: float = 0.25
    above: float = 8.0
    narrowest: float = 4.0
    cooling: float = 1000.0
    frozen: float = 0.1
    held_penalty: float = 1.0
    largest_overload: float = 0.1
    overload_penalty: float = 100.0
    closing: float = 0.4
    latest: float = 0.8
    closing_decades: float = 20.0
    calibration_rounds: int = 3
    lengthened: tuple[float, float] = (1 / 2, 8.0)
    reheated: tuple[float, float] = (1 / 16, 1 / 4)
    sampled_pods: int = 1000
    node_powers: tuple[float, ...] = (1.0, 2.0)
    tie_break: float = 0.3
    longest_lists: int = 10_000_000
    extra_slots: int = 64
    staying_weight: float = 5.0
