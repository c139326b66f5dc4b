"""The least reduced cost of one node at given multipliers, in whole pods, by depth-first branch and bound.

All numbers are integers on a fixed-point scale, so nothing is lost to rounding. A search that is cut off still returns
a lower bound: the least of its incumbent and of the bounds of all subtrees that it has not explored.
"""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.optimizer.bounds.node_programs import Tables
from stowplan.optimizer.compiled.jit import allocating

INFINITE = 1 << 62
"""More than anything costs."""

PAIRED = 32
"""Kinds among which pairs of changes are tried for an initial solution."""

ROUNDS = 40
"""Improvements of the initial solution at most."""


@allocating
def piece_at(tables: Tables, f: int, x: int) -> int:
    """Return the piece of a curve that contains a load."""
    low, high = 0, tables.pieces[f]
    while high - low > 1:
        middle = (low + high) // 2
        if tables.first[f, middle] <= x:
            low = middle
        else:
            high = middle
    return low


@allocating
def value_at(tables: Tables, f: int, x: int) -> int:
    """Return the value of a curve."""
    low = piece_at(tables, f, x)
    value: int = tables.value[f, low] + tables.slope[f, low] * (x - tables.first[f, low])
    return value


@allocating
def slope_at(tables: Tables, f: int, x: int) -> int:
    """Return the slope of a curve to the right of a load."""
    slope: int = tables.slope[f, piece_at(tables, f, x)]
    return slope


@allocating
def least_at_price(tables: Tables, m: int, r: int, dual: int) -> int:
    """Return ``min f(x) − dual·x`` over the loads that a row of a node can have: minus the conjugate of ``f``."""
    f = tables.curve[m, r]
    low, high = 0, tables.pieces[f]
    while low < high:
        middle = (low + high) // 2
        if tables.slope[f, middle] < dual:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        x = tables.floor[m, r]
    elif low == tables.pieces[f]:
        x = tables.capacity[m, r]
    else:
        x = min(max(tables.first[f, low], tables.floor[m, r]), tables.capacity[m, r])
    value: int = value_at(tables, f, x) - dual * x
    return value


@allocating
def node_dual_value(
    tables: Tables, m: int, multipliers: Ints, load_duals: Ints, least: Ints, each: Ints, default: Ints, load: Ints
) -> int:
    """Return the bound of a node at given multipliers and load duals.

    Parameters
    ----------
    least
        ``[r]`` is filled with the least of each curve less its load at the dual.
    each, default, load
        ``[k]`` the reduced cost of a pod that arrives, ``[k]`` the cheapest numbers of pods, ``[r]`` their loads.
    """
    total = 0
    for r in range(len(load_duals)):
        least[r] = least_at_price(tables, m, r, load_duals[r])
        total += least[r] + load_duals[r] * tables.base[m, r]
        load[r] = tables.base[m, r]
    for k in range(len(multipliers)):
        default[k] = 0
        if not tables.upper[m, k]:
            continue
        cost = tables.linear[m, k] - multipliers[k]
        for r in range(len(load_duals)):
            cost += load_duals[r] * tables.demand[r, k]
        each[k] = cost
        if cost < 0:
            default[k] = tables.upper[m, k]
        elif cost < tables.move[k]:
            default[k] = tables.start[m, k]
        total += cost * default[k] + tables.move[k] * max(0, tables.start[m, k] - default[k])
        for r in range(len(load_duals)):
            load[r] += tables.demand[r, k] * default[k]
    return total


@allocating
def change(tables: Tables, m: int, k: int, cost: int, here: int, there: int) -> int:
    """Return the change of cost for ``there`` instead of ``here`` pods of a kind, each of reduced cost ``cost``."""
    start = tables.start[m, k]
    total: int = cost * (there - here) + tables.move[k] * (max(0, start - there) - max(0, start - here))
    return total


@allocating
def curve_reduced_cost(tables: Tables, m: int, load_duals: Ints, least: Ints, load: Ints) -> int:
    """Return how far the curves at some loads are above their bound, or ``INFINITE`` beyond a capacity."""
    total = 0
    for r in range(len(load_duals)):
        if load[r] > tables.capacity[m, r]:
            return INFINITE
        total += value_at(tables, tables.curve[m, r], load[r]) - load_duals[r] * load[r] - least[r]
    return total


