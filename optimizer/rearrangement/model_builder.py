"""From a problem to the arrays of a walk: which problems suit, and the model that its chains share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    FAR,
    Allow,
    AtMost,
    Attract,
    Capacity,
    Distinct,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    Occupy,
    Placement,
    Prefer,
    Problem,
    Repel,
    Spread,
    Topology,
    Unplaced,
    Violation,
)
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import constant, move_prices, node_prices
from stowplan.optimizer.rearrangement.kernel import arrays as at
from stowplan.optimizer.rearrangement.kernel.arrays import WalkModel

RULES = Allow | Capacity | Distinct | AtMost | Occupy | Attract | Repel | Spread | MoveBudget
TERMS = NodeCurve | Move | MovePeak | Prefer | Unplaced | Violation


def suits(problem: Problem, tier: int, largest_table: int) -> bool:
    """Whether walks can improve a tier: it is the last one, and its problem has nothing that they do not know.

    The tiers above must count nothing but violations, to which no walk adds, and unscheduled pods, which it leaves
    alone.
    """
    return (
        tier == len(problem.tiers) - 1
        and len(problem.classes) * len(problem.nodes) <= largest_table
        and all(map(constant, problem.tiers[:tier]))
        and all(isinstance(weighted.term, TERMS) for weighted in problem.tiers[tier].terms)
        and sum(isinstance(weighted.term, MovePeak) for weighted in problem.tiers[tier].terms) <= 1
        and all(_known(rule) for rule in problem.rules)
    )


def _known(rule: object) -> bool:
    match rule:
        case Capacity():
            return bool((rule.demand >= 0).all())
        case Attract():
            held = rule.held
            outside = held.both.any() or held.seekers.any() or held.targets.any()
            return len(rule.topologies) == 1 and not outside and not np.intersect1d(rule.seekers, rule.targets).size
        case Spread():
            same = np.array_equal(np.sort(rule.seekers), np.sort(rule.counted))
            return same and np.array_equal(rule.held_seekers, rule.held_counted)
        case _:
            return isinstance(rule, RULES)


def pods_of(problem: Problem, placement: Placement) -> tuple[Ints, Ints, Ints]:
    """``[P]`` class, node and home of each pod of a placement; a home of -1 if the pod was unscheduled at the start.

    Pods of a class cannot be told apart: as many as possible are at home.
    """
    cls, node = np.repeat(placement.cls, placement.count), np.repeat(placement.node, placement.count)
    homes = problem.start.counts()
    home = np.full(len(cls), -1, dtype=np.int64)
    for p, pair in enumerate(zip(cls.tolist(), node.tolist(), strict=True)):
        if homes.get(pair, 0):
            homes[pair] -= 1
            home[p] = pair[1]
    left: dict[int, list[int]] = {}
    for (c, n), count in homes.items():
        left.setdefault(c, []).extend([n] * count)
    for p in np.flatnonzero(home < 0).tolist():
        if left.get(int(cls[p])):
            home[p] = left[int(cls[p])].pop()
    return cls, node, home


def build_model(evaluator: Evaluator, tier: int, cls: Ints, home: Ints, *, returns: bool = True) -> WalkModel:
    """Return the model of a problem for which `suits` holds, with the pods of `pods_of`.

    Parameters
    ----------
    returns
        Whether a pod that is the only one of its class may come back where it started, whatever rules say.
    """
    problem = evaluator.problem
    classes, nodes = len(problem.classes), len(problem.nodes)
    terms = [(weighted.weight, weighted.term) for weighted in problem.tiers[tier].terms]
    capacities = _capacities(problem)
    room = _rooms(capacities, nodes)
    need = np.zeros((2, classes + 1, room.shape[1]), dtype=np.int64)
    for r, row in enumerate(capacities):
        need[0, :-1, r] = row.demand
        need[1, :-1, r] = 0 if row.held_on_source else row.demand
    mean = np.maximum(1.0, room.mean(axis=0))
    possible = _possible(problem, capacities, returns)
    target_at = np.concatenate([[0], np.cumsum(possible.sum(axis=1, dtype=np.int64))])
    start = np.full(classes, -1, dtype=np.int32)
    alone = problem.size[problem.start.cls] == 1
    start[problem.start.cls[alone]] = problem.start.node[alone]
    several = problem.size != 1
    curves = _Curves.of([(weight, term) for weight, term in terms if isinstance(term, NodeCurve)], classes, nodes)
    price_row, price = node_prices(problem.tiers[tier], classes, nodes)
    peak = next(((weight, term) for weight, term in terms if isinstance(term, MovePeak)), None)
    move = move_prices(problem.tiers[tier], classes)
    most_saved = move + (0 if peak is None else peak[0] * peak[1].cost) + np.ptp(price, axis=1)[price_row]
    relations = _relations(evaluator)
    member, member_at = relations.of_classes()
    return WalkModel(
        cls=cls.astype(np.int32),
        home=home.astype(np.int32),
        row=np.where(several, np.cumsum(several) - 1, -1).astype(np.int32),
        start=start,
        weight=(need[0, :-1] / mean).sum(axis=1),
        need=need,
        share=1.0 / mean,
        demand=curves.demand,
        hinged=curves.hinged,
        rate=curves.rate,
        first=curves.first,
        last=curves.last,
        begin=curves.begin,
        slope=curves.slope,
        worth=curves.worth,
        price_row=price_row.astype(np.int32),
        price=price,
        move=move,
        least_price=_least_rise(problem, tier) - most_saved,
        group=(np.full(classes, -1) if peak is None else peak[1].group).astype(np.int32),
        peak=0 if peak is None else peak[0] * peak[1].cost,
        limit=at.UNLIMITED if problem.move_limit is None else problem.move_limit,
        target=_columns(possible, int(target_at[-1])),
        target_at=target_at,
        open=possible,
        member=member,
        member_at=member_at,
        relation=relations.relation,
        domain=relations.domain,
    )


def rooms(problem: Problem) -> Ints:
    """``[N, R]`` what each node holds."""
    return _rooms(_capacities(problem), len(problem.nodes))


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """A capacity as a walk counts it."""

    demand: Ints
    free: Ints
    held_on_source: bool


def _capacities(problem: Problem) -> list[_Row]:
    """Return all capacities; of distinct things, as if no two pods shared any, which allows no more than the rule."""
    rows = []
    for rule in problem.rules:
        match rule:
            case Capacity():
                rows.append(_Row(rule.demand, np.maximum(0, rule.free), rule.held_on_source))
            case Distinct():
                things = np.array([*(len(bundle) for bundle in rule.bundles), 0], dtype=np.int64)
                rows.append(_Row(rule.own + things[rule.bundle], np.maximum(0, rule.limit), False))
    return rows


def _rooms(capacities: Sequence[_Row], nodes: int) -> Ints:
    return _stacked([rule.free for rule in capacities], nodes)


def initial_counters(evaluator: Evaluator) -> tuple[at.Int32, Ints]:
    """Return counters and extents of all relations, with the pods outside the problem alone."""
    relations = _relations(evaluator)
    return relations.counter, relations.extent


def _relations(evaluator: Evaluator) -> _Relations:
    return evaluator.once("relations of walks", lambda: _Relations(evaluator.problem))


def _stacked(columns: Sequence[Ints], rows: int) -> Ints:
    return np.ascontiguousarray(np.stack(columns, axis=1)) if columns else np.zeros((rows, 0), dtype=np.int64)


def _possible(problem: Problem, capacities: Sequence[_Row], returns: bool) -> Bools:
    """``[C, N]`` whether a pod of the class can ever be on the node: for static reasons, as long as it is alone.

    Pods that started on a node hold what stays charged there wherever they go.
    """
    classes, nodes = len(problem.classes), len(problem.nodes)
    possible = np.ones((classes, nodes), dtype=np.bool_)
    for rule in problem.rules:
        if isinstance(rule, Allow):
            possible &= rule.mask[rule.row]
    for row in capacities:
        held = problem.start.per_node(nodes, row.demand) if row.held_on_source else 0
        possible &= row.demand[:, None] <= (row.free - held)[None, :]
    # Of several pods of a class, others than those that started there may come to a node; so it has to suit them too.
    alone = (problem.size[problem.start.cls] == 1) & returns
    possible[problem.start.cls[alone], problem.start.node[alone]] = True
    return possible


def _columns(table: Bools, number: int) -> at.Int32:
    """Return the columns of all true entries, row by row."""
    found = np.empty(number, dtype=np.int32)
    first = 0
    for row in table:
        columns = np.flatnonzero(row)
        found[first : first + len(columns)] = columns
        first += len(columns)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Curves:
    """All curves of loads; see `WalkModel`."""

    demand: Ints
    hinged: bool
    rate: Ints
    corner: Ints
    first: at.Int32
    last: at.Int32
    begin: Ints
    slope: Ints
    worth: Ints

    @classmethod
    def of(cls, terms: Sequence[tuple[int, NodeCurve]], classes: int, nodes: int) -> _Curves:
        # Piece 0 belongs to nodes without a curve.
        first, last = [np.zeros((2, nodes, 0), dtype=np.int32)[0]], [np.zeros((nodes, 0), dtype=np.int32)]
        begin, slope, worth = ([np.zeros(1, dtype=np.int64)] for _ in range(3))
        seen = 1
        for weight, term in terms:
            number, pieces = term.curves.start.shape
            used = np.maximum(1, (term.curves.start < FAR).sum(axis=1))
            here = term.curve >= 0
            first.append(np.where(here, seen + term.curve * pieces, 0)[:, None].astype(np.int32))
            last.append(np.where(here, seen + term.curve * pieces + used[term.curve] - 1, 0)[:, None].astype(np.int32))
            begin.append(term.curves.start.reshape(-1))
            slope.append(weight * term.curves.slope.reshape(-1))
            worth.append(weight * term.curves.value.reshape(-1))
            seen += number * pieces
        hinges = [_hinges(weight, term) for weight, term in terms]
        hinged = all(hinge is not None for hinge in hinges)
        rate, corner = (
            _stacked([hinge[i] for hinge in hinges if hinge is not None] if hinged else [], nodes) for i in (0, 1)
        )
        demand = np.zeros((classes + 1, len(terms)), dtype=np.int64)
        for k, (_, term) in enumerate(terms):
            demand[:-1, k] = term.demand
        return cls(
            demand,
            hinged,
            rate,
            corner,
            np.ascontiguousarray(np.hstack(first)),
            np.ascontiguousarray(np.hstack(last)),
            np.concatenate(begin),
            np.concatenate(slope),
            np.concatenate(worth),
        )


def _hinges(weight: int, term: NodeCurve) -> tuple[Ints, Ints] | None:
    """Return the rate and the corner of each node's curve, if all of them are 0 up to a corner and linear behind it."""
    curves = term.curves
    last = np.maximum(1, (curves.start < FAR).sum(axis=1)) - 1
    number = np.arange(len(last))
    flat = (last == 1) & (curves.slope[:, 0] == 0) & (curves.value[:, 0] == 0) & (curves.value[number, last] == 0)
    if not flat[term.curve[term.curve >= 0]].all():
        return None
    here = term.curve >= 0
    rate = np.where(here, weight * curves.slope[number, last][term.curve], 0)
    return rate, np.where(here, curves.start[number, last][term.curve], 0)


