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
    later_temperature
        Where walks of a round begin that goes on from the last one, in shares of the temperature of the first.
    poor_gain
        A round that gains less than this share of the value is the last one.
    """

    least_nodes: int = 100
    per_worker: int = 1
    share: float = 0.8
    least_seconds: float = 6.0
    rounds: int = 2
    later_temperature: float = 0.02
    poor_gain: float = 1e-4