@allocating
def initial_solution(
    tables: Tables, m: int, load_duals: Ints, least: Ints, each: Ints, default: Ints, load: Ints, now: Ints
) -> int:
    """Fill ``now`` with a good solution, and return how far above the bound it is.

    It is improved by changes of one or two kinds while they help.
    """
    rows, kinds = len(load_duals), len(each)
    now[:] = default
    at, trial = load.copy(), load.copy()
    paid = 0
    over = curve_reduced_cost(tables, m, load_duals, least, at)
    if over == INFINITE:  # the pods of the start are within all capacities
        for k in range(kinds):
            now[k] = tables.start[m, k]
            paid += change(tables, m, k, each[k], default[k], now[k])
            for r in range(rows):
                at[r] += tables.demand[r, k] * (now[k] - default[k])
        over = curve_reduced_cost(tables, m, load_duals, least, at)
    best = paid + over
    near = np.full(kinds, INFINITE)
    for k in range(kinds):
        if tables.upper[m, k]:
            near[k] = min(abs(each[k]), abs(each[k] - tables.move[k]) if tables.start[m, k] else INFINITE)
    order = np.argsort(near)[:PAIRED]
    for _ in range(ROUNDS):
        found, a, b, da, db, cost = best, -1, -1, 0, 0, 0
        for i in range(len(order)):
            k = order[i]
            for dk in (-1, 1):
                if not 0 <= now[k] + dk <= tables.upper[m, k]:
                    continue
                one = paid + change(tables, m, k, each[k], now[k], now[k] + dk)
                for r in range(rows):
                    trial[r] = at[r] + dk * tables.demand[r, k]
                over = curve_reduced_cost(tables, m, load_duals, least, trial)
                if over < INFINITE and one + over < found:
                    found, a, b, da, db, cost = one + over, k, -1, dk, 0, one
                for j in range(i):
                    q = order[j]
                    for dq in (-1, 1):
                        if not 0 <= now[q] + dq <= tables.upper[m, q]:
                            continue
                        two = one + change(tables, m, q, each[q], now[q], now[q] + dq)
                        if two >= found:
                            continue
                        for r in range(rows):
                            trial[r] = at[r] + dk * tables.demand[r, k] + dq * tables.demand[r, q]
                        over = curve_reduced_cost(tables, m, load_duals, least, trial)
                        if over < INFINITE and two + over < found:
                            found, a, b, da, db, cost = two + over, k, q, dk, dq, two
        if a < 0:
            break
        best, paid = found, cost
        now[a] += da
        for r in range(rows):
            at[r] += da * tables.demand[r, a]
        if b >= 0:
            now[b] += db
            for r in range(rows):
                at[r] += db * tables.demand[r, b]
    return best


@allocating
def trial_duals(tables: Tables, m: int, load_duals: Ints, load: Ints, typical: Ints) -> Ints:
    """``[j, r]`` differences to other load duals: the slopes at loads somewhat below and above the default loads."""
    rows = len(load_duals)
    shift = np.zeros((1 + 4 * rows + 2 * rows * (rows - 1), rows), dtype=np.int64)
    near = np.zeros((rows, 4), dtype=np.int64)
    number = 1
    for r in range(rows):
        f = tables.curve[m, r]
        if tables.pieces[f] == 1 and not load_duals[r]:
            continue
        for i in range(4):
            distance = (-3, -1, 1, 3)[i] * typical[r] // 2
            near[r, i] = slope_at(tables, f, max(tables.floor[m, r], load[r] + distance)) - load_duals[r]
            if near[r, i]:
                shift[number, r] = near[r, i]
                number += 1
    for r in range(rows):
        for q in range(r):
            for i in (1, 2):
                for j in (1, 2):
                    if near[r, i] and near[q, j] and number < len(shift):
                        shift[number, r], shift[number, q] = near[r, i], near[q, j]
                        number += 1
    return shift[:number]


