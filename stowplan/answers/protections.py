"""What each protection of pods costs: how much better the answer could be without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from stowplan.answers.assessment import Assessment
from stowplan.answers.solve import Solution, solve_snapshot
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import Backend
from stowplan.plans.movability.causes import WAIVABLE, Cause
from stowplan.settings.freeze import OWNER, Freeze, Stays, make_movability
from stowplan.settings.problem import make_problem

SHARE = 1 / 4
"""Share of the time limit that all these searches have together."""


LEAST = 1e-6
"""Share of an improvement below which a difference is rounding."""


@dataclass(frozen=True, slots=True)
class Protection:
    """A reason for which pods stay, and the first tier that would be better without it.

    Parameters
    ----------
    reason
        What ``--may-move`` takes to waive it.
    pods
        Pods that stay for it.
    tier, unit
        The tier; empty if no search found a better placement.
    gain
        By how much lower the tier could be, in its unit.
    proven
        Whether it could not be lower yet.
    """

    reason: str
    pods: int
    tier: str = ""
    unit: str = ""
    gain: float = 0.0
    proven: bool = False


def protecting(snapshot: Snapshot, settings: Settings) -> Mapping[str, int]:
    """Return how many pods stay for each reason that ``--may-move`` can waive, the most frequent first."""
    frozen, movability = Freeze(settings.freeze, settings.freeze_bare), make_movability(snapshot, settings)
    counts: Counter[str] = Counter()
    for pod in snapshot.pods:
        if not pod.node_name or pod.finished or frozen(pod) or (blocker := movability.blocker(pod)) is None:
            continue
        controller = pod.metadata.controller
        if blocker.cause is Cause.OWNER and controller is not None:
            counts[f"{OWNER}{controller.kind}"] += 1
        elif blocker.cause in WAIVABLE:
            counts[blocker.cause.value] += 1
    return dict(counts.most_common())


def protections(
    snapshot: Snapshot,
    settings: Settings,
    answer: Assessment,
    options: Options,
    *,
    frozen: Stays | None = None,
    stop: Stop | None = None,
    backend: Backend | None = None,
) -> Iterator[Protection]:
    """Solve once without each protection, from the answer on, and yield what that brings.

    Parameters
    ----------
    answer
        The assignment that was found with all protections.
    options
        Their time limit is for the answer; these searches share a part of it.
    frozen
        Returns why a pod stays that the settings would let go, or ``None``.
    stop
        Once it is set, protections are counted and no longer searched for.
    """
    stop, counts = stop or Stop(), protecting(snapshot, settings)
    short = replace(options, time_limit=max(0.2, options.time_limit * SHARE / max(1, len(counts))))
    for reason, pods in counts.items():
        if stop.is_set():
            yield Protection(reason, pods)
            continue
        waived = settings.model_copy(update={"may_move": (*settings.may_move, reason)})
        compiled = make_problem(snapshot, waived, frozen)
        found = solve_snapshot(compiled, short, candidates=[answer.assignment], stop=stop, backend=backend)
        yield _gain(reason, pods, answer, found)


def _gain(reason: str, pods: int, answer: Assessment, found: Solution) -> Protection:
    """Compare improvements over today: what pods that stay cost is a constant of a problem."""
    improved = dict(zip(_names(answer), _improvements(answer), strict=True))
    for outcome, now in zip(found.outcome.tiers, _improvements(found.assessment), strict=True):
        more = now - improved.get(outcome.tier.name, 0.0)
        if abs(more) > LEAST * max(1.0, abs(now)):
            if more < 0:
                break
            return Protection(reason, pods, outcome.tier.name, outcome.tier.unit, more, outcome.value <= outcome.bound)
    return Protection(reason, pods, proven=all(outcome.value <= outcome.bound for outcome in found.outcome.tiers))


def _names(answer: Assessment) -> list[str]:
    return [tier.name for tier in answer.assessor.compiled.problem.tiers]


def _improvements(answer: Assessment) -> list[float]:
    """Return by how much each tier is lower than today, in its unit."""
    values = zip(answer.assessor.today.evaluation.values, answer.evaluation.values, strict=True)
    tiers = answer.assessor.compiled.problem.tiers
    return [tier.shown_difference(before - after) for tier, (before, after) in zip(tiers, values, strict=True)]
