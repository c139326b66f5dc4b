"""An arrangement of a plan and what came of it, and what in it does not come out well."""

from __future__ import annotations

from dataclasses import dataclass

from stowplan.plans.arrangement import Arrangement, cordons
from stowplan.plans.replay.distribution import WELL
from stowplan.plans.replay.outcome import Landing, ReplayOutcome


@dataclass(frozen=True, slots=True)
class Replayed:
    """An arrangement, and what came of it in one replay."""

    arrangement: Arrangement
    outcome: ReplayOutcome

    @property
    def rank(self) -> tuple[bool, bool, tuple[int, ...], int, int, int]:
        """Lower is better: legal and to the end, then what came of it, then what it takes."""
        outcome = self.outcome
        takes = (len(outcome.landings) + len(outcome.preempted), cordons(self.arrangement), len(self.arrangement))
        return not outcome.actual.legal, bool(outcome.halted), outcome.actual.values, *takes


def first_wrong(outcome: ReplayOutcome) -> tuple[int, list[Landing]]:
    """Return the first wave in which a move does not land well, and all such moves of it."""
    number = min(landing.wave for landing in outcome.landings if landing.verdict not in WELL)
    return number, [found for found in outcome.landings if found.wave == number and found.verdict not in WELL]


def idle_moves(replayed: Replayed) -> set[str]:
    """Return the moves whose pods come back to where they were, or that wait as they did."""
    landings = replayed.outcome.landings
    node_of = {found.move.id: found.node for found in landings}
    source = {f.move.id: node_of.get(f.move.follows or "", f.move.source or "") for f in landings}
    return {found.move.id for found in landings if found.node == source[found.move.id]}
