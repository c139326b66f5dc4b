"""The pods of violated constraints."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    GroupMoveBudget,
    MoveBudget,
    Occupy,
    Placement,
    Problem,
    Repel,
    Rule,
    Spread,
    Topology,
)
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.violations import violation


def violating_pods(evaluator: Evaluator, placement: Placement, state: SearchState) -> Ints:
    """Return the pods on the nodes where a rule is violated that was violated at the start."""
    problem = evaluator.problem
    nodes = np.zeros(len(problem.nodes) + 1, dtype=np.bool_)
    for rule, before in zip(problem.rules, evaluator.start_violations, strict=True):
        if before.any():
            nodes[:-1] |= _nodes(rule, problem, violation(rule, problem, placement) > 0)
    return np.flatnonzero(nodes[state.pod[:, at.P_NODE]])


def _nodes(rule: Rule, problem: Problem, places: Bools) -> Bools:
    """``[n]`` the nodes of some places of a rule."""
    nodes = len(problem.nodes)
    match rule:
        case Allow() | Capacity() | Distinct() | Devices():
            return places
        case Attract():
            return places[:nodes] | places[nodes:]
        case AtMost() | Repel() | Spread():
            return _inside(rule.topology, places)
        case Occupy() | MoveBudget() | GroupMoveBudget():
            return np.full(nodes, bool(places.any()))
        case _:
            assert_never(rule)


def _inside(topology: Topology, places: Bools) -> Bools:
    inside: Bools = np.append(places, False)[topology.domain]
    return inside
