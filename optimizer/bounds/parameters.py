"""Parameters of lower bounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoundParameters:
    """Which bounds are computed, and how hard each of them tries.

    Parameters
    ----------
    near
        Share of a tier's value: an expensive bound that leaves out terms is skipped where a cheap one is this near.
    small
        (class, node) variables up to which no bound is expensive.
    lagrangian_variables
        Kinds times nodes above which the linear relaxation of all nodes is not solved.
    lagrangian_kinds
        Kinds of pods above which there is no Lagrangian bound: a step of its interior point method solves dense
        equations over them.
    alike, alike_share
        How many nodes there must be for each that is left if moves cost nothing, for multipliers to be computed so
        first, and the share of the time for searching nodes at these multipliers.
    alike_variables
        Kinds times nodes above which there is no Lagrangian bound at all.
    alike_seconds
        Time for that where there is no other.
    closeness
        Relative gaps between primal and dual of the linear relaxation at which its multipliers are tried. Those of the
        interior of the optimal face are often better in whole pods than those of a vertex, and are known earlier.
    first_budget, last_budget
        Branching decisions in the search of one node, for each multipliers tried, and for the best ones.
    ray_trials
        Trials along the ray of scaled multipliers.
    first_ray_step
        Relative length of the first step along that ray.
    component_share
        Share of the remaining time for solving one component as a whole.
    component_patterns
        Patterns of all nodes of a component up to which it is solved as a whole.
    chunk
        Nodes between looks at the clock.
    interior_steps
        Steps of the interior point method at most; it needs thirty to eighty.
    step_share
        Share of the way to the boundary that a step may go.
    linear_fine
        Variables of the linear relaxation up to which every node is a group of its own.
    linear_largest, linear_rate
        Variables above which there is no linear relaxation, and how many of them are written down in a second at least:
        half of the time must be left to solve it.
    """

    near: float = 0.001
    small: int = 5_000
    lagrangian_variables: int = 4_000_000
    lagrangian_kinds: int = 2_000
    alike: int = 10
    alike_share: float = 0.1
    alike_variables: int = 16_000_000
    alike_seconds: float = 1.0
    closeness: tuple[float, ...] = (5e-3, 1e-5)
    first_budget: int = 2_000
    last_budget: int = 20_000
    ray_trials: int = 8
    first_ray_step: float = 0.1
    component_share: float = 0.25
    component_patterns: int = 20_000
    chunk: int = 16
    interior_steps: int = 120
    step_share: float = 0.995
    linear_fine: int = 20_000
    linear_largest: int = 60_000
    linear_rate: float = 5_000.0
