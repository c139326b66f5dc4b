"""How many domains pods can be in that must be near others: no more than the others can be in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.problem import Attract, DomainCurve, Problem, Topology
from stowplan.optimizer.evaluate import Evaluator


class Attraction:
    """What `Attract` rules say of the number of domains that pods of a class can be in.

    A seeker that is no target itself needs a target in its domain. So seekers are in no more domains than there are
    targets, those outside the problem among them. A rule that is broken at the start may stay so, and says nothing.

    Parameters
    ----------
    evaluator
        Of the problem.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        problem = evaluator.problem
        self._limits: dict[int, list[tuple[int, Topology, int]]] = {}
        self._finer: dict[tuple[int, int], bool] = {}
        for i, rule in enumerate(problem.rules):
            if isinstance(rule, Attract) and not evaluator.start_violations[i].any():
                for topology, most in _most_domains(rule, problem):
                    for c in np.setdiff1d(rule.seekers, rule.targets).tolist():
                        self._limits.setdefault(c, []).append((i, topology, most))

    def most_domains(self, term: DomainCurve) -> int | None:
        """Return how many domains of a term its pods can be in at most; ``None`` if nothing is known."""
        chosen: dict[tuple[int, int], int] = {}  # by rule and topology
        for c in term.group.tolist():
            known = [
                (most, i, id(topology))
                for i, topology, most in self._limits.get(c, ())
                if self._contained(topology, term.topology)
            ]
            if not known:
                return None
            most, i, topology_id = min(known)
            chosen[i, topology_id] = most
        return sum(chosen.values())

    def _contained(self, inner: Topology, outer: Topology) -> bool:
        """Whether all nodes of a domain of one topology are in one domain of the other, or in none."""
        key = (id(inner), id(outer))
        if key not in self._finer:
            both = (inner.domain >= 0) & (outer.domain >= 0)
            pairs = np.unique(np.stack([inner.domain[both], outer.domain[both]]), axis=1)
            self._finer[key] = len(np.unique(pairs[0])) == pairs.shape[1]
        return self._finer[key]


def _most_domains(rule: Attract, problem: Problem) -> Iterator[tuple[Topology, int]]:
    """Yield each topology of a rule with the number of its domains that can hold a target."""
    pods = int(problem.size[rule.targets].sum())
    for topology in rule.topologies:
        held = topology.total(rule.held.both + rule.held.targets)
        yield topology, pods + int(np.count_nonzero(held))
