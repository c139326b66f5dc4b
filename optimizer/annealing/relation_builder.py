"""What is counted by domain: the relations of a search state."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    Allow,
    AtMost,
    Attract,
    Capacity,
    Curves,
    Devices,
    Distinct,
    DomainCurve,
    GroupMoveBudget,
    Held,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    NodeScore,
    Occupy,
    Open,
    Pair,
    Placement,
    Prefer,
    Repel,
    Spread,
    Topology,
    Unplaced,
    Violation,
)
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.violations import roles, violation

EMPTY = Placement.of(())


class Relations:
    """Relations under construction.

    Parameters
    ----------
    add_curves
        Adds a family of curves to the state and returns where its pieces are.
    """

    def __init__(self, evaluator: Evaluator, add_curves: Callable[[Curves], list[tuple[int, int]]]) -> None:
        self.problem = problem = evaluator.problem
        self.add_curves = add_curves
        self.rows: list[Ints] = []
        self._topology: dict[int, int] = {}
        self._topologies: list[Topology] = []
        self._counters: list[Ints] = []
        self._counted = 0
        self._affinities: dict[tuple[bytes, int], int] = {}
        self._needs: dict[int, list[int]] = {}
        self._needed: dict[int, list[int]] = {}
        self._classes: list[Ints] = []
        self._roles: list[Ints] = []
        self._relations: list[Ints] = []
        for rule, before in zip(problem.rules, evaluator.start_violations, strict=True):
            match rule:
                case AtMost():
                    self._at_most(rule, before)
                case Repel():
                    self._repel(rule, before)
                case Attract() if before.any() or len(rule.topologies) != 1:
                    self._attract_slow(rule, before)
                case Attract() if _is_one_sided(rule):
                    self._depend(rule)
                case Attract():
                    self._attract(rule)
                case Spread():
                    self._spread(rule, before)
                case Occupy():
                    self._occupy(rule, before)
                case Allow() | Capacity() | Distinct() | Devices() | MoveBudget():
                    pass  # counted on the nodes
                case GroupMoveBudget():
                    raise ValueError("budgets of groups are not counted here: `with_budgets_kept` keeps their pods")
                case _:
                    assert_never(rule)
        self._list_dependencies()
        self.costed_from = len(self.rows)
        for t, tier in enumerate(problem.tiers):
            for weighted in tier.terms:
                match weighted.term:
                    case DomainCurve() as term:
                        self._domain_curve(term, t, weighted.weight)
                    case Pair() as term:
                        self._pair(term, t, weighted.weight)
                    case MovePeak() as term:
                        self._move_peak(term, t, weighted.weight)
                    case Violation() | Unplaced() | Move() | Prefer() | NodeCurve() | NodeScore() | Open():
                        pass  # counted on the nodes
                    case term:
                        assert_never(term)

    def members(self, rows: Ints) -> tuple[Ints, Bools]:
        """List relation and role of every class, one class after another; say which classes have one with a cost.

        Parameters
        ----------
        rows
            ``[C, …]`` receives where the list of each class begins and ends.
        """
        nobody = np.zeros(0, dtype=np.int64)
        classes = np.concatenate([nobody, *self._classes])
        order = np.argsort(classes, kind="stable")
        member = np.stack(
            [np.concatenate([nobody, *self._relations])[order], np.concatenate([nobody, *self._roles])[order]], axis=1
        )
        ends = np.searchsorted(classes[order], np.arange(len(rows) + 1))
        rows[:, at.C_MEMBER], rows[:, at.C_MEMBER_END] = ends[:-1], ends[1:]
        costed = np.zeros(len(rows), dtype=np.bool_)
        costed[classes[order][member[:, 0] >= self.costed_from]] = True
        return np.vstack([member, np.zeros((1, 2), dtype=np.int64)]), costed

    def participants(self) -> Ints:
        """List the classes of every relation, one relation after another, and note in the relations where."""
        nobody = np.zeros(0, dtype=np.int64)
        relations = np.concatenate([nobody, *self._relations])
        order = np.argsort(relations, kind="stable")
        ends = np.searchsorted(relations[order], np.arange(len(self.rows) + 1))
        for row, first, end in zip(self.rows, ends[:-1], ends[1:], strict=True):
            row[at.R_PARTICIPANTS], row[at.R_PARTICIPANTS_END] = first, end
        return np.append(np.concatenate([nobody, *self._classes])[order], 0)

    def table(self) -> Ints:
        """``[Q, R_COLUMNS]``, with no row if there is no relation."""
        return np.array(self.rows, dtype=np.int64).reshape(-1, at.R_COLUMNS)

    def counters(self) -> Ints:
        """Return the counters of all relations, one after another."""
        return np.concatenate([np.zeros(1, dtype=np.int64), *self._counters])

    def domains(self) -> Ints:
        """``[topology, N + 1]`` the domain of each node, -1 for none; the last column means no node."""
        table = np.full((max(1, len(self._topologies)), len(self.problem.nodes) + 1), -1, dtype=np.int64)
        for i, topology in enumerate(self._topologies):
            table[i, :-1] = topology.domain
        return table

    # -- parts ------------------------------------------------------------------------------------------------

    def _add(self, kind: int, topology: Topology | None, counters: Ints, **columns: int) -> int:
        """Add a relation; return its number."""
        row = np.zeros(at.R_COLUMNS, dtype=np.int64)
        row[at.R_KIND] = kind
        if topology is not None:
            row[at.R_TOPOLOGY] = self._number(topology)
            row[at.R_DOMAINS] = topology.size
        row[at.R_COUNT] = self._count(counters)
        for name, value in columns.items():
            row[getattr(at, name)] = value
        self.rows.append(row)
        return len(self.rows) - 1

    def _number(self, topology: Topology) -> int:
        if id(topology) not in self._topology:
            self._topology[id(topology)] = len(self._topologies)
            self._topologies.append(topology)
        return self._topology[id(topology)]

    def _count(self, counters: Ints) -> int:
        """Add counters; return where they begin."""
        first = 1 + self._counted
        self._counters.append(counters)
        self._counted += len(counters)
        return first

    def _join(self, relation: int, classes: Ints, role: Ints | int) -> None:
        self._classes.append(classes)
        self._roles.append(np.broadcast_to(np.asarray(role, dtype=np.int64), classes.shape))
        self._relations.append(np.full(len(classes), relation, dtype=np.int64))

    def _join_roles(self, relation: int, seekers: Ints, targets: Ints) -> None:
        for role, classes in enumerate(roles(seekers, targets)):
            self._join(relation, classes, role)

    def _violated(self, before: Ints) -> dict[str, int]:
        """Return the columns of a relation that is violated at the start."""
        if not before.any():
            return {}
        zeros = np.zeros_like(before)
        return {"R_SLOW": 1, "R_BEFORE": self._count(before), "R_ARRIVED": self._count(zeros)}

    # -- rules ------------------------------------------------------------------------------------------------

    def _at_most(self, rule: AtMost, before: Ints) -> None:
        q = self._add(at.AT_MOST, rule.topology, rule.held, R_LIMIT=rule.limit, **self._violated(before))
        self._join(q, rule.group, at.BOTH)

    def _repel(self, rule: Repel, before: Ints) -> None:
        counters = _held(rule.held, rule.topology)
        self._join_roles(
            self._add(at.REPEL, rule.topology, counters, **self._violated(before)), rule.seekers, rule.targets
        )

    def _attract(self, rule: Attract) -> None:
        topology, held = rule.topologies[0], rule.held
        outside = topology.domain < 0
        counters = np.concatenate(
            [np.append(topology.total(part), part[outside].sum()) for part in (held.both, held.seekers, held.targets)]
        )
        targets = int((held.both + held.targets)[~outside].sum())
        anybody = bool((held.both + held.seekers).any())
        alone = int(violation(rule, self.problem, EMPTY).sum()) if anybody else 0
        q = self._add(at.ATTRACT, topology, counters, R_STATE=targets, R_VIOLATION=alone, R_ILLEGAL=alone)
        self._join_roles(q, rule.seekers, rule.targets)

    def _depend(self, rule: Attract) -> None:
        """Make one set of classes depend on another; each set is counted once for all rules that name it."""
        seekers, targets = (self._affinity(classes, rule.topologies[0]) for classes in (rule.seekers, rule.targets))
        self._needs.setdefault(seekers, []).append(targets)
        self._needed.setdefault(targets, []).append(seekers)

    def _affinity(self, classes: Ints, topology: Topology) -> int:
        key = (classes.tobytes(), self._number(topology))
        if key not in self._affinities:
            # One more counter for nodes outside the topology, where no target counts.
            q = self._add(at.AFFINITY, topology, np.zeros(topology.size + 1, dtype=np.int64))
            self._join(q, classes, at.BOTH)
            self._affinities[key] = q
        return self._affinities[key]

    def _list_dependencies(self) -> None:
        for first, end, listed in (
            (at.R_NEEDS, at.R_NEEDS_END, self._needs),
            (at.R_NEEDED, at.R_NEEDED_END, self._needed),
        ):
            for q, others in listed.items():
                partners = np.unique(np.array(others, dtype=np.int64))
                self.rows[q][first] = self._count(partners)
                self.rows[q][end] = self.rows[q][first] + len(partners)

    def _attract_slow(self, rule: Attract, before: Ints) -> None:
        held = rule.held
        matching = [topology.total(held.both + held.targets) for topology in rule.topologies]
        listed = [(self._number(topology), topology.size) for topology in rule.topologies]
        first = self._count(np.array(listed, dtype=np.int64).reshape(-1))
        q = self._add(
            at.ATTRACT,
            rule.topologies[0] if rule.topologies else None,
            np.concatenate([np.zeros(0, dtype=np.int64), *matching]),
            R_SLOW=1,
            R_NODE=self._count(np.concatenate([held.both, held.seekers, held.targets])),
            R_TOPOLOGIES=first,
            R_TOPOLOGIES_END=first + 2 * len(listed),
            R_BEFORE=self._count(before),
            R_ARRIVED=self._count(np.zeros_like(before)),
        )
        self._join_roles(q, rule.seekers, rule.targets)

    def _spread(self, rule: Spread, before: Ints) -> None:
        columns = self._violated(before)
        counted = rule.held_counted
        if not columns and rule.topology.size:
            alone = int(violation(rule, self.problem, EMPTY).sum()) if rule.held_seekers.any() else 0
            most = int(counted.max()) + int(self.problem.size[rule.counted].sum())
            histogram = np.bincount(counted, minlength=most + 2)
            least = 0 if rule.floor_is_zero else int(counted.min())
            columns = {
                "R_HISTOGRAM": self._count(histogram),
                "R_STATE": least,
                "R_VIOLATION": alone,
                "R_ILLEGAL": alone,
            }
        q = self._add(
            at.SPREAD,
            rule.topology,
            np.concatenate([counted, rule.held_seekers]),
            R_LIMIT=rule.max_skew,
            R_FLOOR=int(rule.floor_is_zero),
            **columns,
        )
        self._join_roles(q, rule.seekers, rule.counted)

    def _occupy(self, rule: Occupy, before: Ints) -> None:
        used = int((rule.held > 0).sum())
        missing = max(0, rule.at_least - used)
        columns = self._violated(before) or {"R_STATE": used, "R_VIOLATION": missing, "R_ILLEGAL": missing}
        q = self._add(at.OCCUPY, rule.topology, rule.held, R_LIMIT=rule.at_least, **columns)
        self._join(q, rule.group, at.BOTH)

    # -- terms ------------------------------------------------------------------------------------------------

    def _domain_curve(self, term: DomainCurve, tier: int, weight: int) -> None:
        ((first, pieces),) = self.add_curves(term.curves)
        costed = {"R_TIER": tier, "R_WEIGHT": weight, "R_PIECE": first, "R_PIECES": pieces}
        self._join(self._add(at.DOMAIN_CURVE, term.topology, term.held, **costed), term.group, at.BOTH)

    def _pair(self, term: Pair, tier: int, weight: int) -> None:
        cost = weight * term.cost * (1 if term.together else -1)
        q = self._add(at.PAIR, term.topology, _held(term.held, term.topology), R_TIER=tier, R_WEIGHT=cost)
        self._join_roles(q, term.seekers, term.targets)

    def _move_peak(self, term: MovePeak, tier: int, weight: int) -> None:
        inside = np.flatnonzero(term.group >= 0)
        if not len(inside):
            return
        # In a state without placed pods, all that started somewhere have left.
        size, started = (
            np.bincount(term.group[inside], weights=part[inside]).astype(np.int64)
            for part in (self.problem.size, self.problem.start.placed(len(self.problem.classes)))
        )
        histogram = np.bincount(started, minlength=int(size.max()) + 2)
        q = self._add(
            at.MOVE_PEAK,
            None,
            started,
            R_HISTOGRAM=self._count(histogram),
            R_STATE=int(started.max()),
            R_TIER=tier,
            R_WEIGHT=weight * term.cost,
        )
        self._join(q, inside, term.group[inside])


def _is_one_sided(rule: Attract) -> bool:
    """Whether no pod is seeker and target at once, and no pod outside the problem takes part."""
    held = (rule.held.both, rule.held.seekers, rule.held.targets)
    return not any(part.any() for part in held) and not len(np.intersect1d(rule.seekers, rule.targets))


def _held(held: Held, topology: Topology) -> Ints:
    """``[3·D]`` pods outside the problem by role and domain."""
    return np.concatenate([topology.total(part) for part in (held.both, held.seekers, held.targets)])
