"""Pods in a walk that may be unscheduled: they wait on a node of their own, which has room for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement, Problem, Tier, Unplaced
from stowplan.optimizer.rearrangement.kernel.arrays import WalkModel

PRICE = 1 << 50
"""Cost of all pods together that wait: large enough to hide what the others cost, and small enough to be added up."""

NEXT = 1e-4
"""What a tier counts beside the one above it."""

ENDLESS = 1 << 60


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """Pods that a tier counts, or one after it, as long as they are unscheduled.

    They are classes of their own, beside those of the same pods that started on a node: of a class, no more may wait
    than were unscheduled at the start.

    Parameters
    ----------
    cls
        ``[q]`` the class of the problem that each class in the queue is of.
    waits
        ``[q]`` how many of its pods wait.
    price
        ``[q]`` what a pod costs while it waits.
    """

    cls: Ints
    waits: Ints
    price: Ints

    @classmethod
    def of(cls, problem: Problem, placement: Placement, tier: int) -> Self:
        """Return the queue of a tier."""
        cost = np.zeros(len(problem.classes), dtype=np.float64)
        for i, later in enumerate(problem.tiers[tier:]):
            counted = _counted(later, len(cost)).astype(np.float64)
            cost += NEXT**i * counted / max(1.0, float(counted.max(initial=0)))
        above = sum((_counted(earlier, len(cost)) for earlier in problem.tiers[:tier]), np.zeros(len(cost), np.int64))
        # Those that tiers above count stay as they are: these tiers must not get worse.
        waiting = np.flatnonzero((problem.optional > 0) & (cost > 0) & (above == 0))
        placed = np.bincount(placement.cls, placement.count, len(cost)).astype(np.int64)
        all_of_them = max(1.0, float((cost * problem.optional)[waiting].sum()))
        price = np.ceil(cost[waiting] / all_of_them * PRICE).astype(np.int64)
        return cls(waiting, (problem.size - placed)[waiting], price)

    @property
    def counted(self) -> int:
        """How many pods wait."""
        return int(self.waits.sum())

    @property
    def dearest(self) -> float:
        """What the pod costs that costs most while it waits."""
        return float(self.price.max(initial=0))

    def joined(self, problem: Problem, cls: Ints, node: Ints, home: Ints) -> tuple[Ints, Ints, Ints]:
        """Return class, node and home of all pods: of those given, and of those that wait."""
        classes, nodes = problem.shape
        own = np.full(classes, -1)
        own[self.cls] = classes + np.arange(len(self.cls))
        optional = (home < 0) & (own[cls] >= 0)
        waiting = np.repeat(own[self.cls], self.waits)
        return (
            np.concatenate([np.where(optional, own[cls], cls), waiting]),
            np.concatenate([node, np.full(len(waiting), nodes)]),
            np.concatenate([home, np.full(len(waiting), -1)]),
        )

    def class_of(self, problem: Problem, cls: Ints) -> Ints:
        """Return the classes of the problem of pods, given those of the walk."""
        return np.concatenate([np.arange(len(problem.classes)), self.cls])[cls]

    def joins(self, model: WalkModel) -> WalkModel:
        """Return a model with the classes of the queue, and with one more node, on which they wait.

        The node has no curves and is in no domain. As the most expensive one, it is drawn often by rearrangements.
        """
        classes = len(model.open)
        none = np.zeros((1, model.first.shape[1]), dtype=np.int32)
        every = np.concatenate([np.arange(classes), self.cls])
        with_nobody = np.concatenate([every, [classes]])
        rows = np.pad(model.price, ((0, 0), (0, 1)))
        own = np.pad(model.price[model.price_row[self.cls]], ((0, 0), (0, 1)))
        own[:, -1] = self.price
        is_open = np.pad(model.open[every], ((0, 0), (0, 1)))
        is_open[classes:, -1] = True
        of_class, target = np.nonzero(is_open)
        member = [model.member[model.member_at[c] : model.member_at[c + 1]] for c in every.tolist()]
        absent = np.full(len(self.cls), -1, dtype=np.int32)
        return model._replace(
            row=np.concatenate([model.row, absent]),
            start=np.concatenate([model.start, absent]),
            weight=model.weight[every],
            need=np.ascontiguousarray(model.need[:, with_nobody]),
            demand=np.ascontiguousarray(model.demand[with_nobody]),
            hinged=False,  # what a node with hinges charges is read off its loads
            rate=np.pad(model.rate, ((0, 1), (0, 0))),
            first=np.concatenate([model.first, none]),
            last=np.concatenate([model.last, none]),
            price_row=np.concatenate([model.price_row, len(rows) + np.arange(len(own), dtype=np.int32)]),
            price=np.concatenate([rows, own]),
            least_price=model.least_price[every],
            move=np.concatenate([model.move, np.zeros(len(self.cls), dtype=np.int64)]),
            group=np.concatenate([model.group, absent]),
            target=target.astype(np.int32),
            target_at=np.searchsorted(of_class, np.arange(len(every) + 1)).astype(np.int64),
            open=is_open,
            member=np.concatenate(member),
            member_at=np.cumsum([0, *(len(part) for part in member)]).astype(np.int64),
            domain=np.pad(model.domain, ((0, 0), (0, 1)), constant_values=-1),
        )

    def all_in(self) -> int:
        """Return the cost, counted from the start, at which no pod waits any more, whatever the others cost."""
        return int(self.price.min(initial=PRICE)) // 2 - int(self.price @ self.waits)


def _counted(tier: Tier, classes: int) -> Ints:
    """``[c]`` what a tier counts for an unscheduled pod."""
    terms = [(weighted.weight, weighted.term) for weighted in tier.terms]
    none = np.zeros(classes, dtype=np.int64)
    return sum((weight * term.cost for weight, term in terms if isinstance(term, Unplaced)), none)
