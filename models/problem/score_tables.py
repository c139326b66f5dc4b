"""What the score of a final state is made of, as plain numbers: filters and scores of one pod among all others.

`FinalState` follows a placement by asking plugins. Where all plugins are of the kinds below, the same arithmetic can be
done without them, and compiled. A pod is always looked at *apart*: taken off its node, with all others in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stowplan.models.arrays import Bools, Ints

UsageKind = Literal["least", "most", "balance", "improvement"]
"""``least`` and ``most`` allocated; ``balance`` of the fractions used, and by how much a pod improves it."""


@dataclass(frozen=True, slots=True, eq=False)
class PodCounts:
    """How many pods with a property are in each domain.

    Parameters
    ----------
    held
        ``[d]`` what pods outside the problem count for.
    domain
        ``[n]`` the domain in which a pod on each node is counted; -1 for none.
    amount
        What a pod of a class counts for; one of a class that is not listed is not counted.
    """

    held: Ints
    domain: Ints
    amount: Mapping[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Where counts of pods are read.

    Parameters
    ----------
    counts
        Their number.
    domain
        ``[n]`` the domain that is read for each node; -1 for none.
    """

    counts: int
    domain: Ints


@dataclass(frozen=True, slots=True, eq=False)
class EvenLimit:
    """A filter: no more than ``max_skew`` pods above the domain with the fewest.

    Parameters
    ----------
    known
        ``[d]`` the domains of which the one with the fewest is sought. With none, the filter only asks for a domain.
    from_none
        Whether the fewest are taken to be none.
    adds
        What the pod itself counts for.
    """

    reading: Reading
    known: Bools
    from_none: bool
    adds: int
    max_skew: int


@dataclass(frozen=True, slots=True, eq=False)
class EvenScore:
    """A score: ``Σ counts · ln(domains of the candidates + 2) + skew`` for a node that is in a domain.

    Parameters
    ----------
    counts
        Their numbers; what they count is added up.
    domain
        ``[n]`` the domain that is read for each node; -1 for none.
    by_node
        Whether candidates are counted instead of their domains.
    skew
        What is added.
    repeated
        Whether no domain counts, since another score counts them.
    """

    counts: tuple[int, ...]
    domain: Ints
    by_node: bool
    skew: int
    repeated: bool


@dataclass(frozen=True, slots=True, eq=False)
class ClassReadings:
    """What filters and scores of the pods of one class read of all other pods.

    Parameters
    ----------
    limits
        All must admit the node.
    company
        In each there must be a pod; if there is none in any domain of any, and ``first_of_kind``, a domain is
        enough.
    apart
        In none there may be a pod.
    even, complete
        Scored together; whether nodes that are in no domain of one of them are left out.
    attracted
        Each with what one that is counted is worth.
    """

    limits: Sequence[EvenLimit] = ()
    company: Sequence[Reading] = ()
    first_of_kind: bool = False
    apart: Sequence[Reading] = ()
    even: Sequence[EvenScore] = ()
    complete: bool = False
    attracted: Sequence[tuple[Reading, int]] = ()

    @property
    def everything(self) -> list[Reading]:
        """All that is read."""
        found = [limit.reading for limit in self.limits] + [*self.company, *self.apart]
        found += [Reading(counts, one.domain) for one in self.even for counts in one.counts]
        return found + [reading for reading, _ in self.attracted]


@dataclass(frozen=True, slots=True, eq=False)
class UsageScore:
    """A score by what is used of a node.

    Parameters
    ----------
    kind
        How.
    price
        Cost of a point.
    weight
        ``[r]`` of resources.
    own, asked
        ``[r, c]`` what a pod on a node, and one that is offered to it, counts for.
    counted
        ``[r, c]`` whether a resource counts for the pods of a class.
    held, capacity
        ``[r, n]`` what pods outside the problem use, and what there is.
    scored
        ``[c]`` whether pods of a class are scored.
    """

    kind: UsageKind
    price: int
    weight: Ints
    own: Ints
    asked: Ints
    counted: Bools
    held: Ints
    capacity: Ints
    scored: Bools


@dataclass(frozen=True, slots=True, eq=False)
class ScaledScore:
    """A score by what nodes have, scaled by the most that a feasible one has.

    Parameters
    ----------
    raw
        ``[c, n]``; a class with zeros alone is not scored.
    reverse
        Whether less is better.
    """

    price: int
    raw: Ints
    reverse: bool


@dataclass(frozen=True, slots=True, eq=False)
class Attachments:
    """A filter: no more different things on a node than there is a limit for.

    Parameters
    ----------
    sort
        ``[n]`` which of the lists of things holds for each node.
    things
        For each sort and class, the numbers of the things that a pod brings, those of one limit together.
    limit_of
        ``[i]`` the limit under which each thing counts.
    held
        ``[i, n]`` how many pods outside the problem bring each thing.
    distinct, most
        ``[l, n]`` how many different things they bring, and how many there may be.
    strict
        Whether a node beyond its limit refuses pods that bring nothing new.
    """

    sort: Ints
    things: Sequence[Sequence[tuple[int, ...]]]
    limit_of: Ints
    held: Ints
    distinct: Ints
    most: Ints
    strict: bool


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTables:
    """Filters and scores of all classes.

    Parameters
    ----------
    every
        The cost of missing all points. The cost of a placement is that, less the price of each point that a pod has.
    allowed
        ``[c, n]`` nodes that no pod can make feasible, or infeasible, are left out.
    needs, adds
        ``[c, r]`` what is compared with the free resources, and what a pod on a node takes of them.
    free
        ``[r, n]`` what pods outside the problem leave.
    fixed
        ``[c, n]`` price of the points that no other pod changes.
    even_price, attracted_price
        Cost of a point of these scores.
    """

    every: int
    allowed: Bools
    needs: Ints
    adds: Ints
    free: Ints
    fixed: Ints
    counts: Sequence[PodCounts]
    classes: Sequence[ClassReadings]
    even_price: int
    attracted_price: int
    usage: Sequence[UsageScore]
    scaled: Sequence[ScaledScore]
    attachments: Sequence[Attachments]
