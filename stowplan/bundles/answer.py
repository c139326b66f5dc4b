"""What is the same in two answers to the same question: values, bounds, nodes of pods, and waves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from stowplan.answers.solve import Solution
from stowplan.models.document import Document
from stowplan.models.plan import Plan
from stowplan.models.result import TierOutcome
from stowplan.models.words import plural
from stowplan.planning.survive import Survival

MOST_NAMED = 5
"""Most pods and waves that are named as different."""


class TierAnswer(Document):
    """Value and bound of a tier, in its own unit."""

    name: str
    value: float
    bound: float


class MoveAnswer(Document):
    """One move of a wave."""

    pod: str
    source: str | None
    target: str | None


class LossAnswer(Document):
    """What a lost domain comes to: the pods without a node, and how many there are at least, alone and with moves."""

    domain: str
    pending: tuple[str, ...]
    at_least: int
    left_by_scheduler: int
    with_moves: int


class Answer(Document):
    """An answer without its words.

    Parameters
    ----------
    nodes
        Node of each pod that is free to move, by ``namespace/name``; null if it has none. Empty for a plan.
    waves
        Moves of each wave of a plan; those that make a cluster survive are one wave.
    scenario
        The answer with the scenario of ``what-if``.
    losses
        What ``survive`` says of each domain.
    """

    status: str
    tiers: tuple[TierAnswer, ...]
    nodes: Annotated[dict[str, str | None], Field(default_factory=dict)]
    waves: tuple[tuple[MoveAnswer, ...], ...] = ()
    scenario: Answer | None = None
    losses: tuple[LossAnswer, ...] = ()


def of_solution(solution: Solution) -> Answer:
    """Return the answer of ``solve`` or ``compare``."""
    nodes = {pod.key: solution.assignment.get(pod.key) for pod in solution.compiled.pods}
    return Answer(status=solution.status, tiers=_tiers(solution.outcome.tiers), nodes=nodes)


def of_plan(plan: Plan) -> Answer:
    """Return the answer of ``plan``."""
    tiers = tuple(TierAnswer(name=tier.name, value=tier.after, bound=tier.bound) for tier in plan.tiers)
    waves = tuple(
        tuple(MoveAnswer(pod=move.pod.key, source=move.source, target=move.target) for move in wave.moves)
        for wave in plan.waves
    )
    return Answer(status=plan.status, tiers=tiers, nodes={}, waves=waves)


def of_what_if(before: Solution, after: Solution) -> Answer:
    """Return the answer of ``what-if``: that without the scenario, and that with it."""
    return of_solution(before).model_copy(update={"scenario": of_solution(after)})


def of_survival(found: Survival) -> Answer:
    """Return the answer of ``survive``."""
    losses = tuple(
        LossAnswer(
            domain=loss.domain.name,
            pending=tuple(one.pod.key for one in loss.pending),
            at_least=loss.at_least,
            left_by_scheduler=loss.left,
            with_moves=found.impossible.get(loss.domain.name, 0),
        )
        for loss in found.losses
    )
    moves = () if found.survivor is None else found.survivor.moves
    wave = tuple(MoveAnswer(pod=move.pod.key, source=move.source, target=move.target) for move in moves)
    known = "survives" if found.survives else "does not survive, or it is not known"
    return Answer(status=known, tiers=(), nodes={}, waves=(wave,) if wave else (), losses=losses)


def _tiers(tiers: Sequence[TierOutcome]) -> tuple[TierAnswer, ...]:
    return tuple(
        TierAnswer(name=one.tier.name, value=one.tier.shown(one.value), bound=one.tier.shown(one.bound))
        for one in tiers
    )


def differences(then: Answer, now: Answer) -> list[str]:
    """Return how two answers differ, one line each; the first ones matter most."""
    found = [f"status: {then.status} then, {now.status} now"] if then.status != now.status else []
    found += _of_tiers({tier.name: tier for tier in then.tiers}, {tier.name: tier for tier in now.tiers})
    moved = [key for key in (then.nodes | now.nodes) if then.nodes.get(key) != now.nodes.get(key)]
    if moved:
        first = "; ".join(
            f"{key}: {then.nodes.get(key) or 'none'} then, {now.nodes.get(key) or 'none'} now"
            for key in moved[:MOST_NAMED]
        )
        found.append(f"{plural(len(moved), 'pod')} on another node: {first}{_and_more(moved)}")
    waves = [
        str(number)
        for number in range(1, max(len(then.waves), len(now.waves)) + 1)
        if then.waves[number - 1 : number] != now.waves[number - 1 : number]
    ]
    if waves:
        found.append(
            f"{plural(len(waves), 'wave')} with other moves: {', '.join(waves[:MOST_NAMED])}{_and_more(waves)}"
        )
    found += _of_losses({one.domain: one for one in then.losses}, {one.domain: one for one in now.losses})
    if then.scenario is not None and now.scenario is not None:
        found += [f"with the scenario: {line}" for line in differences(then.scenario, now.scenario)]
    return found


def _of_losses(then: Mapping[str, LossAnswer], now: Mapping[str, LossAnswer]) -> list[str]:
    other = [name for name in dict.fromkeys((*then, *now)) if then.get(name) != now.get(name)]
    if not other:
        return []
    named = ", ".join(other[:MOST_NAMED])
    return [f"{plural(len(other), 'domain')} with another answer when lost: {named}{_and_more(other)}"]


def _of_tiers(then: Mapping[str, TierAnswer], now: Mapping[str, TierAnswer]) -> Iterator[str]:
    for name in dict.fromkeys((*then, *now)):
        if name not in then or name not in now:
            yield f"{name}: a tier of one answer alone"
            continue
        for what, old, new in (
            ("value", then[name].value, now[name].value),
            ("bound", then[name].bound, now[name].bound),
        ):
            if old != new:
                yield f"{what} of {name}: {old:g} then, {new:g} now"


def _and_more(all_of_them: Sequence[str]) -> str:
    return f" and {len(all_of_them) - MOST_NAMED:,} more" if len(all_of_them) > MOST_NAMED else ""
