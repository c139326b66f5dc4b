"""Ways to a placement where moves wait for each other, in pods: what the optimizer finds in classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import Allow, Origin
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.parameters import parameters_of
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.reconfiguration import Hop, find_way, knows
from stowplan.plans.budgets import Budgets
from stowplan.plans.move import Move
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.plugins.static_filter import passing


@dataclass(slots=True, eq=False)
class WayFinder:
    """Finds moves of single pods, each legal when its turn comes, that lead where all of some moves lead.

    Parameters
    ----------
    start
        Node of every pod that has one today.
    movable
        Whether a pod can be moved at all.
    budgets
        Those that a pod's eviction draws on.
    seconds
        Time that is left for searches, as that of `Deadline`; in deterministic mode, time of each.
    """

    compiled: Compiled
    start: Assignment
    options: Options
    movable: Callable[[Pod], bool]
    budgets: Budgets
    seconds: float
    stop: Stop

    def __call__(self, moves: Sequence[Move]) -> Sequence[Move]:
        """Return the moves in order; none if rules are not known, the end is not legal, or there are too many."""
        problem = self.compiled.problem
        chosen = parameters_of(self.options).reconfiguration
        possible = self.options.kernels and self.seconds > 0 and not self.stop.is_set()
        if not possible or not all(move.target for move in moves) or not knows(problem, chosen):
            return ()
        wanted = self.compiled.placement(self.start.moved((move.pod.key, move.target) for move in moves))
        if Evaluator(problem).evaluate(wanted).violations:
            return ()
        deadline = Deadline(self.seconds, self.options.deterministic, self.stop)
        on_the_way = Evaluator(replace(problem, rules=(*problem.rules, self._open(moves))))
        hops = find_way(on_the_way, wanted, deadline, self.options.seed, parameters=chosen)
        if not deadline.deterministic:
            self.seconds = deadline.remaining
        limit = problem.move_limit
        steps = list(self._steps(hops)) if limit is None or len(hops) <= limit else []
        return steps if all(self.movable(move.pod) for move in steps) else ()

    def _open(self, moves: Sequence[Move]) -> Allow:
        """Return the rule that a pod comes only where filters admit it, its own node included, and may be evicted.

        The problem tolerates that pods stay where they are; who has left may not come back there.
        """
        compiled = self.compiled
        state = ClusterState(compiled.snapshot, compiled.profile.release, compiled.signatures)
        filters = Framework(compiled.profile, state).filters
        ledger, wanted = self.budgets.ledger(), {move.pod.key for move in moves}
        mask = np.ones((len(compiled.problem.classes), state.size), dtype=np.bool_)
        looked_at: set[tuple[int, int]] = set()
        for pod, c in zip(compiled.pods, compiled.class_of.tolist(), strict=True):
            if pod.key not in wanted and not (self.movable(pod) and ledger.response(pod).granted):
                mask[c] = False
            signature = compiled.signatures.of(pod)
            if (c, signature.index) not in looked_at:
                looked_at.add((c, signature.index))
                mask[c] &= passing(filters, signature)
        return Allow(Origin("way", "pods on their way"), np.arange(len(mask)), mask)

    def _steps(self, hops: Sequence[Hop]) -> Iterator[Move]:
        """Yield the moves of pods: of a class, one that came to a node last is the first to leave it."""
        compiled, nodes = self.compiled, self.compiled.problem.nodes
        there: defaultdict[tuple[int, int], list[Pod]] = defaultdict(list)
        index = {name: n for n, name in enumerate(nodes)}
        for pod, c in zip(compiled.pods, compiled.class_of.tolist(), strict=True):
            if pod.key in self.start:
                there[c, index[self.start[pod.key]]].append(pod)
        for c, a, b in hops:
            pod = there[c, a].pop()
            there[c, b].append(pod)
            yield Move(pod, nodes[a], nodes[b])
