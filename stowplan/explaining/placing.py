"""Where one pod could be instead, and what that changes: objective by objective, part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stowplan.answers.assessment import Assessor
from stowplan.answers.parts import TierPart, tier_parts
from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import Tier
from stowplan.optimizer.evaluate import ConstraintViolation, Evaluation, OneMove

TRIED = 200
"""Nodes on which a single move is evaluated, those with the highest scores first."""


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """By how much an objective differs between two placements.

    Parameters
    ----------
    before, after
        Values in whole units of the tier; less is better.
    parts
        What differs, by plugin or setting, the largest difference first.
    """

    tier: Tier
    before: int
    after: int
    parts: Sequence[TierPart]


@dataclass(frozen=True, slots=True, eq=False)
class SingleMove:
    """The best legal placement in which one pod alone has another node.

    Parameters
    ----------
    differences
        What it changes; empty if no objective changes.
    better
        Whether it is better than today's placement.
    tried, admitting
        Number of nodes that were tried, and of those, today's aside, that the filters admit the pod to.
    """

    node: str
    differences: Sequence[Difference]
    better: bool
    tried: int
    admitting: int


@dataclass(frozen=True, slots=True, eq=False)
class Instead:
    """The best placement but for one pod, which is on another node in it.

    Parameters
    ----------
    node
        The other node.
    differences
        What is better in the best placement, and what is worse.
    broken
        Rules that the other placement breaks; it is not legal then.
    """

    node: str
    differences: Sequence[Difference]
    broken: Sequence[ConstraintViolation]


def best_single_move(
    assessor: Assessor, pod: Pod, nodes: Sequence[str], *, stopped: Callable[[], bool] = lambda: False
) -> SingleMove | None:
    """Return the best legal move of one pod while all others stay; ``None`` if none is legal.

    Parameters
    ----------
    nodes
        Nodes that the filters admit the pod to, in the order in which to try them.
    """
    compiled = assessor.compiled
    today, index = compiled.snapshot.assignment, compiled.snapshot.node_index
    others = [node for node in nodes if node != pod.node_name]
    cls = next(int(c) for one, c in zip(compiled.pods, compiled.class_of, strict=True) if one is pod)
    move = OneMove(compiled.problem, cls, index[pod.node_name] if pod.node_name else None)
    best: tuple[tuple[int, ...], str] | None = None
    tried = 0
    for node in others[:TRIED]:
        if stopped():
            break
        tried += 1
        evaluation = move.to(index[node])
        if evaluation.legal and (best is None or evaluation.values < best[0]):
            best = evaluation.values, node
    if best is None:
        return None
    after = today.moved([(pod.key, best[1])])
    better = best[0] < move.start.values
    return SingleMove(best[1], differences(assessor, today, after), better, tried, len(others))


def instead(assessor: Assessor, assignment: Assignment, pod: Pod, node: str) -> Instead:
    """Return what a placement would be if one pod were on another node."""
    other = assignment.moved([(pod.key, node)])
    evaluation = assessor.assess(other).evaluation
    broken = [] if evaluation.legal else _illegal(evaluation)
    return Instead(node, differences(assessor, other, assignment), broken)


def _illegal(evaluation: Evaluation) -> list[ConstraintViolation]:
    return [violation for violation in evaluation.violations if not violation.legal]


def differences(assessor: Assessor, before: Assignment, after: Assignment) -> list[Difference]:
    """Return the objectives of which two placements differ in value or in a part."""
    old, new = (assessor.assess(assignment) for assignment in (before, after))
    values = old.evaluation.values, new.evaluation.values
    problem = assessor.compiled.problem
    parts = tier_parts(problem, (old.placement, values[0]), (new.placement, values[1]))
    found = []
    for tier, then, now, each in zip(problem.tiers, *values, parts, strict=True):
        changed = [part for part in each if part.change]
        if changed or then != now:
            found.append(Difference(tier, then, now, changed))
    return found
