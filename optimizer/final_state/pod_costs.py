"""What the terms of a tier with a cost of the final state cost each pod by itself, and the room there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import Detail, NodeCurve, Part, Prefer, Problem, Tier, Unplaced
from stowplan.optimizer.evaluate.cost import move_prices


@dataclass(frozen=True, slots=True, eq=False)
class PodCosts:
    """Costs of pods by themselves, the parts of plugins included.

    Parameters
    ----------
    table
        ``[c, n]`` of a pod on a node.
    missing, move
        ``[c]`` of a pod without a node, and of one that leaves its node.
    """

    table: Floats
    missing: Floats
    move: Floats


def pod_costs(problem: Problem, tier: Tier, parts: Sequence[Part | Detail]) -> PodCosts:
    """Add up a tier; terms that are not about pods by themselves are left out."""
    table = sum((part.table for part in parts), np.zeros(problem.shape))
    missing = sum((part.missing for part in parts), np.zeros(len(problem.classes)))
    for weighted in tier.terms:
        match weighted.term:
            case Prefer() as term:
                table = table + weighted.weight * term.table[term.row]
            case Unplaced() as term:
                missing = missing + weighted.weight * term.cost
            case _:
                pass
    return PodCosts(table, missing, move_prices(tier, len(problem.classes)).astype(np.float64))


def convex_curves(tier: Tier) -> Iterator[tuple[int, NodeCurve]]:
    """Yield the convex curves of loads, each with its weight."""
    for weighted in tier.terms:
        if isinstance(weighted.term, NodeCurve) and weighted.term.curves.convex:
            yield weighted.weight, weighted.term


def turned(parts: Sequence[Part]) -> tuple[Floats, Floats] | None:
    """Return ``[c, n]`` and ``[n]`` what ``crowding`` and ``held`` change by if they are turned."""
    found = None
    for part in parts:
        if part.turned is not None:
            crowding, held = part.turned
            crowding = crowding if part.crowding is None else crowding - part.crowding
            held = held if part.held is None else held - part.held
            found = (crowding, held) if found is None else (found[0] + crowding, found[1] + held)
    return found if found is not None and any(array.any() for array in found) else None


def rooms(problem: Problem) -> Iterator[tuple[Ints, Ints]]:
    """Yield ``[c]`` the demand and ``[n]`` the room of each capacity that no pod adds to; as much as today at least."""
    for rule in problem.plain_capacities:
        today = problem.start.per_node(len(problem.nodes), rule.demand)
        yield rule.demand, np.maximum(np.maximum(0, rule.free), today)
