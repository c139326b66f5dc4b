"""What an assignment breaks and what it costs, straight from the challenge's statement.

It knows processes, machines and services, and nothing of the problem that engines solve.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stowplan.instances.suites.roadef.files import Model
from stowplan.models.arrays import Ints


@dataclass(frozen=True, slots=True)
class Account:
    """What an assignment comes to.

    Parameters
    ----------
    violations
        One line for each violation of a hard constraint.
    costs
        Weighted cost by kind.
    """

    violations: list[str]
    costs: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The value of the objective."""
        return sum(self.costs.values())


def account(model: Model, initial: Ints, assignment: Ints) -> Account:
    """Check an assignment ``[p]`` against the initial one."""
    used = _usage(model, assignment, np.ones(model.processes, dtype=np.bool_))
    return Account(
        [
            *_overloads(model, initial, assignment, used),
            *_conflicts(model, assignment),
            *_narrow(model, assignment),
            *_unmet_dependencies(model, assignment),
        ],
        _costs(model, initial, assignment, used),
    )


def _usage(model: Model, assignment: Ints, who: np.ndarray) -> Ints:
    """``[m, r]`` what the processes of a mask need on every machine."""
    usage = np.zeros_like(model.capacity)
    for r in range(usage.shape[1]):
        np.add.at(usage[:, r], assignment[who], model.need[who, r])
    return usage


def _overloads(model: Model, initial: Ints, assignment: Ints, used: Ints) -> list[str]:
    """Capacity, where transient resources stay occupied on the machine that a process leaves."""
    left_behind = _usage(model, initial, assignment != initial) * model.transient
    over = np.argwhere(used + left_behind > model.capacity)
    return [
        f"machine {m}: {used[m, r]} of resource {r}"
        + (f", and {left_behind[m, r]} left behind," if left_behind[m, r] else "")
        + f" exceed its capacity {model.capacity[m, r]}"
        for m, r in over.tolist()
    ]


def _conflicts(model: Model, assignment: Ints) -> list[str]:
    """At most one process of a service on a machine."""
    pairs, count = np.unique(model.service * model.machines + assignment, return_counts=True)
    return [
        f"service {pair // model.machines}: {k} processes on machine {pair % model.machines}"
        for pair, k in zip(pairs.tolist(), count.tolist(), strict=True)
        if k > 1
    ]


def _narrow(model: Model, assignment: Ints) -> list[str]:
    """Every service has processes in as many locations as it has to."""
    names, location = np.unique(model.location, return_inverse=True)
    pairs = np.unique(model.service * len(names) + location[assignment])
    reached = np.bincount(pairs // len(names), minlength=model.services)
    return [
        f"service {s}: is in {reached[s]} locations; must be in {model.spread[s]}"
        for s in np.flatnonzero(reached < model.spread).tolist()
    ]


def _unmet_dependencies(model: Model, assignment: Ints) -> list[str]:
    """Every process whose service depends on another has a process of that one in its neighbourhood."""
    around: list[set[int]] = [set() for _ in range(model.services)]
    for s, place in zip(model.service.tolist(), model.neighbourhood[assignment].tolist(), strict=True):
        around[s].add(place)
    return [
        f"service {s}: depends on service {d}, which is not in neighbourhood {place}"
        for s, needed in enumerate(model.depends)
        for d in needed.tolist()
        for place in sorted(around[s] - around[d])
    ]


def _costs(model: Model, initial: Ints, assignment: Ints, used: Ints) -> dict[str, int]:
    over = np.maximum(0, used - model.safety).sum(axis=0)
    room = model.capacity - used
    moved = assignment != initial
    leavers = np.bincount(model.service[moved], minlength=1)
    return {
        "load": int((over * model.load_weight).sum()),
        "balance": sum(
            b.weight * int(np.maximum(0, b.target * room[:, b.first] - room[:, b.second]).sum()) for b in model.balances
        ),
        "process moves": model.process_weight * int(model.process_move[moved].sum()),
        "service moves": model.service_weight * int(leavers.max()),
        "machine moves": model.machine_weight * int(model.machine_move[initial, assignment].sum()),
    }