@allocating
def search_node(
    tables: Tables, m: int, multipliers: Ints, load_duals: Ints, typical: Ints, budget: int, solution: Ints
) -> int:
    """Return a lower bound of the reduced cost of node ``m`` in use, exact if the search ends within its budget.

    Parameters
    ----------
    multipliers, load_duals
        ``[k]`` multipliers of the kinds, ``[r]`` duals of the loads. All are valid; good ones make a good bound.
    typical
        ``[r]`` load of a typical pod.
    budget
        Branching decisions that may be explored; with 0 the result is the bound of the duals.
    solution
        ``[k]`` is filled with the best pattern found.
    """
    rows, kinds = len(load_duals), len(multipliers)
    least, load = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    each, default = np.zeros(kinds, dtype=np.int64), np.zeros(kinds, dtype=np.int64)
    base = node_dual_value(tables, m, multipliers, load_duals, least, each, default, load)
    solution[:] = default
    if budget <= 0:
        return base
    best = initial_solution(tables, m, load_duals, least, each, default, load, solution)
    # Kinds that can differ from the default without costing more than the incumbent, and by how many pods.
    item, weight = np.empty(kinds, dtype=np.int64), np.empty(kinds)
    fewest, most = np.zeros(kinds, dtype=np.int64), np.zeros(kinds, dtype=np.int64)
    items = 0
    for k in range(kinds):
        few, many, d = 0, 0, default[k]
        while d + many < tables.upper[m, k] and change(tables, m, k, each[k], d, d + many + 1) < best:
            many += 1
        while d + few > 0 and change(tables, m, k, each[k], d, d + few - 1) < best:
            few -= 1
        if few or many:
            item[items], fewest[k], most[k] = k, few, many
            weight[items] = 0.0
            for r in range(rows):
                weight[items] -= abs(tables.demand[r, k]) / typical[r]
            items += 1
    order = item[np.argsort(weight[:items])]
    shift = trial_duals(tables, m, load_duals, load, typical)
    trials = len(shift)
    floor = np.zeros(trials, dtype=np.int64)
    for j in range(trials):
        for r in range(rows):
            floor[j] += least_at_price(tables, m, r, load_duals[r] + shift[j, r]) - least[r]
    # What the items from i on can contribute at best: at the trial duals, and to each load.
    rest = np.zeros((items + 1, trials), dtype=np.int64)
    relief = np.zeros((items + 1, rows), dtype=np.int64)
    for i in range(items - 1, -1, -1):
        k = order[i]
        for r in range(rows):
            demand = tables.demand[r, k]
            relief[i, r] = relief[i + 1, r] + min(demand * fewest[k], demand * most[k])
        for j in range(trials):
            pull = 0
            for r in range(rows):
                pull += shift[j, r] * tables.demand[r, k]
            lowest = INFINITE
            for t in range(fewest[k], most[k] + 1):
                lowest = min(lowest, change(tables, m, k, each[k], default[k], default[k] + t) + pull * t)
            rest[i, j] = rest[i + 1, j] + lowest
    at = np.zeros((items + 1, rows), dtype=np.int64)
    at[0] = load
    paid, turn, taken = np.zeros((3, items + 1), dtype=np.int64)
    turn[0] = -1
    cut, seen, i = INFINITE, 0, 0
    while i >= 0:
        if i == items:
            over = curve_reduced_cost(tables, m, load_duals, least, at[i])
            if over < INFINITE and paid[i] + over < best:
                best = paid[i] + over
                solution[:] = default
                for a in range(items):
                    solution[order[a]] += taken[a]
            i -= 1
            continue
        # The default first, then one pod more, one less, two more, …
        k = order[i]
        turn[i] += 1
        t = (turn[i] + 1) // 2 if turn[i] % 2 else -(turn[i] // 2)
        if not fewest[k] <= t <= most[k]:
            if (turn[i] + 1) // 2 > max(most[k], -fewest[k]):
                i -= 1
            continue
        cost = paid[i] + change(tables, m, k, each[k], default[k], default[k] + t)
        if cost >= best:
            continue
        within = True
        for r in range(rows):
            at[i + 1, r] = at[i, r] + t * tables.demand[r, k]
            within = within and at[i + 1, r] + relief[i + 1, r] <= tables.capacity[m, r]
        if not within:
            continue
        bound = cost
        for j in range(trials):
            other = cost + floor[j] + rest[i + 1, j]
            for r in range(rows):
                other += shift[j, r] * at[i + 1, r]
            bound = max(bound, other)
        if bound >= best:
            continue
        seen += 1
        if seen > budget:
            cut = min(cut, bound)
            continue
        paid[i + 1], taken[i] = cost, t
        i += 1
        turn[i] = -1
    return base + min(best, cut)


@allocating
def costs_of(tables: Tables, m: int, kinds: Ints, patterns: Ints) -> Ints:
    """Return the cost of node ``m`` with each of some patterns ``[p, i]`` of pods of some kinds, and no others.

    Multipliers do not enter.
    """
    costs = np.zeros(len(patterns), dtype=np.int64)
    away = 0
    for k in range(len(tables.move)):
        away += tables.move[k] * tables.start[m, k]
    for p in range(len(patterns)):
        total, pods = away, 0
        for i in range(len(kinds)):
            k, here = kinds[i], patterns[p, i]
            total += tables.linear[m, k] * here - tables.move[k] * min(here, tables.start[m, k])
            pods += here
        for r in range(len(tables.demand)):
            load = tables.base[m, r]
            for i in range(len(kinds)):
                load += tables.demand[r, kinds[i]] * patterns[p, i]
            total += value_at(tables, tables.curve[m, r], load)
        costs[p] = total + (tables.opening[m] if pods else 0)
    return costs


@allocating
def search_nodes(
    tables: Tables,
    multipliers: Ints,
    load_duals: Ints,
    typical: Ints,
    budget: int,
    begin: int,
    end: int,
    bounds: Ints,
    solutions: Ints,
) -> None:
    """Raise ``bounds[m]`` and fill ``solutions[m, k]`` for the nodes from ``begin`` to ``end``."""
    for m in range(begin, end):
        found = search_node(tables, m, multipliers, load_duals[m], typical, budget, solutions[m])
        if tables.opening[m]:
            found += tables.opening[m]
            empty = 0
            for r in range(len(typical)):
                empty += value_at(tables, tables.curve[m, r], tables.base[m, r])
            for k in range(len(multipliers)):
                empty += tables.move[k] * tables.start[m, k]
            if empty <= found:
                found = empty
                solutions[m] = 0
        bounds[m] = max(bounds[m], found)
