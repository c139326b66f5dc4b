"""Parameters of the division into regions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RegionParameters:
    """When nodes are divided among workers, and for how long.

    Parameters
    ----------
    least_nodes
        Nodes of a region at least: fewer leave their pods too little choice.
    per_worker
        Regions for each worker at most.
    share
        Share of the time that is left for all rounds together.
    least_seconds
        Seconds of a round at least; a worker needs some of them to read its region.
    rounds
        How often regions are drawn at most.
    poor_gain
        A round that gains less than this share of the value is the last one.
    """

    least_nodes: int = 100
    per_worker: int = 1
    share: float = 0.8
    least_seconds: float = 6.0
    rounds: int = 4
    poor_gain: float = 1e-4
