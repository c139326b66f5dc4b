"""What a scenario comes to: two solutions, without it and with it, figure by figure and pod by pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stowplan.answers.assessment import Assessor
from stowplan.answers.figures import Figure, Value, figures
from stowplan.answers.measures import Measures, measured
from stowplan.answers.solve import Solution
from stowplan.models.html import html_table, number
from stowplan.models.kubernetes import Pod
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Participation
from stowplan.scenarios.apply import Changed
from stowplan.scenarios.scenario import Scenario
from stowplan.settings.problem import make_problem

UNCHANGED, CHANGED = "unchanged", "what if"


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of both answers.

    Parameters
    ----------
    key, title, unit
        As those of `stowplan.answers.figures.Figure`.
    before, after
        Without the scenario and with it; ``None`` where an answer has no such figure.
    detail
        Whether only the wide table shows it.
    """

    key: tuple[str, ...]
    title: str
    unit: str
    before: Value
    after: Value
    detail: bool

    @property
    def name(self) -> str:
        """The key as one string."""
        return ".".join(self.key)

    @property
    def change(self) -> Value:
        """By how much the figure is higher with the scenario; ``None`` if one of them is not known."""
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class Relocation:
    """A pod that the two answers put on different nodes; ``None`` for no node, or no such pod."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, eq=False)
class WhatIf:
    """A scenario, and what it changes in the best placement.

    Parameters
    ----------
    scenario
        What is different.
    changed
        The cluster and the settings with the scenario.
    before, after
        The best placements found without it and with it.
    measures
        Figures of both. Those of the objective are by the weights without the scenario, so that they can be compared.
    """

    scenario: Scenario
    changed: Changed
    before: Solution
    after: Solution
    measures: tuple[Measures, Measures]

    @cached_property
    def figures(self) -> Sequence[Difference]:
        """What is compared, in the order in which it is shown."""
        then, now = self.measures
        firsts = {one.key: one for one in figures(self.before.outcome.tiers, [then])}
        seconds = {one.key: one for one in figures(self.after.outcome.tiers, [now])}
        return [
            Difference(
                key,
                _known(firsts.get(key), seconds.get(key)).title,
                _known(firsts.get(key), seconds.get(key)).unit,
                firsts[key].value(then) if key in firsts else _absent(key),
                seconds[key].value(now) if key in seconds else _absent(key),
                _known(firsts.get(key), seconds.get(key)).detail,
            )
            for key in _in_order(list(firsts), list(seconds))
        ]

    @cached_property
    def pending(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Pods without a node, without the scenario and with it: by key, and why."""
        return _pending(self.before), _pending(self.after)

    @property
    def newly_pending(self) -> Mapping[str, str]:
        """Pods that have a node only without the scenario, placeholders included: by key, and why."""
        before, after = self.pending
        return {key: why for key, why in after.items() if key not in before}

    @property
    def no_longer_pending(self) -> Sequence[str]:
        """Pods that have a node only with the scenario, by key."""
        before, after = self.pending
        there = {pod.key for pod in self.changed.snapshot.pods}
        return [key for key in before if key in there and key not in after]

    @cached_property
    def placeholders(self) -> Sequence[Pod]:
        """Pods for which room is to be kept."""
        known = {pod.key for pod in self.before.compiled.snapshot.pods}
        return [pod for pod in self.changed.snapshot.pods if not pod.node_name and pod.key not in known]

    @property
    def with_room(self) -> int:
        """How many of the placeholders have room."""
        return sum(pod.key in self.after.assignment for pod in self.placeholders)

    @cached_property
    def relocations(self) -> Sequence[Relocation]:
        """Pods that the answers put on different nodes."""
        before, after = self.before.assignment, self.after.assignment
        pods = {pod.key: None for one in (self.before, self.after) for pod in one.compiled.snapshot.pods}
        return [Relocation(key, before.get(key), after.get(key)) for key in pods if before.get(key) != after.get(key)]

    def __repr__(self) -> str:
        return f"<WhatIf {'; '.join(self.changed.effects)}: {self.after!r}>"

    def _repr_html_(self) -> str:
        rows = [(one.title, number(one.before), number(one.after), number(one.change)) for one in self.figures]
        return html_table("; ".join(self.changed.effects), rows, ("", UNCHANGED, CHANGED, "change"))


def weigh(scenario: Scenario, changed: Changed, settings: Settings, before: Solution, after: Solution) -> WhatIf:
    """Compare the solutions of a snapshot without a scenario and with it.

    Parameters
    ----------
    settings
        Without the scenario.
    """
    first = measured(before.assessment, scores=False)
    assessment = after.assessment
    if scenario.weights:
        unchanged = changed.settings.model_copy(update={"objective": settings.objective})
        assessment = Assessor(make_problem(changed.snapshot, unchanged)).assess(after.assignment)
    return WhatIf(scenario, changed, before, after, (first, measured(assessment, scores=False)))


def _absent(key: tuple[str, ...]) -> Value:
    """Return a figure that an answer does not have: where no pod of a priority waits, there is no tier of it."""
    return 0 if key[0] == "tiers" and key[1].startswith("pending") else None


def _known(first: Figure | None, second: Figure | None) -> Figure:
    found = first or second
    assert found is not None
    return found


def _in_order(first: list[tuple[str, ...]], second: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the keys of both, those of the second alone where it has them."""
    merged = list(first)
    for i, key in enumerate(second):
        if key not in merged:
            before = second[i - 1] if i else None
            merged.insert(merged.index(before) + 1 if before is not None else 0, key)
    return merged


def _pending(solution: Solution) -> dict[str, str]:
    participants = solution.compiled.participants
    waiting = {pod.key: why for pod, why in solution.waiting}
    return {
        pod.key: waiting.get(pod.key, reason)
        for pod, standing, reason in zip(
            participants.pods, participants.participation, participants.reason, strict=True
        )
        if standing is not Participation.FINISHED and pod.key not in solution.assignment
    }
