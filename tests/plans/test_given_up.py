"""What is given up cannot be reached: of small clusters every placement is looked at that moves lead to."""

from __future__ import annotations

import random
from collections import deque

import pytest

from benchmarks.plans import DRAWS
from stowplan.answers.assessment import Assessor
from stowplan.answers.solve import fixed, today
from stowplan.models.limits import LimitsDocument
from stowplan.models.settings import Settings
from stowplan.planning.plan import planning_problem, sequence_placement
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.terms import Terms
from tests.support.restless import placed_at_random, restless_cluster

GIVING_UP = (3, 10, 19, 34, 39, 62, 69, 91, 106, 121, 126, 128, 129, 167, 195)
"""Of 200 seeds those where not budgets but room or company keep up to five pods from a random placement."""


def random_target(compiled: Compiled, seed: int) -> dict[str, str]:
    """Return a placement at random that keeps a node for every pod that has one."""
    rng = random.Random(f"elsewhere {seed}")
    placed = {p.key for p in compiled.pods if p.node_name}
    for _ in range(DRAWS):
        drawn = placed_at_random(rng, compiled.snapshot, compiled.profile.release, fixed(compiled))
        if placed <= drawn.keys():
            return fixed(compiled) | compiled.assign(compiled.placement(drawn))
    return today(compiled)


def reachable(compiled: Compiled, target: dict[str, str]) -> bool:
    """Whether moves of those pods that are to move lead there, one at a time, over any nodes that admit them."""
    start = today(compiled)
    kinds = dict(zip((p.key for p in compiled.pods), compiled.class_of.tolist(), strict=True))
    movers = [p for p in compiled.pods if target.get(p.key, "") != p.node_name]
    nodes, index = compiled.snapshot.nodes, compiled.snapshot.node_index

    def alike(at: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
        return tuple(sorted((kinds[p.key], node) for p, node in zip(movers, at, strict=True)))

    stay = {key: node for key, node in start.items() if key not in {p.key for p in movers}}
    state = (framework := populated(compiled.snapshot, compiled.profile, stay, compiled.signatures)).state
    signatures = [state.signatures.of(p) for p in movers]
    first = tuple(start.get(p.key, "") for p in movers)
    goal = alike(tuple(target.get(p.key, "") for p in movers))
    seen, queue = {alike(first)}, deque([first])
    while queue:
        at = queue.popleft()
        if alike(at) == goal:
            return True
        here = [(signature, index[node]) for signature, node in zip(signatures, at, strict=True) if node]
        for signature, node in here:
            state.assume(signature, node)
        for i, p in enumerate(movers):
            for gone in (False, True):  # a replacement that waits for its own pod may come too
                if gone and at[i]:
                    state.forget(signatures[i], index[at[i]])
                for n in framework.run_filters(framework.cycle(p)).feasible.tolist():
                    then = (*at[:i], nodes[n].name, *at[i + 1 :])
                    if alike(then) not in seen:
                        seen.add(alike(then))
                        queue.append(then)
                if gone and at[i]:
                    state.assume(signatures[i], index[at[i]])
        for signature, node in here:
            state.forget(signature, node)
    return False


@pytest.mark.parametrize("seed", GIVING_UP)
def test_what_is_given_up_cannot_be_reached(seed: int) -> None:
    terms = Terms(limits=LimitsDocument())
    compiled = planning_problem(restless_cluster(seed), Settings(), terms)
    target = random_target(compiled, seed)
    planned = sequence_placement(Assessor(compiled), target, (), Settings(), terms, keep=True)
    assert planned.plan.given_up
    assert not reachable(compiled, target)
