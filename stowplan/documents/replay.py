"""The document of a replayed plan."""

from __future__ import annotations

from typing import Literal

from stowplan.models.document import API_VERSION, Document
from stowplan.models.plan import PodReference
from stowplan.planning.replay import Replay
from stowplan.plans.replay.distribution import HIGH, LOW, Certainty, Distribution
from stowplan.plans.replay.outcome import MoveVerdict


class LandingDocument(Document):
    """Result of one move: ``node`` of its replacement, or the ``message`` why it is unscheduled."""

    id: str
    wave: int
    pod: PodReference
    source: str | None
    target: str | None
    node: str | None
    verdict: MoveVerdict
    message: str = ""
    certainty: Certainty | None = None


class ReplayTier(Document):
    """A tier: today, as planned, and at the end of the replay."""

    name: str
    unit: str
    before: float
    planned: float
    actual: float


class WaitingDocument(Document):
    """An unscheduled pod at the end, and why."""

    pod: str
    message: str


class DrivenDocument(Document):
    """A pod that kube-scheduler preempted."""

    pod: str
    node: str
    preemptor: str


class KeptDocument(Document):
    """Share of the planned gain that is kept: the mean, and what 5 % and 95 % of the runs do not exceed."""

    mean: float
    low: float
    high: float


class ChanceDocument(Document):
    """Results of replays in which chance has a say.

    Parameters
    ----------
    runs, finished
        Number of replays, and of those in which the plan comes to its end.
    kept
        Null if the plan gains nothing.
    moves
        Number of moves by how certain their landing is.
    halts
        Why the plan does not come to its end, with the number of runs.
    """

    runs: int
    finished: int
    kept: KeptDocument | None
    moves: dict[Certainty, int]
    halts: dict[str, int]


class ReplayDocument(Document):
    """A plan that was carried out on a simulated cluster.

    Parameters
    ----------
    kept
        Share of the planned gain that is reached, by the first tier that the plan improves.
    halted
        Why not all waves were carried out.
    chance
        What becomes of the plan in many replays with chance; null if there were none.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Replay"] = "Replay"
    plan: str
    steer: Literal["none", "extender"]
    seed: int
    by_itself: bool
    legal: bool
    kept: float | None
    halted: str | None
    verdicts: dict[MoveVerdict, int]
    tiers: tuple[ReplayTier, ...]
    landings: tuple[LandingDocument, ...]
    waiting: tuple[WaitingDocument, ...]
    preempted: tuple[DrivenDocument, ...]
    chance: ChanceDocument | None = None
    notes: tuple[str, ...]


def _chance(found: Distribution | None) -> ChanceDocument | None:
    if found is None:
        return None
    mean, low, high = found.mean, found.quantile(LOW), found.quantile(HIGH)
    kept = None if mean is None or low is None or high is None else KeptDocument(mean=mean, low=low, high=high)
    moves = {certainty: found.count(certainty) for certainty in Certainty}
    return ChanceDocument(runs=found.runs, finished=found.finished, kept=kept, moves=moves, halts=dict(found.halts))


def replay_document(replay: Replay) -> ReplayDocument:
    """Describe a replay."""
    outcome = replay.outcome
    certainty = replay.distribution.certainty if replay.distribution is not None else {}
    worths = (outcome.before.values, outcome.planned.values, outcome.actual.values)
    return ReplayDocument(
        plan=replay.plan.id,
        steer="extender" if replay.steered else "none",
        seed=replay.seed,
        by_itself=outcome.by_itself,
        legal=outcome.actual.legal,
        kept=replay.kept,
        halted=outcome.halted or None,
        verdicts={verdict: outcome.count(verdict) for verdict in MoveVerdict},
        tiers=tuple(
            ReplayTier(
                name=tier.name,
                unit=tier.unit,
                before=tier.shown(before),
                planned=tier.shown(planned),
                actual=tier.shown(actual),
            )
            for tier, before, planned, actual in zip(replay.compiled.problem.tiers, *worths, strict=True)
        ),
        landings=tuple(
            LandingDocument(
                id=landing.move.id,
                wave=landing.wave,
                pod=landing.move.pod,
                source=landing.move.source,
                target=landing.move.target,
                node=landing.node or None,
                verdict=landing.verdict,
                message=landing.message,
                certainty=certainty.get(landing.move.id),
            )
            for landing in outcome.landings
        ),
        waiting=tuple(WaitingDocument(pod=key, message=said) for key, said in outcome.waiting.items()),
        preempted=tuple(DrivenDocument(pod=d.key, node=d.node, preemptor=d.preemptor) for d in outcome.preempted),
        chance=_chance(replay.distribution),
        notes=replay.notes,
    )
