"""From a problem and a placement to the search state that kernels work on, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar, assert_never

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    FAR,
    Allow,
    Capacity,
    Curves,
    Devices,
    Distinct,
    DomainCurve,
    Move,
    MovePeak,
    NodeCurve,
    NodeScore,
    Open,
    Pair,
    Placement,
    Prefer,
    Problem,
    Unplaced,
    Violation,
)
from stowplan.optimizer.annealing.choices import choices
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import place_all
from stowplan.optimizer.annealing.kernel.recount import assess
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.annealing.relation_builder import Relations
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.violations import violation

NO_BUDGET = 1 << 60
K = TypeVar("K")
SCORE_KINDS = {"least": 0, "most": 1, "balanced": 2}
OVERLOAD = 10**12
"""Overload of a node by as much as an average node can hold: the unit of overloads."""

HELD = 1000
"""Capacity that an average pod holds on the node it left, where capacities stay charged: the unit of held."""


def build_state(
    evaluator: Evaluator, placement: Placement, parameters: AnnealingParameters | None = None
) -> SearchState:
    """Return the search state of a placement.

    Raises
    ------
    ValueError
        If the placement is not legal: kernels only tell how legality changes. If groups have a budget of moves, which
        `with_budgets_kept` turns into rules that are counted.
    """
    evaluation = evaluator.evaluate(placement)
    if not evaluation.legal:
        raise ValueError("only a legal placement can be searched from")
    state = _StateBuilder(evaluator, parameters or AnnealingParameters()).state(placement)
    tiers = state.head[at.H_TIERS]
    place_all(state, nodes_of_pods(evaluator.problem, placement))
    for q in np.flatnonzero(state.relation[:, at.R_SLOW]).tolist():
        assess(state, q)
    # Even empty nodes have a cost, which kernels leave out: the evaluator gives the whole values.
    state.value[:tiers] = evaluation.values
    state.value[tiers + at.ILLEGAL] = 0
    state.value[tiers + at.MOVED] = evaluation.moves
    state.value[tiers + at.UNPLACED] = evaluation.unplaced
    return state


def placement_of(state: SearchState, node: Ints | None = None) -> Placement:
    """Return the placement of a search state, or that of the node of each of its pods."""
    where = state.pod[:, at.P_NODE] if node is None else node
    nodes = int(state.head[at.H_NODES])
    there = where < nodes
    keys, counts = np.unique(state.pod[there, at.P_CLASS] * nodes + where[there], return_counts=True)
    return Placement(keys // nodes, keys % nodes, counts.astype(np.int64))


def nodes_of_pods(problem: Problem, placement: Placement) -> Ints:
    """``[P]`` the node of each pod; those without one come last in their class."""
    first = np.concatenate([[0], np.cumsum(problem.size)])
    where = np.full(problem.pods, len(problem.nodes), dtype=np.int64)
    for c, n, k in placement.entries():
        where[first[c] : first[c] + k] = n
        first[c] += k
    return where


def _held(problem: Problem) -> Ints:
    """``[C]`` the capacity that a pod of each class holds on the node it left; `HELD` on average, or 0 for all."""
    held = np.zeros(len(problem.classes))
    for rule in problem.rules:
        if isinstance(rule, Capacity) and rule.held_on_source:
            held += rule.demand / max(1.0, float(np.maximum(0, rule.free).sum()))
    average = float((held * problem.size).sum()) / max(1, problem.pods)
    return np.round(held * (HELD / average if average else 0.0)).astype(np.int64)


def _penalty(rule: Capacity, staying_weight: float) -> Ints:
    """``[N]`` overload of one unit too much; `OVERLOAD` for what an average node can hold.

    It counts more where capacities stay charged on the node that a pod left: only pods that return make room there.
    """
    rooms = np.maximum(0, rule.free)
    room = max(1.0, float(rooms.mean()), float(rule.demand.max(initial=0)) / 100) if len(rooms) else 1.0
    unit = (staying_weight if rule.held_on_source else 1.0) * OVERLOAD / room
    return np.full(len(rooms), max(1, round(unit)), dtype=np.int64)


@dataclass
class _StateBuilder:
    """A search state under construction."""

    evaluator: Evaluator
    parameters: AnnealingParameters
    pieces: list[Ints] = field(default_factory=list)
    piece_count: int = 0

    def state(self, placement: Placement) -> SearchState:
        """Return the state with no pod on any node; ``placement`` only decides how long the nodes' lists are."""
        problem = self.evaluator.problem
        classes, nodes = problem.shape
        head = np.zeros(at.HEAD, dtype=np.int64)
        cls, fix, live = Table(classes), Table(nodes), Table(nodes)
        cls.add(np.zeros((classes, at.C_FIXED), dtype=np.int64))
        head[[at.H_NODES, at.H_CLASSES, at.H_PODS, at.H_TIERS]] = nodes, classes, problem.pods, len(problem.tiers)
        violation_weight = self._tier_costs(head, cls)
        transient = self._capacities(head, cls, fix, live)
        curve = self._curves(head, cls, fix, live)
        score, load_weight = self._scores(head, cls, fix, live)
        prefer, table = self._prefers(head, cls)
        opened = self._opens(head, fix)
        thing, bundle, bundle_at = self._distincts(head, cls, fix, live)
        device, held_part = self._devices(head, cls, fix, live)
        head[at.H_MOVE_LIMIT] = NO_BUDGET if problem.move_limit is None else problem.move_limit
        rows = cls.table()
        delta = self._identities(rows)
        mask = self._allowed(rows)
        choice, rows[:, at.C_CHOICE], rows[:, at.C_CHOICE_END] = self._choices(mask, rows[:, at.C_ALLOW])
        relations = Relations(self.evaluator, self.add_curves)
        member, costed = relations.members(rows)
        participants = relations.participants()
        rows[:, at.C_COSTED] = costed
        rows[:, at.C_OPTIONAL] = problem.optional
        rows[:, at.C_MISSING] = problem.size
        rows[:, at.C_POD] = np.cumsum(problem.size) - problem.size
        ends = np.searchsorted(problem.start.cls, np.arange(classes + 1))
        rows[:, at.C_HOMES], rows[:, at.C_HOMES_END] = ends[:-1], ends[1:]
        weight = np.zeros(classes)
        for rule in problem.rules:
            if isinstance(rule, Capacity):
                weight += rule.demand / max(1.0, float(np.maximum(0, rule.free).mean()))
        pod = np.zeros((problem.pods, 3), dtype=np.int64)
        pod[:, at.P_CLASS] = np.repeat(np.arange(classes), problem.size)
        pod[:, at.P_NODE] = nodes
        pod[:, at.P_SLOT] = np.arange(problem.pods)
        width = np.zeros(nodes + 1, dtype=np.int64)
        width[nodes] = problem.pods
        on_at = np.concatenate([[0], np.cumsum(self._list_sizes(placement)), [0]])
        on_at[-1] = on_at[-2] + problem.pods
        on = np.zeros(int(on_at[-1]), dtype=np.int64)
        on[on_at[nodes] :] = np.arange(problem.pods)
        value = np.zeros(len(problem.tiers) + at.VALUES, dtype=np.int64)
        return SearchState(
            head,
            rows,
            fix.table(),
            live.table(),
            weight,
            np.zeros(nodes),
            pod,
            on,
            on_at,
            width,
            delta,
            mask,
            choice,
            np.append(problem.start.node, 0),
            member,
            participants,
            relations.table(),
            relations.counters(),
            relations.domains(),
            np.vstack([np.zeros((1, 3), dtype=np.int64), *self.pieces]),
            curve,
            score,
            load_weight,
            prefer,
            table,
            opened,
            violation_weight,
            transient,
            thing,
            bundle,
            bundle_at,
            device,
            held_part,
            value,
        )

    def add_curves(self, curves: Curves) -> list[tuple[int, int]]:
        """Add the pieces of a family; return where each curve begins, and its number of pieces."""
        spans = []
        for start, slope, value in zip(curves.start, curves.slope, curves.value, strict=True):
            kept = int(np.count_nonzero(start < FAR))
            self.pieces.append(np.stack([start[:kept], slope[:kept], value[:kept]], axis=1))
            spans.append((1 + self.piece_count, kept))
            self.piece_count += kept
        return spans

    def _tier_costs(self, head: Ints, cls: Table) -> Ints:
        problem = self.evaluator.problem
        tiers = len(problem.tiers)
        moved = np.zeros((len(problem.classes), tiers + 1), dtype=np.int64)
        moved[:, tiers] = _held(problem)
        unplaced = np.zeros((len(problem.classes), tiers), dtype=np.int64)
        weight = np.zeros(max(1, tiers), dtype=np.int64)
        for t, tier in enumerate(problem.tiers):
            for weighted in tier.terms:
                match weighted.term:
                    case Violation():
                        weight[t] += weighted.weight
                    case Move() as term:
                        moved[:, t] += weighted.weight * term.cost
                    case Unplaced() as term:
                        unplaced[:, t] += weighted.weight * term.cost
                    case NodeCurve() | NodeScore() | Prefer() | Open():
                        pass  # columns of nodes: see `_curves`, `_scores`, `_prefers` and `_opens`
                    case DomainCurve() | Pair() | MovePeak():
                        pass  # see `Relations`
                    case term:
                        assert_never(term)
        head[at.H_C_MOVE] = cls.add(moved)
        head[at.H_C_UNPLACED] = cls.add(unplaced)
        return weight

    def _of_kind(self, kind: type[K]) -> list[tuple[int, int, K]]:
        """Return the terms of a kind with their tier and weight."""
        return [
            (t, weighted.weight, weighted.term)
            for t, tier in enumerate(self.evaluator.problem.tiers)
            for weighted in tier.terms
            if isinstance(weighted.term, kind)
        ]

    def _rules(self, kind: type[K]) -> list[tuple[K, Ints]]:
        """Return the rules of a kind with their violations at the start."""
        return [
            (rule, before)
            for rule, before in zip(self.evaluator.problem.rules, self.evaluator.start_violations, strict=True)
            if isinstance(rule, kind)
        ]

    def _list_sizes(self, placement: Placement) -> Ints:
        """``[N]`` slots of the nodes' lists: whatever fits, or much more than average where that is too long."""
        problem = self.evaluator.problem
        nodes = len(problem.nodes)
        now = placement.per_node(nodes)
        most = np.full(nodes, problem.pods, dtype=np.int64)
        for rule in problem.rules:
            if isinstance(rule, Capacity) and problem.pods and rule.demand.min() > 0:
                most = np.minimum(most, np.maximum(0, rule.free) // int(rule.demand.min()))
        if most.sum() > self.parameters.longest_lists:
            most = np.minimum(most, np.maximum(2 * now, 8 * problem.pods // max(1, nodes)))
        sizes: Ints = np.minimum(problem.pods, np.maximum(most, now) + self.parameters.extra_slots)
        return sizes

    def _capacities(self, head: Ints, cls: Table, fix: Table, live: Table) -> Ints:
        problem = self.evaluator.problem
        rules = self._rules(Capacity)
        head[at.H_CAPACITIES] = len(rules)
        head[at.H_C_CAPACITY] = cls.add_columns([rule.demand for rule, _ in rules])
        head[at.H_F_ROOM] = fix.add_columns([np.maximum(0, rule.free) for rule, _ in rules])
        head[at.H_F_BEFORE] = fix.add_columns([before for _, before in rules])
        head[at.H_F_PENALTY_WEIGHT] = fix.add_columns([rule.penalty_weight for rule, _ in rules])
        head[at.H_F_PENALTY] = fix.add_columns([_penalty(rule, self.parameters.staying_weight) for rule, _ in rules])
        # Pods that started on a node stay charged there, whether they are there or not.
        charged = [
            problem.start.per_node(len(problem.nodes), rule.demand) if rule.held_on_source else np.zeros_like(rule.free)
            for rule, _ in rules
        ]
        head[at.H_V_LOAD] = live.add_columns(charged)
        head[at.H_V_ARRIVED] = live.add_columns([np.zeros_like(rule.free) for rule, _ in rules])
        return np.array([int(rule.held_on_source) for rule, _ in rules] or [0], dtype=np.int64)

    def _curves(self, head: Ints, cls: Table, fix: Table, live: Table) -> Ints:
        terms = self._of_kind(NodeCurve)
        first, pieces, value = [], [], []
        for _, _, term in terms:
            spans = np.array([*self.add_curves(term.curves), (-1, 0)], dtype=np.int64)
            first.append(spans[term.curve, 0])
            pieces.append(spans[term.curve, 1])
            here = term.curve >= 0
            worth = np.zeros(len(here), dtype=np.int64)
            worth[here] = term.curves.at(term.curve[here], term.held[here])
            value.append(worth)
        head[at.H_CURVES] = len(terms)
        head[at.H_C_CURVE] = cls.add_columns([term.demand for _, _, term in terms])
        head[at.H_F_PIECE] = fix.add_columns(first)
        head[at.H_F_PIECES] = fix.add_columns(pieces)
        head[at.H_V_CURVE] = live.add_columns([term.held for _, _, term in terms])
        head[at.H_V_VALUE] = live.add_columns(value)
        return _rows([(t, weight) for t, weight, _ in terms], 2)

    def _scores(self, head: Ints, cls: Table, fix: Table, live: Table) -> tuple[Ints, Ints]:
        terms = self._of_kind(NodeScore)
        loads = [load for _, _, term in terms for load in term.loads]
        first = np.concatenate([[0], np.cumsum([len(term.loads) for _, _, term in terms])]).astype(np.int64)
        head[at.H_SCORES] = len(terms)
        head[at.H_C_LOAD] = cls.add_columns([load.demand for load in loads])
        head[at.H_C_SCORED] = cls.add_columns([term.scored for _, _, term in terms])
        head[at.H_F_LOAD] = fix.add_columns([load.capacity for load in loads])
        head[at.H_V_USAGE] = live.add_columns([load.held for load in loads])
        empty = [np.zeros(len(self.evaluator.problem.nodes), dtype=np.int64)] * len(terms)
        head[at.H_V_SCORED] = live.add_columns(empty)
        head[at.H_V_SCORE] = live.add_columns(empty)
        rows = [
            (t, weight * term.cost, SCORE_KINDS[term.kind], int(first[i]), len(term.loads), int(first[i]))
            for i, (t, weight, term) in enumerate(terms)
        ]
        return _rows(rows, 6), np.array([load.weight for load in loads] or [0], dtype=np.int64)

    def _prefers(self, head: Ints, cls: Table) -> tuple[Ints, Ints]:
        terms = self._of_kind(Prefer)
        head[at.H_PREFERS] = len(terms)
        head[at.H_C_PREFER] = cls.add_columns([term.row for _, _, term in terms])
        first = np.concatenate([[0], np.cumsum([term.table.size for _, _, term in terms])]).astype(np.int64)
        rows = _rows([(t, weight, int(first[i])) for i, (t, weight, _) in enumerate(terms)], 3)
        return rows, np.concatenate([*(term.table.reshape(-1) for _, _, term in terms), np.zeros(1, dtype=np.int64)])

    def _opens(self, head: Ints, fix: Table) -> Ints:
        terms = self._of_kind(Open)
        head[at.H_OPENS] = len(terms)
        head[at.H_F_OPEN] = fix.add_columns([weight * term.cost * (term.held == 0) for _, weight, term in terms])
        return _rows([(t,) for t, _, _ in terms], 1)

    def _distincts(self, head: Ints, cls: Table, fix: Table, live: Table) -> tuple[NDArray[np.int16], Ints, Ints]:
        rules = self._rules(Distinct)
        nodes = len(self.evaluator.problem.nodes)
        things = [rule.held.astype(np.int16) for rule, _ in rules]
        bundles: list[Ints] = []
        columns, seen = [], 0
        for rule, _ in rules:
            columns.append(np.where(rule.bundle >= 0, rule.bundle + len(bundles), -1))
            bundles += [bundle + seen for bundle in rule.bundles]
            seen += len(rule.held)
        head[at.H_DISTINCTS] = len(rules)
        head[at.H_C_OWN] = cls.add_columns([rule.own for rule, _ in rules])
        head[at.H_C_BUNDLE] = cls.add_columns(columns)
        head[at.H_F_LIMIT] = fix.add_columns([np.maximum(0, rule.limit) for rule, _ in rules])
        head[at.H_F_DISTINCT_BEFORE] = fix.add_columns([before for _, before in rules])
        head[at.H_V_USED] = live.add_columns([rule.held.sum(axis=0) for rule, _ in rules])
        head[at.H_V_DISTINCT_ARRIVED] = live.add_columns([np.zeros(nodes, dtype=np.int64) for _ in rules])
        ends = np.concatenate([[0], np.cumsum([len(bundle) for bundle in bundles])]).astype(np.int64)
        listed = np.concatenate([*bundles, np.zeros(1, dtype=np.int64)])
        return np.vstack([*things, np.zeros((1, nodes), dtype=np.int16)]), listed, ends

    def _devices(self, head: Ints, cls: Table, fix: Table, live: Table) -> tuple[Ints, Ints]:
        rules = self._rules(Devices)
        nodes = len(self.evaluator.problem.nodes)
        parts, first, number, seen = [np.zeros(0, dtype=np.int64)], [], [], 0
        for rule, _ in rules:
            order = np.argsort(rule.held_node, kind="stable")
            parts.append(rule.held_part[order])
            ends = np.searchsorted(rule.held_node[order], np.arange(nodes + 1))
            first.append(ends[:-1] + seen)
            number.append(np.diff(ends))
            seen += len(order)
        empty = [np.zeros(nodes, dtype=np.int64)] * len(rules)
        head[at.H_DEVICES] = len(rules)
        head[at.H_C_WHOLE] = cls.add_columns([rule.whole for rule, _ in rules])
        head[at.H_C_PART] = cls.add_columns([rule.part for rule, _ in rules])
        head[at.H_F_DEVICES] = fix.add_columns([rule.count for rule, _ in rules])
        head[at.H_F_DEVICE_BEFORE] = fix.add_columns([before for _, before in rules])
        head[at.H_F_DEVICE_HELD] = fix.add_columns(first)
        head[at.H_F_DEVICE_HELDS] = fix.add_columns(number)
        head[at.H_V_WHOLE] = live.add_columns([rule.held_whole for rule, _ in rules])
        alone = [violation(rule, self.evaluator.problem, Placement.of(())) for rule, _ in rules]
        head[at.H_V_DEVICE_VIOLATION] = live.add_columns(alone)
        head[at.H_V_DEVICE_ARRIVED] = live.add_columns(empty)
        return np.array([rule.size for rule, _ in rules] or [1], dtype=np.int64), np.append(np.concatenate(parts), 0)

    def _identities(self, rows: Ints) -> NDArray[np.int32]:
        """Give classes of one pod their start node, and the others a row of pods now less pods at the start."""
        problem = self.evaluator.problem
        many = problem.size != 1
        rows[:, at.C_ROW] = np.where(many, np.cumsum(many) - 1, -1)
        rows[:, at.C_HOME] = -1
        delta = np.zeros((max(1, int(many.sum())), len(problem.nodes)), dtype=np.int32)
        start = problem.start
        several = many[start.cls]
        delta[rows[start.cls[several], at.C_ROW], start.node[several]] = -start.count[several]
        rows[start.cls[~several], at.C_HOME] = start.node[~several]
        return delta

    def _allowed(self, rows: Ints) -> NDArray[np.int16]:
        """Combine all `Allow` rules: number of rules that forbid a node, by distinct row."""
        nodes = len(self.evaluator.problem.nodes)
        rules = [rule for rule, _ in self._rules(Allow)]
        if not rules:
            return np.zeros((1, nodes), dtype=np.int16)
        combined, row = np.unique(np.stack([rule.row for rule in rules], axis=1), axis=0, return_inverse=True)
        mask = np.zeros((len(combined), nodes), dtype=np.int16)
        for i, rule in enumerate(rules):
            mask += ~rule.mask[combined[:, i]]
        rows[:, at.C_ALLOW] = row.reshape(-1)
        return mask

    def _choices(self, mask: NDArray[np.int16], row: Ints) -> tuple[Ints, Ints, Ints]:
        problem = self.evaluator.problem
        return self.evaluator.once("nodes that classes can draw", lambda: choices(problem, mask == 0, row))


class Table:
    """A table whose groups of columns are added one after another."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.columns = 0
        self.parts: list[Ints] = []

    def add(self, part: Ints) -> int:
        """Add columns ``[rows, …]``; return the first."""
        first = self.columns
        self.parts.append(part)
        self.columns += part.shape[1]
        return first

    def add_columns(self, columns: Sequence[Ints]) -> int:
        """Add single columns; return the first."""
        return self.add(np.stack(columns, axis=1)) if columns else self.columns

    def table(self) -> Ints:
        """Return the table, with at least one column."""
        return np.ascontiguousarray(np.hstack([*self.parts, np.zeros((self.rows, 1), dtype=np.int64)]))


def _rows(rows: Sequence[tuple[int, ...]], columns: int) -> Ints:
    """Return a table of rows, with at least one so that it can be indexed."""
    return np.array(list(rows) or [(0,) * columns], dtype=np.int64)
