"""From a model and its initial assignment to a `Problem`, and from placements back to assignments.

The problem has one tier, whose value is the challenge's cost: every weight is in the terms, every unit is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stowplan.instances.suites.roadef.checker import account
from stowplan.instances.suites.roadef.files import Balance, Model
from stowplan.models.arrays import Ints
from stowplan.models.errors import InputError
from stowplan.models.problem import (
    PENALTY_WEIGHT,
    AtMost,
    Attract,
    Capacity,
    Curves,
    Held,
    Move,
    MovePeak,
    NodeCurve,
    Occupy,
    Origin,
    Placement,
    Prefer,
    Problem,
    Rule,
    Term,
    Tier,
    Topology,
    Weighted,
    project,
    refine,
)


@dataclass(frozen=True, slots=True, eq=False)
class Reassignment:
    """A model as a problem.

    Parameters
    ----------
    initial
        ``[p]`` the machine where each process starts.
    class_of
        ``[p]`` the class of each process: processes that nothing tells apart share one.
    """

    model: Model
    initial: Ints
    problem: Problem
    class_of: Ints

    def placement(self, assignment: Ints) -> Placement:
        """Count the processes of each class on each machine."""
        return _count(self.class_of, assignment, self.model.machines)

    def assignment(self, placement: Placement) -> Ints:
        """``[p]`` the machine of each process; of a class, as many as can stay where they start."""
        machines = self.model.machines
        left = placement.counts()
        assigned = np.full(self.model.processes, -1, dtype=np.int64)
        for p, (c, m) in enumerate(zip(self.class_of.tolist(), self.initial.tolist(), strict=True)):
            if left.get((c, m), 0):
                left[c, m] -= 1
                assigned[p] = m
        others = np.flatnonzero(assigned < 0)
        others = others[np.argsort(self.class_of[others], kind="stable")]
        places = [pair for pair, count in sorted(left.items()) for _ in range(count)]
        if [c for c, _ in places] != self.class_of[others].tolist():
            raise ValueError("the placement does not place every process")
        assigned[others] = [m for _, m in places]
        assert assigned.max(initial=0) < machines
        return assigned


def reassignment(model: Model, initial: Ints, *, file: str | None = None) -> Reassignment:
    """State a model as a problem.

    Parameters
    ----------
    file
        Where the initial assignment was read, for messages.

    Raises
    ------
    InputError
        If the initial assignment breaks a hard constraint: the challenge promises that it does not.
    """
    if violations := account(model, initial, initial).violations:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise InputError(f"the initial assignment violates a constraint: {violations[0]}{more}", file=file)
    capacities, terms = list(_capacities(model)), list(_terms(model, initial))
    class_of = refine(model.processes, [*capacities, *terms], [_bound_by_service(model)])
    representative = np.unique(class_of, return_index=True)[1]
    members = _members(model, class_of)
    rules = [*(project(rule, class_of, representative) for rule in capacities), *_service_rules(model, members)]
    weighted = tuple(Weighted(1, project(term, class_of, representative)) for term in terms)
    problem = Problem(
        nodes=tuple(f"machine {m}" for m in range(model.machines)),
        classes=tuple(f"process {p}" for p in representative.tolist()),
        size=np.bincount(class_of, minlength=len(representative)),
        optional=np.zeros(len(representative), dtype=np.int64),
        start=_count(class_of, initial, model.machines),
        rules=tuple(rules),
        tiers=(Tier("cost", weighted),),
    )
    return Reassignment(model, initial, problem, class_of)


def _count(class_of: Ints, assignment: Ints, machines: int) -> Placement:
    pair, count = np.unique(class_of * machines + assignment, return_counts=True)
    return Placement(pair // machines, pair % machines, count)


def _capacities(model: Model) -> Iterator[Capacity]:
    for r, need in enumerate(model.need.T):
        free = model.capacity[:, r].copy()
        penalty_weight = np.maximum(1, PENALTY_WEIGHT // np.maximum(1, free))
        yield Capacity(
            Origin("capacity", f"resource {r}"),
            np.ascontiguousarray(need),
            free,
            penalty_weight,
            held_on_source=bool(model.transient[r]),
        )


def _terms(model: Model, initial: Ints) -> Iterator[Term]:
    for r, weight in enumerate(model.load_weight.tolist()):
        if weight:
            yield _hinge(
                Origin("load", f"resource {r}"),
                np.ascontiguousarray(model.need[:, r]),
                np.zeros(model.machines, dtype=np.int64),
                model.safety[:, r],
                weight,
            )
    for balance in model.balances:
        if balance.weight:
            yield _balance(model, balance)
    yield Move(Origin("process moves"), model.process_weight * model.process_move)
    if model.service_weight:
        yield MovePeak(Origin("service moves"), model.service_weight, model.service)
    if model.machine_weight and model.machine_move.any():
        rows: dict[bytes, int] = {}
        row = np.array([rows.setdefault(prices.tobytes(), len(rows)) for prices in model.machine_move], dtype=np.int64)
        first = np.unique(row, return_index=True)[1]
        yield Prefer(Origin("machine moves"), row[initial], model.machine_weight * model.machine_move[first])


def _balance(model: Model, balance: Balance) -> NodeCurve:
    """``max(0, t·A₁ − A₂)`` with ``A = capacity − usage``: a hinge over a load that may be negative."""
    t, first, second = balance.target, balance.first, balance.second
    held = t * model.capacity[:, first] - model.capacity[:, second]
    demand = model.need[:, second] - t * model.need[:, first]
    origin = Origin("balance", f"{t} of resource {second} to one of resource {first}")
    return _hinge(origin, demand, held, np.zeros_like(held), balance.weight)


def _hinge(origin: Origin, demand: Ints, held: Ints, corner: Ints, slope: int) -> NodeCurve:
    """Charge ``slope`` for each unit beyond a corner, which may differ from node to node."""
    corners, curve = np.unique(corner, return_inverse=True)
    start = np.stack([np.minimum(0, corners - 1), corners], axis=1)
    slopes = np.tile(np.array([0, slope], dtype=np.int64), (len(corners), 1))
    return NodeCurve(origin, demand, held, curve.astype(np.int64), Curves(start, slopes, np.zeros_like(start)))


def _bound_by_service(model: Model) -> Ints:
    """``[p]`` the service, or -1 where no rule speaks of it; a service alone is bound by nothing but dependencies."""
    bound = np.bincount(model.service, minlength=model.services) > 1
    for s, needed in enumerate(model.depends):
        if len(needed):
            bound[s] = True
            bound[needed] = True
    who: Ints = np.where(bound[model.service], model.service, -1)
    return who


def _members(model: Model, class_of: Ints) -> list[Ints]:
    """``[s]`` the classes of each service."""
    order = np.argsort(model.service, kind="stable")
    ends = np.cumsum(np.bincount(model.service, minlength=model.services))
    return [np.unique(part) for part in np.split(class_of[order], ends[:-1])]


def _service_rules(model: Model, members: list[Ints]) -> Iterator[Rule]:
    size = np.bincount(model.service, minlength=model.services)
    machines, nobody = _domains("machine", np.arange(model.machines)), np.zeros(model.machines, dtype=np.int64)
    locations, neighbourhoods = _domains("location", model.location), _domains("neighbourhood", model.neighbourhood)
    nowhere = np.zeros(locations.size, dtype=np.int64)
    held = Held(nobody, nobody, nobody)
    for s, classes in enumerate(members):
        if size[s] > 1:
            yield AtMost(Origin("conflict", f"service {s}"), classes, machines, 1, nobody)
        if model.spread[s] > 1:
            yield Occupy(Origin("spread", f"service {s}"), classes, locations, int(model.spread[s]), nowhere)
    if neighbourhoods.size == 1:
        return  # every machine is in every neighbourhood
    for s, needed in enumerate(model.depends):
        for d in np.unique(needed[needed != s]).tolist() if size[s] else ():
            origin = Origin("dependency", f"service {s} on service {d}")
            yield Attract(origin, members[s], members[d], (neighbourhoods,), held)


def _domains(key: str, names: Ints) -> Topology:
    name, domain = np.unique(names, return_inverse=True)
    return Topology(key, domain.astype(np.int64), tuple(f"{key} {n}" for n in name.tolist()))
