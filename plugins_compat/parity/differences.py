"""What two decisions about one pod differ in, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stowplan.models.trace import Expectation, StatusRecord

NODE_SET = "PreFilterResult"
"""What a record names where a plugin's PreFilter left a node out; which plugin did so is not recorded."""

PREEMPTION = "DefaultPreemption"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is decided differently.

    Parameters
    ----------
    stage
        ``PreFilter``, ``Filter``, ``Feasible``, ``Score``, ``Total``, ``Choice``, ``Nomination`` or ``Victims``.
    plugin
        The plugin whose answer differs; empty where a stage belongs to none.
    """

    stage: str
    plugin: str
    recorded: str
    ours: str
    node: str = ""


def differences(recorded: Expectation, ours: Expectation) -> Iterator[Difference]:
    """Yield every difference between two decisions."""
    if recorded.pre_filter or ours.pre_filter:
        yield from _refusals("PreFilter", "", recorded.pre_filter, ours.pre_filter)
        return
    theirs, mine = recorded.filter or {}, ours.filter or {}
    for node in sorted(theirs.keys() | mine.keys()):
        yield from _refusals("Filter", node, theirs.get(node), mine.get(node))
    yield from _preemption(recorded, ours)
    if (recorded.feasible or ()) != (ours.feasible or ()):
        yield Difference("Feasible", "", _words(recorded.feasible), _words(ours.feasible))
        return
    yield from _scores(recorded, ours)
    if (recorded.total or {}) != (ours.total or {}):
        yield Difference("Total", "", _words(recorded.total), _words(ours.total))
    if recorded.chosen != ours.chosen:
        yield Difference("Choice", "", recorded.chosen or "none", ours.chosen or "none")


def _refusals(stage: str, node: str, recorded: StatusRecord | None, ours: StatusRecord | None) -> Iterator[Difference]:
    if recorded is None and ours is None:
        return
    if recorded is not None and (recorded.same_as(ours) or (ours and recorded.plugin == ours.plugin == NODE_SET)):
        return
    plugin = (recorded or ours).plugin if recorded or ours else ""  # type: ignore[union-attr]
    yield Difference(stage, plugin, str(recorded or "admitted"), str(ours or "admitted"), node)


def _preemption(recorded: Expectation, ours: Expectation) -> Iterator[Difference]:
    """Compare nominations. Where none is recorded, runs of upstream disagreed, or the pod cannot preempt."""
    if not recorded.nominated:
        return
    if recorded.nominated != ours.nominated:
        yield Difference("Nomination", PREEMPTION, recorded.nominated, ours.nominated or "none")
    elif sorted(recorded.victims or ()) != sorted(ours.victims or ()):
        yield Difference("Victims", PREEMPTION, _words(recorded.victims), _words(ours.victims), ours.nominated)


def _scores(recorded: Expectation, ours: Expectation) -> Iterator[Difference]:
    theirs, mine = recorded.scores or {}, ours.scores or {}
    for plugin in sorted(theirs.keys() | mine.keys()):
        if plugin not in theirs or plugin not in mine:
            said = ("does not score", "scores")
            yield Difference("Score", plugin, said[plugin in theirs], said[plugin in mine])
            continue
        for node in sorted(theirs[plugin].keys() | mine[plugin].keys()):
            a, b = theirs[plugin].get(node), mine[plugin].get(node)
            if a != b:
                yield Difference("Score", plugin, str(a), str(b), node)


def _words(value: object) -> str:
    if not value:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{node} {total}" for node, total in value.items())
    return ", ".join(value) if isinstance(value, tuple) else str(value)