def _least_rise(problem: Problem, tier: int) -> Ints:
    """``[C]`` what the curves of no node rise less by than if a pod comes, whatever is there: negative if some fall."""
    least = np.zeros(len(problem.classes), dtype=np.int64)
    for weight, term in _curves_of(problem, tier):
        curves = term.curves
        last_of_piece = curves.value[:, :-1] + curves.slope[:, :-1] * (np.diff(curves.start) - 1)
        used = curves.start[:, 1:] < FAR
        rises = np.concatenate([curves.slope.reshape(-1), (curves.value[:, 1:] - last_of_piece)[used]])
        rises = np.append(rises, 0) if (term.curve < 0).any() else rises
        least += weight * np.where(term.demand > 0, term.demand * rises.min(), term.demand * rises.max())
    return least


def hinged(problem: Problem, tier: int) -> bool:
    """Whether all curves of a tier are 0 up to a corner and linear behind it."""
    return all(_hinges(weight, term) is not None for weight, term in _curves_of(problem, tier))


def held_loads(problem: Problem, tier: int, model: WalkModel) -> Ints:
    """``[N, K]`` the load of each curve by pods outside the problem, counted from the corner of a hinge."""
    curves = _curves_of(problem, tier)
    held = _stacked([term.held for _, term in curves], len(problem.nodes))
    if not model.hinged:
        return held
    hinges = (_hinges(weight, term) for weight, term in curves)
    return held - _stacked([hinge[1] for hinge in hinges if hinge is not None], len(problem.nodes))


