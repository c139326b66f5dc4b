"""What may become of a plan where chance has a say: many replays, and how their results are distributed.

kube-scheduler takes any of several nodes with the highest score, and which pods of a wave it sees first depends on
small differences in time. So one replay is one of many outcomes. Here a plan is replayed again and again, with ties,
sampled nodes, and the order of events in a wave drawn at random, and each replay ends where ``apply`` would stop.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from stowplan.models.plan import Plan
from stowplan.models.snapshot import Snapshot
from stowplan.plans.replay.execution import replay
from stowplan.plans.replay.outcome import MoveVerdict, ObjectiveFunction, ObjectiveValue, ReplayOutcome, share_kept
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures

RUNS = 20
"""Replays by default: the least number of which one is 5 %."""

LOW, HIGH = 0.05, 0.95
"""Shares of the runs between whose results the others lie."""

CAUTIOUS = 0.9
"""Share of the runs in which at least what counts is reached."""

GIVEN_UP = 0.1
"""Share of a tier's gain that a plan may lack if it comes to its end instead."""

WELL = (MoveVerdict.PLANNED, MoveVerdict.AS_GOOD)
BADLY = (MoveVerdict.NEEDS_STEERING, MoveVerdict.NOT_EVICTED)


class Certainty(StrEnum):
    """What the runs say about where a pod lands."""

    CERTAIN = "certain"
    """On the same node in every run."""
    EQUALLY_GOOD = "equally good"
    """On one of several nodes, each of which is as planned or as good."""
    BY_CHANCE = "by chance"
    """On one of several nodes, not all of which are as good; or not at all in some run."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Results of many replays of one plan.

    Parameters
    ----------
    kept
        Share of the planned gain that is there when the run ends, of each run, ascending; see `share_kept`. Empty if
        the plan gains nothing.
    finished
        Number of runs in which the plan comes to its end.
    halts
        Why the others did not, with the number of runs, the most frequent first.
    certainty
        Of each move, by id.
    """

    runs: int
    kept: tuple[float, ...]
    finished: int
    halts: tuple[tuple[str, int], ...]
    certainty: Mapping[str, Certainty]

    @property
    def share_finished(self) -> float:
        """Share of the runs in which the plan comes to its end; 0 without runs."""
        return self.finished / self.runs if self.runs else 0.0

    @property
    def mean(self) -> float | None:
        """Mean share of the gain that is kept."""
        return math.fsum(self.kept) / len(self.kept) if self.kept else None

    def quantile(self, share: float) -> float | None:
        """Return a share of the gain that at most the given share of the runs falls short of.

        Below one half, ranks are rounded down, above it up: of few runs, the range is rather too wide.
        """
        if not self.kept:
            return None
        rank = share * (len(self.kept) - 1)
        return self.kept[math.floor(rank) if share < 0.5 else math.ceil(rank)]

    def cautious(self, share: float) -> float | None:
        """Return what is kept at least in the given share of the runs."""
        return self.kept[len(self.kept) - math.ceil(share * len(self.kept))] if self.kept else None

    def count(self, certainty: Certainty) -> int:
        """Return the number of moves of a kind."""
        return sum(1 for found in self.certainty.values() if found is certainty)


def replay_by_chance(
    plan: Plan,
    snapshot: Snapshot,
    profile: Profile,
    objective: ObjectiveFunction,
    *,
    runs: int = RUNS,
    steered: bool = False,
    seed: int = 0,
    signatures: Signatures | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[ReplayOutcome]:
    """Replay a plan several times with whatever the release leaves to chance drawn at random.

    A scheduler that is left alone looks at as many nodes as its configuration says; the configuration for a plan's
    extender makes it look at all.

    Parameters
    ----------
    runs
        How many replays; fewer if it is stopped.
    seed
        Each run has a seed of its own, which follows from this one.
    """
    profile = profile if steered else replace(profile, samples=True)
    outcomes: list[ReplayOutcome] = []
    for run in range(runs):
        if stopped():
            break
        outcome = replay(
            plan,
            snapshot,
            profile,
            objective,
            steered=steered,
            seed=seed * runs + run,
            by_chance=True,
            stops_astray=True,
            signatures=signatures,
        )
        outcomes.append(outcome)
    return outcomes


def distribution(
    plan: Plan, outcomes: Sequence[ReplayOutcome], gain: tuple[ObjectiveValue, ObjectiveValue] | None = None
) -> Distribution:
    """Sum up replays of a plan.

    Parameters
    ----------
    gain
        Values today and as planned by which the share that is kept is measured; by default those of the plan itself.
    """
    kept = []
    for outcome in outcomes:
        before, planned = gain or (outcome.before, outcome.planned)
        kept.append(share_kept(before, planned, outcome.actual))
    halts = Counter(outcome.halted for outcome in outcomes if outcome.halted)
    return Distribution(
        len(outcomes),
        tuple(sorted(share for share in kept if share is not None)),
        sum(1 for outcome in outcomes if not outcome.halted),
        tuple(halts.most_common()),
        {move.id: _certainty(move.id, outcomes) for move in plan.moves},
    )


def _certainty(move: str, outcomes: Sequence[ReplayOutcome]) -> Certainty:
    landings = [landing for outcome in outcomes for landing in outcome.landings if landing.move.id == move]
    if any(landing.verdict in (MoveVerdict.NOT_BEGUN, MoveVerdict.NOT_EVICTED) for landing in landings):
        return Certainty.BY_CHANCE
    if len({landing.node for landing in landings}) == 1:
        return Certainty.CERTAIN
    return Certainty.EQUALLY_GOOD if all(landing.verdict in WELL for landing in landings) else Certainty.BY_CHANCE


def cautious_value(outcomes: Sequence[ReplayOutcome]) -> tuple[bool, tuple[int, ...]]:
    """Return what is reached or bettered in a cautious share of the runs: whether it is illegal, then its values."""
    values = sorted((not outcome.actual.legal, outcome.actual.values) for outcome in outcomes)
    return values[math.ceil(CAUTIOUS * len(values)) - 1]


def gives_up_little(
    found: tuple[bool, tuple[int, ...]],
    best: tuple[bool, tuple[int, ...]],
    gain: tuple[ObjectiveValue, ObjectiveValue],
) -> bool:
    """Whether a cautious value is nearly as good as another: in each tier it lacks at most a small part of the gain."""
    before, planned = gain
    tiers = zip(found[1], best[1], before.values, planned.values, strict=True)
    return found[0] <= best[0] and all(
        value - other <= GIVEN_UP * max(0, old - new) for value, other, old, new in tiers
    )


def ends_early(outcomes: Sequence[ReplayOutcome]) -> dict[int, tuple[set[str], set[str]]]:
    """Return the waves that end runs early, each with the ids of the moves and the nodes that do it."""
    ends: dict[int, tuple[set[str], set[str]]] = {}
    for outcome in outcomes:
        bad = [landing for landing in outcome.landings if landing.verdict in BADLY]
        if outcome.halted and bad:
            number = max(landing.wave for landing in bad)
            late, foreign = ends.setdefault(number, (set(), set()))
            late |= {landing.move.id for landing in bad if landing.wave == number}
            foreign |= {landing.node for landing in bad if landing.wave == number}
    return ends
