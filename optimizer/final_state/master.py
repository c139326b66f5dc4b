"""The restricted master of the Lagrangian dual: a linear program over patterns, the pods of a node, found so far.

    min Σ_j cost_j·x_j + Σ_c missing_c·u_c + Σ_i value_i·z_i + Σ_c resting_c·r_c
    Σ_j y_j[c]·x_j + u_c = size_c                              for every class           (price)
    Σ_{j of n} demand_r·y_j·x_j ≤ free_{r,n}                   for every capacity        (minus the price of room)
    −Σ_j stay_j·x_j ≤ limit − Σ start                          if moves are limited      (minus the price of moves)
    Σ_{j of n} demand_t·y_j·x_j − Σ_{i of t,n} load_i·z_i = −held_{t,n}
                                                               for every curve of loads  (minus the slope)
    r_c − Σ_j stay_j[c]·x_j ≥ 1 − start_c                      for classes with a cost of resting
    Σ_{j of n} x_j ≤ 1        Σ_{i of t,n} z_i = 1        0 ≤ r_c ≤ 1

Loads of a curve are generated like patterns: a convex curve is the hull of its points. Costs are in shares of the
incumbent's, and each row in shares of its largest amount, so that the program is well scaled; no bound rests on its
precision, since the dual function is evaluated anew at the multipliers that it proposes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.optimizer.final_state.ascent import Multipliers
from stowplan.optimizer.highs import limit_time, linear_program

UNFINISHED = {highspy.HighsModelStatus.kUnknown, highspy.HighsModelStatus.kSolveError}
"""How a run ends that says nothing of the program."""

COST = 1000.0
"""What the incumbent costs in the program."""


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """A curve of loads: ``demand[c]``, ``held[n]``, and ``here[n]``, whether the node has one."""

    demand: Floats
    held: Floats
    here: Bools


class PatternMaster:
    """The master, to which patterns and loads are added.

    Parameters
    ----------
    size, optional, missing
        ``[c]`` pods of each class, how many may be without a node, and what one costs then.
    demands, free
        ``[r, c]`` and ``[r, n]`` of the capacities.
    loads
        Curves of loads.
    kept
        How many pods must stay at least, if moves are limited.
    value
        Cost of the incumbent.
    resting, start
        ``[c]`` what a class costs if none of its pods moves, 0 for no such cost, and its pods on nodes at the start.
    """

    def __init__(
        self,
        size: Ints,
        optional: Ints,
        missing: Floats,
        demands: Floats,
        free: Floats,
        loads: Sequence[Load],
        kept: float | None,
        value: float,
        resting: Floats,
        start: Ints,
    ) -> None:
        self._demands, self._loads = demands, loads
        self._classes, self._nodes = len(size), free.shape[1]
        self._cost = COST / max(1.0, value)
        self._unit = np.maximum(1.0, free.max(axis=1, initial=1.0))
        self._reach = [max(1.0, float(np.abs(load.held).max(initial=1.0)), float(load.demand.max())) for load in loads]
        self._known: set[tuple[int, bytes]] = set()
        rows, curves = len(free), len(loads)
        # Rows: classes, capacities by node, moves, curves by node, one pattern each, one load each, classes at rest.
        self._room = self._classes
        self._moves = self._room + rows * self._nodes
        self._curve = self._moves + 1
        self._pattern = self._curve + curves * self._nodes
        self._point = self._pattern + self._nodes
        self._rest = self._point + curves * self._nodes
        self._resting = np.flatnonzero(resting)
        self._row_at_rest = np.full(self._classes, -1, dtype=np.int64)
        self._row_at_rest[self._resting] = self._rest + np.arange(len(self._resting))
        without = -highspy.kHighsInf
        held = np.array([-load.held / reach for load, reach in zip(loads, self._reach, strict=True)]).reshape(-1)
        held = np.where(self._here(), held, 0.0)
        room = (free / self._unit[:, None]).reshape(-1)
        most_gone = highspy.kHighsInf if kept is None else -kept
        one = np.ones(self._nodes)
        few, never = np.full(self._nodes, without), np.full(len(self._resting), highspy.kHighsInf)
        lower = [size, np.full(len(room), without), [without], held, few, self._here(), 1.0 - start[self._resting]]
        upper = [size, room, [most_gone], held, one, self._here(), never]
        low, high = (np.concatenate([np.asarray(part, dtype=np.float64) for part in parts]) for parts in (lower, upper))
        self._lp = lp = linear_program()
        lp.setOptionValue("presolve", "off")
        if loads:
            # Curves make the simplex method slow, and its multipliers jump; those of an interior point lead on faster.
            lp.setOptionValue("solver", "ipm")
            lp.setOptionValue("run_crossover", "off")
        lp.setOptionValue("simplex_strategy", 4)  # new columns leave the last basis primal feasible
        empty = np.zeros(0, dtype=np.int32)
        lp.addRows(len(low), low, high, 0, empty, empty, np.zeros(0))
        for c in np.flatnonzero(optional).tolist():
            lp.addCol(missing[c] * self._cost, 0.0, float(optional[c]), 1, np.array([c], dtype=np.int32), np.ones(1))
        for c in self._resting.tolist():
            row = np.array([self._row_at_rest[c]], dtype=np.int32)
            lp.addCol(resting[c] * self._cost, 0.0, 1.0, 1, row, np.ones(1))

    def _here(self) -> Bools:
        """``[t·n]`` the nodes with each curve."""
        return np.array([load.here for load in self._loads], dtype=np.bool_).reshape(-1)

    def add_pattern(self, node: int, pods: Ints, cost: float, stay: Ints) -> bool:
        """Add the pods ``[c]`` of a node, ``stay[c]`` of which start there; return whether they are new."""
        key = (node, pods.tobytes())
        if key in self._known or not pods.any():
            return False
        self._known.add(key)
        cls = np.flatnonzero(pods)
        room = self._demands @ pods / self._unit
        load = np.array(
            [
                load.demand @ pods / reach if load.here[node] else 0.0
                for load, reach in zip(self._loads, self._reach, strict=True)
            ]
        )
        used, bent = np.flatnonzero(room), np.flatnonzero(load)
        index = [cls, self._room + used * self._nodes + node, [self._moves], self._curve + bent * self._nodes + node]
        amount = [pods[cls], room[used], [-stay.sum()], load[bent], [1.0]]
        resting = self._resting[stay[self._resting] > 0]
        index += [[self._pattern + node], self._row_at_rest[resting]]
        self._add(cost, index, [*amount, -stay[resting]])
        return True

    def add_load(self, curve: int, node: int, load: float, cost: float) -> bool:
        """Add a load of a curve's node, and what it costs; return whether it is new."""
        key = (-1 - curve * self._nodes - node, np.float64(load).tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        at = curve * self._nodes + node
        self._add(cost, [[self._curve + at], [self._point + at]], [[-load / self._reach[curve]], [1.0]])
        return True

    def _add(self, cost: float, index: Sequence[object], amount: Sequence[object]) -> None:
        rows = np.concatenate([np.asarray(part, dtype=np.int32) for part in index])
        amounts = np.concatenate([np.asarray(part, dtype=np.float64) for part in amount])
        self._lp.addCol(cost * self._cost, 0.0, highspy.kHighsInf, len(rows), rows, amounts)

    def solve(self, seconds: float | None) -> Multipliers | None:
        """Return the duals; ``None`` if there is no solution, or time is up."""
        lp = self._lp
        limit_time(lp, seconds)
        lp.run()
        if lp.getModelStatus() in UNFINISHED:
            # An interior point method may stall, and would again: from here on the simplex method does it.
            lp.setOptionValue("solver", "simplex")
            lp.run()
        if lp.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        dual = np.asarray(lp.getSolution().row_dual) / self._cost
        room = -dual[self._room : self._moves].reshape(-1, self._nodes) / self._unit[:, None]
        slopes = -dual[self._curve : self._pattern].reshape(-1, self._nodes)
        resting = np.zeros(self._classes)
        resting[self._resting] = np.maximum(0.0, dual[self._rest :])
        return Multipliers(
            dual[: self._classes],
            np.maximum(0.0, room),
            max(0.0, -float(dual[self._moves])),
            tuple(slope / reach for slope, reach in zip(slopes, self._reach, strict=True)),
            resting,
            np.zeros(self._nodes),
        )
