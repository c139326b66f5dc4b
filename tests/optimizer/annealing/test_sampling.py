"""Steps begin with pods of costly nodes, but not for ever with those of a node that nothing helps."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.models.objective import PRESETS
from stowplan.optimizer.annealing import sampling as aiming
from stowplan.optimizer.annealing.state_builder import build_state
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.clusters import node, pod, snapshot

NODES = 5
COSTLY = 0
"""The node that costs ten times as much as the others."""


def aimed_at(sampler: aiming.PodSampler) -> float:
    """Return the share of the pods aimed at that stand on the costly node: its only pod, for every node has one."""
    nodes = sampler.state.pod[sampler.pods()[:-1], aiming.at.P_NODE]
    return float((nodes == COSTLY).mean())


def test_a_node_that_nothing_helps_is_aimed_at_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = snapshot(nodes=[node(f"n{i}") for i in range(NODES)], pods=[pod(f"p{i}", f"n{i}") for i in range(NODES)])
    evaluator = Evaluator(compile_problem(cluster, default_profile(K36), PRESETS["balance"]).problem)
    costs = np.ones(NODES)
    costs[COSTLY] = 10.0
    monkeypatch.setattr(aiming, "_node_costs", lambda state, tier: costs.copy())
    nobody = np.zeros(0, dtype=np.int64)
    sampler = aiming.PodSampler(build_state(evaluator, evaluator.problem.start), 1, nobody, np.random.default_rng(1))
    first = aimed_at(sampler)
    assert first > 0.6
    for look in range(20):
        costs[1:] = 1 + 0.01 * (look % 2)
        share = aimed_at(sampler)
    assert share < 0.5 * first
    costs[COSTLY] = 9.9
    assert aimed_at(sampler) > 0.6, "its cost has changed: something helps after all"
