"""Whether the moves of a wave may come in any order, without trying orders; see "What a wave promises" in the docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.models.assignment import Assignment
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plans.move import Move
from stowplan.plans.sequencing.problem import SequencingProblem
from stowplan.plans.sequencing.wave_state import WaveState
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures

WHILE_THERE = "the filters refuse it as long as the old pod is there, and the plan does not say that it waits"


@dataclass(frozen=True, slots=True)
class OrderProblem:
    """A move that may not be under way together with those before it in its wave.

    Parameters
    ----------
    position
        Of the move in the wave.
    problem
        Which filter refuses it in some order of events, and why.
    """

    position: int
    problem: str


def order_problems(
    snapshot: Snapshot,
    profile: Profile,
    start: Assignment,
    wave: Sequence[Move],
    signatures: Signatures | None = None,
) -> list[OrderProblem]:
    """Return the moves of a wave that the filters refuse in some order of its events, or in every one.

    A move is looked at together with all moves before it that are not refused. What is not returned may be under way
    at once, in any order.

    Parameters
    ----------
    snapshot
        With the nodes that are cordoned during the wave.
    start
        Where pods are when the wave begins.
    """
    state = WaveState(SequencingProblem(snapshot, profile, start, wave, Budgets(snapshot), signatures=signatures))
    found = []
    for position, move in enumerate(wave):
        indexed = state.indexed(move)
        status, waits = state.refusal(indexed)
        if status is not None:
            problem = f"{status.plugin} refuses it on {move.target} in some order: {', '.join(status.reasons)}"
            found.append(OrderProblem(position, problem))
        elif waits and not move.waits:
            found.append(OrderProblem(position, WHILE_THERE))
        else:
            state.join(indexed)
    return found
