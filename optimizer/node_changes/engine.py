"""Limited moves: bounds from changes of nodes, and sub-problems over the nodes whose changes cost least.

CP-SAT solves the sub-problems with all rules: it takes moves back and spends them better, in any number at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import NodeCurve, Open, Placement, Problem
from stowplan.optimizer.bounds.node_programs import node_programs, separable_terms
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.task import SolverLimits
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.node_changes.generation import ChangeGeneration
from stowplan.optimizer.node_changes.parameters import NodeChangeParameters
from stowplan.optimizer.node_changes.realization import realize
from stowplan.optimizer.node_changes.sub_problem import changed, freed, rearranged
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free

NAME = "Dantzig-Wolfe decomposition"
"""What results call it."""

SharedChanges = dict[tuple[int, tuple[int, ...]], ChangeGeneration | None]
"""Generations of changes by tier and values of the tiers above."""


class NodeChangeEngine:
    """Bounds and improves one tier under a limit on moves.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold; see `stowplan.optimizer.domains.upper_bounds`.
    reached
        Values of the earlier tiers, which must not get worse.
    placement
        A legal placement that has them.
    shared
        Generations of solves that differ in their limit on moves alone, by tier and values reached: one that is there
        is used, one that is made is added.
    """

    @staticmethod
    def suits(problem: Problem, tier: int) -> bool:
        """Whether moves are limited, and the tier sums up costs of nodes in use or of their loads."""
        terms = separable_terms(problem.tiers[tier])
        return problem.move_limit is not None and any(isinstance(term, NodeCurve | Open) for _, term in terms)

    def __init__(
        self,
        evaluator: Evaluator,
        upper: NDArray[np.int32],
        tier: int,
        reached: Sequence[int],
        placement: Placement,
        parameters: NodeChangeParameters | None = None,
        cpsat: CpSatParameters | None = None,
        shared: SharedChanges | None = None,
    ) -> None:
        self.evaluator, self.tier, self.reached = evaluator, tier, tuple(reached)
        self.parameters, self.cpsat = parameters or NodeChangeParameters(), cpsat or CpSatParameters()
        self.placement = placement
        shared = {} if shared is None else shared
        if (tier, self.reached) not in shared:
            shared[tier, self.reached] = self._generation(upper)
        self.generation = shared[tier, self.reached]
        limit = evaluator.problem.move_limit
        if self.generation is not None and limit is not None:
            self.generation.set_limit(limit)

    def _generation(self, upper: NDArray[np.int32]) -> ChangeGeneration | None:
        """Return the generation of changes, or ``None`` if the tier is too large for one."""
        chosen, evaluator = self.parameters, self.evaluator
        programs = node_programs(evaluator, upper, self.tier, self.reached, chosen.largest, chosen.kinds)
        nodes = len(evaluator.problem.nodes)
        return None if programs is None else ChangeGeneration(programs, nodes, self.placement, chosen)

    def bound(
        self, deadline: Deadline, value: int | None = None, found: Callable[[int], object] = lambda bound: None
    ) -> int | None:
        """Return a lower bound of the tier, or ``None`` if there was no time for one.

        Parameters
        ----------
        found
            Called with each better bound, the first one long before the last.
        """
        if self.generation is None:
            return None
        self.generation.run(deadline, value, found)
        return self.generation.bound() if self.generation.lines else None

    def whole(self, deadline: Deadline) -> Placement | None:
        """Return the placement of the best whole changes; ``None`` if there are none."""
        if self.generation is None:
            return None
        master = self.generation.master
        used = master.whole(None if deadline.deterministic else deadline.remaining, self.parameters.branches)
        if used is None:
            return None
        members = self._members()
        changes = []
        for j in np.flatnonzero(used).tolist():
            for _ in range(int(used[j])):
                changes.append((members[master.program[j]].pop(0), master.change[j]))
        return realize(self.evaluator, self.generation.programs, changes)

    def _members(self) -> dict[int, list[int]]:
        """Return the nodes of each program."""
        assert self.generation is not None
        members: dict[int, list[int]] = {}
        for n, m in enumerate(self.generation.programs.program.tolist()):
            members.setdefault(m, []).append(n)
        return members

    def improve(
        self,
        deadline: Deadline,
        offer: Callable[[Placement], bool],
        enough: Callable[[], bool],
        *,
        workers: int = 1,
        seed: int = 0,
    ) -> bool:
        """Make whole changes, then solve sub-problems over the nodes whose changes cost least, larger and larger ones.

        Parameters
        ----------
        offer
            Takes a placement and says whether it is the best so far.
        enough
            Says when to stop.

        Returns
        -------
        searched
            Whether there was time for a sub-problem.
        """
        if self.generation is None:
            return False
        chosen, room = self.parameters, self.evaluator.problem.tiers[self.tier].counts_unscheduled
        if room:
            self.generation.settle(deadline)  # the first changes are enough to say which nodes matter
        if self.generation.solution is None:
            return False
        made = self.whole(deadline.share(chosen.whole_share))
        if made is not None and offer(made):
            self.placement = made
        first = chosen.variables_for_room if room else chosen.variables
        index, size, work = Index(self.evaluator), float(first), 0.0
        before, searched = None, False
        while not deadline.over and not enough() and not (deadline.deterministic and work >= deadline.seconds):
            free = self.neighborhood(int(size))
            if before is not None and len(free.nodes) == len(before.nodes) and len(free.classes) == len(before.classes):
                return searched  # there is nothing more to free
            left = deadline.seconds - work if deadline.deterministic else deadline.remaining
            pairs = len(free.nodes) * len(free.classes)
            if pairs > chosen.variables_per_second * left:
                return searched  # the model would take longer to write than there is time
            searched = True
            seconds = None if deadline.deterministic else max(0.1, deadline.remaining)
            limits = SolverLimits(
                seconds,
                chosen.work,
                workers=1 if deadline.deterministic else workers,
                seed=seed,
            )
            placement, spent = rearranged(
                index, self.tier, self.placement, free, limits, self.cpsat, deadline.stop.is_set
            )
            work += spent
            if placement is not None and offer(placement):
                self.placement = placement
            else:
                before, size = free, max(size, pairs) * chosen.growth
        return searched

    def neighborhood(self, variables: int) -> Free:
        """Return the nodes whose changes cost least, and the classes that these changes are about.

        Nodes that the placement changes come first, then those whose changes the master makes, then others by reduced
        cost, until there are about so many pairs of a class and a node.
        """
        assert self.generation is not None
        assert self.generation.solution is not None
        problem, generation = self.evaluator.problem, self.generation
        programs, solution, master = generation.programs, self.generation.solution, generation.master
        moved = changed(problem, self.placement)
        chosen, kinds = set(moved.node.tolist()), set(programs.kind[moved.cls].tolist())
        members = self._members()
        on_node = self._classes_by_node()
        priced = len(solution.used)
        classes = _of_kinds(on_node, chosen, kinds, programs.kind)
        for j in np.lexsort((solution.reduced, -solution.used)).tolist()[:priced]:
            if len(classes) * len(chosen) >= variables:
                break
            node = next((n for n in members[master.program[j]] if n not in chosen), None)
            kinds |= set(np.flatnonzero(master.change[j]).tolist())
            if node is not None:
                chosen.add(node)
            classes = _of_kinds(on_node, chosen, kinds, programs.kind)
        return freed(problem, self.placement, chosen, kinds, programs.kind)

    def _classes_by_node(self) -> list[set[int]]:
        """``[n]`` the classes that have pods on a node, in the placement or at the start."""
        found: list[set[int]] = [set() for _ in self.evaluator.problem.nodes]
        for placement in (self.placement, self.evaluator.problem.start):
            for c, n in zip(placement.cls.tolist(), placement.node.tolist(), strict=True):
                found[n].add(c)
        return found


def _of_kinds(on_node: list[set[int]], nodes: set[int], kinds: set[int], kind: Ints) -> set[int]:
    """Return the classes of some kinds that have pods on some nodes."""
    return {c for n in nodes for c in on_node[n] if int(kind[c]) in kinds}
