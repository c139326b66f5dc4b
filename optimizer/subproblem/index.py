"""A problem with its rules and terms indexed by class, computed once for all of its models."""

from __future__ import annotations

from stowplan.models.arrays import Ints
from stowplan.models.problem import Attract, Capacity, Pair, Repel
from stowplan.optimizer.evaluate.evaluation import Evaluator
from stowplan.optimizer.evaluate.violations import roles
from stowplan.optimizer.subproblem.mentions import Mentions


class Index:
    """What models of one problem share.

    Attributes
    ----------
    before
        Violation at the start, by place, of each rule that is violated there.
    capacities
        The capacities, with their numbers among the rules.
    rules_of, terms_of
        Which rules name a class; for each tier, which terms do.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.problem = problem = evaluator.problem
        self.before = {i: before for i, before in enumerate(evaluator.start_violations) if before.any()}
        self.capacities = [(i, rule) for i, rule in enumerate(problem.rules) if isinstance(rule, Capacity)]
        classes = len(problem.classes)
        self.rules_of = Mentions(problem.rules, classes)
        self.terms_of = [Mentions([w.term for w in tier.terms], classes) for tier in problem.tiers]
        self._start_load: dict[int, Ints] = {}
        self._roles: dict[int, tuple[Ints, Ints, Ints]] = {}

    def start_load(self, rule: Capacity) -> Ints:
        """``[n]`` demand of the pods that were on each node at the start."""
        if id(rule) not in self._start_load:
            self._start_load[id(rule)] = self.problem.start.per_node(len(self.problem.nodes), rule.demand)
        return self._start_load[id(rule)]

    def roles(self, part: Repel | Attract | Pair) -> tuple[Ints, Ints, Ints]:
        """Return the classes that are seeker and target, seeker only, target only."""
        found = self._roles.get(id(part))
        if found is None:
            found = self._roles[id(part)] = roles(part.seekers, part.targets)
        return found
