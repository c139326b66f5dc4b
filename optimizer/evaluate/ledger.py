"""The judge's verdict on a placement that differs from a known one in a few classes.

What rules and terms say of classes that stay where they are has not changed, so only the parts that name a changed
class are evaluated again, by the same functions as the judge's. Nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.arrays import Ints
from models.problem import Excess, Placement
from optimizer.evaluate.cost import cost
from optimizer.evaluate.evaluation import Judge, severity
from optimizer.evaluate.excess import arrivals, excess


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """What a placement is worth.

    Parameters
    ----------
    values, legal
        As of `optimizer.evaluate.Evaluation`.
    excess, costs
        What was evaluated again: by number of the rule, and by numbers of tier and term.
    """

    placement: Placement
    values: tuple[int, ...]
    legal: bool
    excess: dict[int, int]
    costs: dict[tuple[int, int], int]


class Ledger:
    """Books on one placement: what exceeds each rule, what each term costs.

    Attributes
    ----------
    placement, values
        The placement, and the value of each tier.
    """

    def __init__(self, judge: Judge, placement: Placement) -> None:
        self.judge = judge
        problem = judge.problem
        self._excess: dict[int, int] = {}
        self._total = 0
        self._costs: dict[tuple[int, int], int] = {}
        self.placement = placement
        self.values: tuple[int, ...] = ()
        everything = [range(len(tier.terms)) for tier in problem.tiers]
        self.take(self._weigh(placement, range(len(problem.rules)), everything))

    def weigh(self, placement: Placement, changed: Ints) -> Weighing:
        """Evaluate a placement.

        Parameters
        ----------
        changed
            The classes that do not stand as in this placement; there may be others among them.
        """
        terms = [naming.of(changed) for naming in self.judge.naming_terms]
        return self._weigh(placement, self.judge.naming_rules.of(changed), terms)

    def take(self, weighing: Weighing) -> None:
        """Let another placement be the known one."""
        self.placement, self.values = weighing.placement, weighing.values
        for i, now in weighing.excess.items():
            self._total += now - self._excess.pop(i, 0)
            if now:
                self._excess[i] = now
        self._costs.update(weighing.costs)

    def _weigh(self, placement: Placement, rules: Iterable[int], terms: list[range] | list[list[int]]) -> Weighing:
        problem = self.judge.problem
        missing = problem.size - placement.placed(len(problem.classes))
        legal = bool(np.all((missing >= 0) & (missing <= problem.spare)))
        found: dict[int, int] = {}
        for i in rules:
            rule, before = problem.rules[i], self.judge.start_excess[i]
            now = excess(rule, problem, placement)
            found[i] = int((now * severity(rule, len(now))).sum()) if now.any() else 0
            if now.any():
                worse = (now > before) | ((now > 0) & (arrivals(rule, problem, placement) > 0))
                legal = legal and not worse.any()
        total = self._total + sum(now - self._excess.get(i, 0) for i, now in found.items())
        costs = {
            (t, k): total if isinstance(term, Excess) else cost(term, problem, placement, total)
            for t, numbers in enumerate(terms)
            for k in numbers
            for term in (problem.tiers[t].terms[k].term,)
        }
        values = tuple(
            sum(w.weight * costs.get((t, k), self._costs.get((t, k), 0)) for k, w in enumerate(tier.terms))
            for t, tier in enumerate(problem.tiers)
        )
        return Weighing(placement, values, legal, found, costs)
