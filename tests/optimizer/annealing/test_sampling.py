"""Steps begin with pods of expensive nodes, but not for ever with those of a node that nothing improves."""

from __future__ import annotations

import numpy as np

from stowplan.models.objective import PRESETS
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.annealing.sampling import PodSampler
from stowplan.optimizer.annealing.state_builder import build_state
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.clusters import node, pod, snapshot

NODES = 5
EXPENSIVE = 0
"""The node that costs ten times as much as the others."""
TIER = 1


def set_costs(state: SearchState, costs: list[int]) -> None:
    """Let the nodes cost so much in the tier, all of it by one curve."""
    of_tier = np.flatnonzero(state.curve[:, 0] == TIER)
    values = state.live[:NODES, int(state.head[at.H_V_VALUE]) :]
    values[:, of_tier] = 0
    values[:, of_tier[0]] = costs


def share_of_expensive(sampler: PodSampler) -> float:
    """Return the share of the sample on the expensive node: its only pod, for every node has one."""
    nodes = sampler.state.pod[sampler.pods()[:-1], at.P_NODE]
    return float((nodes == EXPENSIVE).mean())


def test_a_node_that_nothing_improves_is_sampled_less_and_less() -> None:
    cluster = snapshot(nodes=[node(f"n{i}") for i in range(NODES)], pods=[pod(f"p{i}", f"n{i}") for i in range(NODES)])
    evaluator = Evaluator(compile_problem(cluster, default_profile(K36), PRESETS["balance"]).problem)
    state = build_state(evaluator, evaluator.problem.start)
    set_costs(state, [1000, *[100] * 4])
    nobody = np.zeros(0, dtype=np.int64)
    sampler = PodSampler(state, TIER, nobody, np.random.default_rng(1), AnnealingParameters())
    first = share_of_expensive(sampler)
    assert first > 0.6
    for look in range(20):
        set_costs(state, [1000, *[100 + look % 2] * 4])
        share = share_of_expensive(sampler)
    assert share < 0.5 * first
    set_costs(state, [990, *[100] * 4])
    assert share_of_expensive(sampler) > 0.6, "its cost has changed: something improves it after all"
