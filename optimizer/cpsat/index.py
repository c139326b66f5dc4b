"""A problem with its rules and terms looked up by class, worked out once for all of its models."""

from __future__ import annotations

from models.arrays import Ints
from models.problem import Attract, Capacity, Pair, Repel
from optimizer.evaluate.evaluation import Judge
from optimizer.evaluate.excess import roles


class Index:
    """What models of one problem share.

    Attributes
    ----------
    before
        Excess at the start, by place, of each rule that is exceeded there.
    capacities
        The capacities, with their numbers among the rules.
    """

    def __init__(self, judge: Judge) -> None:
        self.problem = problem = judge.problem
        self.before = {i: before for i, before in enumerate(judge.start_excess) if before.any()}
        self.capacities = [(i, rule) for i, rule in enumerate(problem.rules) if isinstance(rule, Capacity)]
        self.judge = judge
        self._start_load: dict[int, Ints] = {}
        self._roles: dict[int, tuple[Ints, Ints, Ints]] = {}

    def rules(self, classes: Ints) -> list[int]:
        """Return the numbers of the rules that name any of the classes, or that speak of all."""
        return self.judge.naming_rules.of(classes)

    def terms(self, tier: int, classes: Ints) -> list[int]:
        """Return the numbers of the terms of a tier that name any of the classes, or that speak of all."""
        return self.judge.naming_terms[tier].of(classes)

    def start_load(self, rule: Capacity) -> Ints:
        """``[n]`` what the pods that stood on each node at the start demand."""
        if id(rule) not in self._start_load:
            self._start_load[id(rule)] = self.problem.start.per_node(len(self.problem.nodes), rule.demand)
        return self._start_load[id(rule)]

    def roles(self, part: Repel | Attract | Pair) -> tuple[Ints, Ints, Ints]:
        """Return the classes that are seeker and target, seeker only, target only."""
        found = self._roles.get(id(part))
        if found is None:
            found = self._roles[id(part)] = roles(part.seekers, part.targets)
        return found
