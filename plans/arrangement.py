"""Arrangements of a plan's moves: which are under way together, in which order, with which nodes cordoned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stowplan.models.assignment import Assignment
from stowplan.models.plan import MoveDocument, Plan, PlanTier, WaveDocument
from stowplan.models.quantity import parse_quantity
from stowplan.models.result import TRIVIAL, bound_holds
from stowplan.plans.tokens import tokens

BY_ITSELF = "kube-scheduler puts it there"
"""What a move is for that ends on another node than was planned."""


@dataclass(frozen=True, slots=True)
class ArrangedWave:
    """Moves that are under way at once, while some nodes are cordoned.

    Parameters
    ----------
    wave
        The wave of the plan that this is a part of.
    repaired
        How often cordons were added.
    """

    wave: WaveDocument
    moves: tuple[MoveDocument, ...]
    cordon: frozenset[str] = frozenset()
    repaired: int = 0

    @property
    def targets(self) -> set[str]:
        """Nodes that something is to come to."""
        return {move.target for move in self.moves if move.target}


Arrangement = tuple[ArrangedWave, ...]


def cordons(arrangement: Arrangement) -> int:
    """Return how many cordons an arrangement takes, those of one node in several waves each for itself."""
    return sum(len(part.cordon) for part in arrangement)


def as_plan(plan: Plan, arrangement: Arrangement) -> Plan:
    """Return a plan with other waves, for a replay: its moves have the targets that they had."""
    waves = (
        part.wave.model_copy(update={"number": number, "moves": part.moves, "cordon": tuple(sorted(part.cordon))})
        for number, part in enumerate(arrangement, 1)
    )
    return plan.model_copy(update={"waves": tuple(waves)})


Shown = Callable[[Assignment], Sequence[float]]
"""Value of each tier, in displayed units."""


def without(arrangement: Arrangement, out: set[str]) -> Arrangement:
    """Return an arrangement without some moves."""
    return tuple(replace(part, moves=tuple(move for move in part.moves if move.id not in out)) for part in arrangement)


def coherent(arrangement: Arrangement) -> Arrangement:
    """Leave out moves that follow one which is left out, and parts without moves."""
    while True:
        kept = {move.id for part in arrangement for move in part.moves}
        orphans = {m.id for part in arrangement for m in part.moves if m.follows is not None and m.follows not in kept}
        if not orphans:
            return tuple(part for part in arrangement if part.moves)
        arrangement = without(arrangement, orphans)


def orders(arrangement: Arrangement) -> Iterator[Arrangement]:
    """Yield the arrangement with the moves of each wave in other orders, first at once, then one after the other."""
    sorters: list[Callable[[tuple[MoveDocument, ...]], list[MoveDocument]]] = [
        lambda moves: sorted(moves, key=_size, reverse=True),
        lambda moves: sorted(moves, key=_size),
    ]
    for sort in sorters:
        yield tuple(replace(part, moves=tuple(sort(part.moves))) for part in arrangement)
    for sort in sorters:
        yield tuple(replace(part, moves=(move,)) for part in arrangement for move in sort(part.moves))


def _size(move: MoveDocument) -> tuple[int, int]:
    return parse_quantity(move.requests.get("cpu", "0")), parse_quantity(move.requests.get("memory", "0"))


def written(
    plan: Plan, arrangement: Arrangement, node_of: Mapping[str, str], assignment: Assignment, shown: Shown
) -> Plan:
    """Write an arrangement down as a plan of its own, which aims at where its pods land.

    Parameters
    ----------
    node_of
        Nodes on which pods land, by the ids of the moves.
    assignment
        Where pods are today.
    """
    waves: list[WaveDocument] = []
    for part in arrangement:
        moves = tuple(_landed(move, node_of) for move in part.moves)
        assignment = assignment.moved((move.pod.key, move.target) for move in moves)
        ends = {node for move in moves for node in (move.source, move.target)}
        changes = {
            "number": len(waves) + 1,
            "moves": moves,
            "cordon": tuple(sorted(part.cordon)),
            "tiers": tuple(shown(assignment)),
            "peak": {node: shares for node, shares in part.wave.peak.items() if node in ends},
        }
        waves.append(part.wave.model_copy(update=changes))
    kept = {move.id for wave in waves for move in wave.moves}
    lost = [f"{m.pod.key}: left out, since nothing steers it" for m in plan.moves if m.id not in kept]
    after = waves[-1].tiers if waves else tuple(tier.before for tier in plan.tiers)
    tiers = tuple(_with_value(plan.tiers, t, after) for t in range(len(after)))
    changes = {
        "id": f"{plan.id[:44]}-alone",
        "waves": tuple(waves),
        "tokens": tokens(waves),
        "tiers": tiers,
        "status": plan.status if after == tuple(tier.after for tier in plan.tiers) else "FEASIBLE",
        "least_waves": min(1, len(waves)),
        "given_up": (*plan.given_up, *lost),
        "steered": False,
    }
    return plan.model_copy(update=changes)


def _with_value(tiers: Sequence[PlanTier], t: int, after: Sequence[float]) -> PlanTier:
    """Return a tier with its value when the plan is done, and with its bound where that still holds."""
    tier = tiers[t].model_copy(update={"after": after[t]})
    if bound_holds(after[:t], [tier.after for tier in tiers[:t]]):
        return tier
    return tier.model_copy(update={"bound": min(0.0, tier.bound), "bound_by": TRIVIAL})


def _landed(move: MoveDocument, node_of: Mapping[str, str]) -> MoveDocument:
    """Return a move to where its pod lands, from where the move before it has landed."""
    target = node_of[move.id] or None
    source = move.source if move.follows is None else node_of[move.follows]
    kind = "place" if move.source is None else "evict" if target else "remove"
    why = move.why if target == move.target else BY_ITSELF
    return move.model_copy(update={"kind": kind, "source": source, "target": target, "why": why})
