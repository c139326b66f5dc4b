"""What one pod more, or one less, changes in a tier: dense tables, written plainly.

These are not the tables of `stowplan.optimizer.constructive`: simple methods must not share code with it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Curves, DomainCurve, Move, NodeCurve, NodeScore, Open, Prefer, Problem, Tier
from stowplan.optimizer.evaluate.cost import missed_points


def marginal_costs(problem: Problem, tier: Tier, y: Ints, classes: Ints, nodes: Ints, pods: int) -> Ints:
    """``[c, n]`` change of a tier if ``pods`` pods, 1 or -1, of a class come to a node.

    `Pair` and `MovePeak` are left out, since callers evaluate each step; a legal move changes neither
    violations for the worse nor unplaced pods.

    Parameters
    ----------
    y
        ``[c, n]`` the placement.
    classes, nodes
        Which rows and columns to compute.
    """
    total = np.zeros((len(classes), len(nodes)), dtype=np.int64)
    here = y[:, nodes]
    for weighted in tier.terms:
        weight = weighted.weight
        match weighted.term:
            case Move() as term:
                home = problem.start.table(*problem.shape)[np.ix_(classes, nodes)]
                left = np.maximum(0, home - y[np.ix_(classes, nodes)] - pods)
                total += weight * term.cost[classes][:, None] * (left - np.maximum(0, home - y[np.ix_(classes, nodes)]))
            case NodeCurve() as term:
                load = term.demand @ here + term.held[nodes]
                for j in np.flatnonzero(term.curve[nodes] >= 0).tolist():
                    curve = int(term.curve[nodes[j]])
                    after = _curve(term.curves, curve, load[j] + pods * term.demand[classes])
                    total[:, j] += weight * (after - _curve(term.curves, curve, load[[j]]))
            case DomainCurve() as term:
                members = np.isin(classes, term.group)
                if members.any() and term.topology.size:
                    count = term.topology.total(y[term.group].sum(axis=0)) + term.held
                    rise = _curve(term.curves, 0, count + pods) - _curve(term.curves, 0, count)
                    domain = term.topology.domain[nodes]
                    total[members] += weight * np.where(domain >= 0, rise[domain], 0)
            case NodeScore() as term:
                total += weight * _score(term, y, classes, nodes, pods)
            case Open() as term:
                number = here.sum(axis=0) + term.held[nodes]
                total += weight * term.cost[nodes] * ((number + pods > 0).astype(np.int64) - (number > 0))
            case Prefer() as term:
                total += weight * pods * term.table[np.ix_(term.row[classes], nodes)]
            case _:
                pass
    return total


def _curve(curves: Curves, k: int, x: Ints) -> Ints:
    """Return the values of one curve."""
    piece = np.maximum(0, np.searchsorted(curves.start[k], x, side="right") - 1)
    values: Ints = curves.value[k, piece] + curves.slope[k, piece] * (x - curves.start[k, piece])
    return values


def _score(term: NodeScore, y: Ints, classes: Ints, nodes: Ints, pods: int) -> Ints:
    """``[c, n]`` change of the points that the pods of a node miss."""
    rows, columns = (axis.ravel() for axis in np.meshgrid(classes, nodes, indexing="ij"))
    scored = term.scored @ y[:, nodes]
    used = np.array([load.demand @ y[:, nodes] + load.held[nodes] for load in term.loads])
    added = np.array([load.demand[rows] for load in term.loads]) * pods
    now = missed_points(_on(term, nodes), used)
    then = missed_points(_on(term, columns), np.tile(used, len(classes)) + added).reshape(len(classes), len(nodes))
    change: Ints = term.cost * ((scored + pods * term.scored[classes][:, None]) * then - scored * now)
    return change


def _on(term: NodeScore, nodes: Ints) -> NodeScore:
    """Return a score over the given nodes, which may be named several times."""
    return replace(term, loads=tuple(replace(load, capacity=load.capacity[nodes]) for load in term.loads))
