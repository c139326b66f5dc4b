"""Placements that differ from one of them in the node of a single pod, compared with each other.

Of tens of thousands of rules, few speak of the pod's class; all others say the same wherever the pod is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import numpy as np

from stowplan.models.problem import (
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    GroupMoveBudget,
    MoveBudget,
    Occupy,
    Placement,
    Problem,
    Repel,
    Rule,
    Spread,
)
from stowplan.optimizer.evaluate.evaluation import Evaluation, Evaluator


class OneMove:
    """Evaluates placements in which one pod has another node, or has one at last.

    Values differ from those of `Evaluator` by what the other rules are violated at the start, which is the same for
    all these placements; whether a placement is legal does not differ.

    Parameters
    ----------
    cls
        Class of the pod.
    source
        Its node at the start; ``None`` if it has none.
    """

    def __init__(self, problem: Problem, cls: int, source: int | None) -> None:
        rules = tuple(rule for rule in problem.rules if concerns(rule, cls))
        self._evaluator = Evaluator(replace(problem, rules=rules))
        self._start = problem.start
        self._cls = cls
        self._source = source

    @property
    def start(self) -> Evaluation:
        """The placement at the start."""
        return self._evaluator.evaluate(self._start)

    def to(self, node: int) -> Evaluation:
        """Return the evaluation of the placement with the pod on a node."""
        nodes = len(self._evaluator.problem.nodes)
        start, first = self._start, self._cls * nodes
        there = [first + node] if self._source is None else [first + node, first + self._source]
        more = np.array([1, -1][: len(there)], dtype=np.int64)
        keys, at = np.unique(
            np.concatenate([start.cls * nodes + start.node, np.array(there, dtype=np.int64)]), return_inverse=True
        )
        count = np.zeros(len(keys), dtype=np.int64)
        np.add.at(count, at.reshape(-1), np.concatenate([start.count, more]))
        keys, count = keys[count > 0], count[count > 0]
        return self._evaluator.evaluate(Placement(keys // nodes, keys % nodes, count))


def concerns(rule: Rule, cls: int) -> bool:
    """Whether it may matter to a rule where a pod of a class is."""
    match rule:
        case Allow() | Distinct() | Devices() | MoveBudget():
            return True
        case Capacity():
            return bool(rule.demand[cls])
        case AtMost() | Occupy() | GroupMoveBudget():
            return cls in rule.group
        case Repel() | Attract():
            return cls in rule.seekers or cls in rule.targets
        case Spread():
            return cls in rule.seekers or cls in rule.counted
        case _:
            assert_never(rule)
