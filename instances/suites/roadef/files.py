"""The challenge's files: a model, and assignments of its processes to machines.

Both are numbers between blanks. A model is, in this order:

- the number of resources; for each: 1 if it is transient, weight of its load cost;
- the number of machines; for each: neighbourhood, location, capacity of every resource, safety capacity of every
  resource, cost of moving a process from here to every machine;
- the number of services; for each: smallest number of locations, number of services it depends on, these services;
- the number of processes; for each: service, need of every resource, cost of moving it;
- the number of balance costs; for each: two resources, target, weight;
- the weights of process, service and machine moves.

An assignment is the machine of every process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.instances.suites.numbers import Numbers
from stowplan.models.arrays import Bools, Ints
from stowplan.models.errors import InputError

LARGEST = 1 << 62
"""What costs and sums of amounts stay below."""


@dataclass(frozen=True, slots=True)
class Balance:
    """A balance cost: ``weight · Σ_m max(0, target · A(m, first) − A(m, second))``, with ``A`` the room left."""

    first: int
    second: int
    target: int
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model; axes are ``r`` resource, ``m`` machine, ``s`` service, ``p`` process.

    Parameters
    ----------
    transient
        ``[r]`` whether a process that moves goes on occupying its old machine.
    load_weight
        ``[r]`` cost of one unit above the safety capacity.
    neighbourhood, location
        ``[m]`` location of each machine; numbers are names.
    capacity, safety
        ``[m, r]`` hard limit of each load, and the load above which each unit costs.
    machine_move
        ``[m, m]`` cost of moving a process from one machine to another.
    spread
        ``[s]`` smallest number of locations.
    depends
        ``[s]`` the services that each service needs in every neighbourhood that it has processes in.
    service, need, process_move
        ``[p]``, ``[p, r]``, ``[p]`` service, needs and cost of moving of each process.
    process_weight, service_weight, machine_weight
        Weights of the three costs of moves.
    """

    transient: Bools
    load_weight: Ints
    neighbourhood: Ints
    location: Ints
    capacity: Ints
    safety: Ints
    machine_move: Ints
    spread: Ints
    depends: tuple[Ints, ...]
    service: Ints
    need: Ints
    process_move: Ints
    balances: tuple[Balance, ...]
    process_weight: int
    service_weight: int
    machine_weight: int

    @property
    def machines(self) -> int:
        """Number of machines."""
        return len(self.location)

    @property
    def services(self) -> int:
        """Number of services."""
        return len(self.spread)

    @property
    def processes(self) -> int:
        """Number of processes."""
        return len(self.service)


def read_model(name: str, data: bytes) -> Model:
    """Read a model.

    Raises
    ------
    InputError
        If it is not one: too few or too many numbers, or a number that names something that is not there.
    """
    numbers = Numbers(name, data)
    r = numbers.one("the number of resources")
    resources = numbers.table(r, 2, f"{r} resources")
    m = numbers.one("the number of machines")
    machines = numbers.table(m, 2 + 2 * r + m, f"{m} machines")
    s = numbers.one("the number of services")
    spread, depends = np.zeros(s, dtype=np.int64), []
    for i in range(s):
        spread[i] = numbers.one(f"service {i}")
        depends.append(numbers.take(numbers.one(f"service {i}"), f"the dependencies of service {i}"))
    p = numbers.one("the number of processes")
    processes = numbers.table(p, 2 + r, f"{p} processes")
    balances = numbers.table(numbers.one("the number of balance costs"), 4, "balance costs")
    weights = numbers.take(3, "the weights of process, service and machine moves").tolist()
    numbers.finish()
    _within(name, "transient flag", resources[:, 0], 2)
    _within(name, "service of a process", processes[:, 0], s)
    _within(name, "dependency", np.concatenate([*depends, np.zeros(0, dtype=np.int64)]), s)
    _within(name, "resource of a balance cost", balances[:, :2], r)
    if not m:
        raise InputError("has no machine", file=name)
    model = Model(
        transient=resources[:, 0] > 0,
        load_weight=resources[:, 1],
        neighbourhood=machines[:, 0],
        location=machines[:, 1],
        capacity=machines[:, 2 : 2 + r],
        safety=machines[:, 2 + r : 2 + 2 * r],
        machine_move=machines[:, 2 + 2 * r :],
        spread=spread,
        depends=tuple(depends),
        service=processes[:, 0],
        need=processes[:, 1 : 1 + r],
        process_move=processes[:, 1 + r],
        balances=tuple(Balance(*row) for row in balances.tolist()),
        process_weight=weights[0],
        service_weight=weights[1],
        machine_weight=weights[2],
    )
    if _dearest(model) >= LARGEST:
        raise InputError("its amounts and weights are too large: costs could exceed 64 bits", file=name)
    return model


def _dearest(model: Model) -> int:
    """Return what no cost and no sum of amounts exceeds, as a whole number without limit."""
    room = [sum(column) for column in model.capacity.T.tolist()]
    need = [sum(column) for column in model.need.T.tolist()]
    costs: list[int] = [n * w for n, w in zip(need, model.load_weight.tolist(), strict=True)]
    costs += [
        b.weight * (b.target * (room[b.first] + need[b.first]) + room[b.second] + need[b.second])
        for b in model.balances
    ]
    costs.append(model.process_weight * sum(model.process_move.tolist()))
    costs.append((model.service_weight + model.machine_weight * int(model.machine_move.max())) * model.processes)
    return sum([*costs, *room, *need, *model.safety.ravel().tolist()])


def read_assignment(name: str, data: bytes, model: Model) -> Ints:
    """Read ``[p]`` the machine of every process.

    Raises
    ------
    InputError
        If it is not one machine of the model for every process of the model.
    """
    assignment = Numbers(name, data).rest()
    if len(assignment) != model.processes:
        raise InputError(
            f"contains {len(assignment)} machines; must be one for each of {model.processes} processes", name
        )
    wrong = np.flatnonzero(assignment >= model.machines)
    if len(wrong):
        p = int(wrong[0])
        raise InputError(f"is machine {assignment[p]}; must be below {model.machines}", file=name, obj=f"process {p}")
    return assignment


def write_assignment(assignment: Ints) -> str:
    """Write an assignment as the challenge wants it: one line."""
    return " ".join(map(str, assignment.tolist())) + "\n"


def _within(name: str, what: str, values: Ints, limit: int) -> None:
    if values.size and values.max() >= limit:
        raise InputError(f"{what} is {values.max()}; must be below {limit}", file=name)