def _curves_of(problem: Problem, tier: int) -> list[tuple[int, NodeCurve]]:
    terms = ((weighted.weight, weighted.term) for weighted in problem.tiers[tier].terms)
    return [(weight, term) for weight, term in terms if isinstance(term, NodeCurve)]


@dataclass(slots=True, eq=False)
class _Relations:
    """All relations between pods, with the counts of pods outside the problem."""

    problem: Problem
    rows: list[list[int]] = field(default_factory=list)
    counters: list[Ints] = field(default_factory=list)
    extents: list[list[int]] = field(default_factory=list)
    topologies: dict[bytes, int] = field(default_factory=dict)
    domains: list[Ints] = field(default_factory=list)
    members: list[tuple[Ints, int, int]] = field(default_factory=list)
    size: int = 0

    def __post_init__(self) -> None:
        for rule in self.problem.rules:
            match rule:
                case AtMost():
                    self._add(at.AT_MOST, rule.topology, [rule.held], rule.limit, {at.TARGET: rule.group})
                case Occupy():
                    self._add(at.OCCUPY, rule.topology, [rule.held], rule.at_least, {at.TARGET: rule.group})
                case Attract():
                    nobody = np.zeros(rule.topologies[0].size, dtype=np.int64)
                    roles = {at.SEEKER: rule.seekers, at.TARGET: rule.targets}
                    self._add(at.ATTRACT, rule.topologies[0], [nobody, nobody], 0, roles)
                case Repel():
                    seekers, targets = (
                        rule.topology.total(rule.held.both + part) for part in (rule.held.seekers, rule.held.targets)
                    )
                    roles = {at.SEEKER: rule.seekers, at.TARGET: rule.targets}
                    self._add(at.REPEL, rule.topology, [seekers, targets], 0, roles)
                case Spread():
                    most = int(rule.held_counted.max(initial=0) + self.problem.size[rule.counted].sum()) + 2
                    histogram = np.bincount(rule.held_counted, minlength=most + 1)
                    held = [rule.held_counted, np.zeros(0, dtype=np.int64), histogram]
                    self._add(at.SPREAD, rule.topology, held, rule.max_skew, {at.SEEKER: rule.seekers})
                    self.rows[-1][at.FLOOR] = int(rule.floor_is_zero)

    def _add(self, kind: int, topology: Topology, held: Sequence[Ints], limit: int, roles: dict[int, Ints]) -> None:
        key = topology.domain.tobytes()
        if key not in self.topologies:
            self.topologies[key] = len(self.domains)
            self.domains.append(topology.domain)
        firsts = []
        for part in held:
            firsts.append(self.size)
            self.counters.append(part)
            self.size += len(part)
        firsts += [0] * (3 - len(firsts))
        self.rows.append([kind, self.topologies[key], *firsts, limit, 0])
        counts = held[0]
        least = int(counts.min()) if len(counts) else 0
        self.extents.append([int((counts > 0).sum()), least, int(counts.max(initial=0))])
        for role, group in roles.items():
            self.members.append((group, len(self.rows) - 1, role))

    @property
    def relation(self) -> Ints:
        return np.array(self.rows or [[0] * 7], dtype=np.int64)

    @property
    def domain(self) -> at.Int32:
        nowhere = np.full(len(self.problem.nodes), -1, dtype=np.int64)
        return np.stack(self.domains or [nowhere]).astype(np.int32)

    @property
    def counter(self) -> at.Int32:
        return np.concatenate([*self.counters, np.zeros(1)], dtype=np.int32, casting="unsafe")

    @property
    def extent(self) -> Ints:
        return np.array(self.extents or [[0] * 3], dtype=np.int64)

    def of_classes(self) -> tuple[at.Int32, Ints]:
        """Return ``[i, 2]`` relation and all its roles, class by class, and ``[C + 1]`` where each class begins."""
        lengths = [len(group) for group, _, _ in self.members]
        classes = np.concatenate([np.zeros(0, dtype=np.int64), *(group for group, _, _ in self.members)])
        relation, role = (
            np.repeat(np.array(column, dtype=np.int64), lengths)
            for column in ([g for _, g, _ in self.members], [role for _, _, role in self.members])
        )
        count = max(1, len(self.rows))
        pairs, which = np.unique(classes * count + relation, return_inverse=True)
        roles = np.zeros(len(pairs), dtype=np.int64)
        np.bitwise_or.at(roles, which, role)
        member = np.stack([pairs % count, roles], axis=1) if len(pairs) else np.zeros((1, 2), dtype=np.int64)
        begin = np.searchsorted(pairs // count, np.arange(len(self.problem.classes) + 1)).astype(np.int64)
        return np.ascontiguousarray(member).astype(np.int32), begin


def scale(model: WalkModel) -> float:
    """Return what a pod costs on average where its node charges most, or its move: the unit of temperatures."""
    steepest = np.zeros(model.demand.shape[1])
    for k in range(model.demand.shape[1]):
        if model.hinged:
            steepest[k] = model.rate[:, k].mean()
            continue
        rows = np.unique(np.stack([model.first[:, k], model.last[:, k]], axis=1), axis=0)
        steepest[k] = np.mean([np.abs(model.slope[a : b + 1]).max() for a, b in rows.tolist()])
    if not len(model.cls):
        return 0.0
    return float((np.abs(model.demand[model.cls]) * steepest).sum(axis=1).mean() or model.move[model.cls].mean())
