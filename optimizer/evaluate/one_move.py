"""Placements that differ from one of them in the node of a single pod, compared with each other.

Of tens of thousands of rules, few speak of the pod's class; all others say the same wherever the pod is.
"""

from __future__ import annotations

from dataclasses import replace

from stowplan.models.problem import NOWHERE, Problem, Rule, class_sets
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
        self._source = NOWHERE if source is None else source

    @property
    def start(self) -> Evaluation:
        """The placement at the start."""
        return self._evaluator.evaluate(self._start)

    def to(self, node: int) -> Evaluation:
        """Return the evaluation of the placement with the pod on a node."""
        return self._evaluator.evaluate(self._start.with_pod_moved(self._cls, self._source, node))


def concerns(rule: Rule, cls: int) -> bool:
    """Whether it may matter to a rule where a pod of a class is: it names the class, or is about all."""
    named = class_sets(rule)
    return not named or any(cls in group for group in named)
