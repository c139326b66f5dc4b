"""Costs that read a final state as a whole, and the forms in which engines know them.

A kind of term is arithmetic of a few shapes. The score of a final state is not: whether a node is feasible for one
pod depends on all others, and scores are compared over the feasible nodes. So it is a part of a tier that knows its own
cost, can follow moves, and offers a relaxation of which a bound can be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem.placement import Placement
from stowplan.models.problem.score_tables import ScoreTables


class FinalState(Protocol):
    """A placement that is changed pod by pod, with its cost kept up to date."""

    @property
    def cost(self) -> int:
        """The cost of the placement."""

    @property
    def placement(self) -> Placement:
        """The placement."""

    def shift(self, c: int, source: int, target: int) -> None:
        """Move a pod of a class from one node to another."""

    def begin(self) -> None:
        """Remember the placement for `roll_back`."""

    def roll_back(self) -> None:
        """Return to the placement at `begin`."""

    def keep(self) -> None:
        """Keep the moves since `begin`."""

    def estimate(self, c: int, node: int) -> tuple[Ints, Bools]:
        """Estimate a move of a pod of a class that is on a node.

        Returns
        -------
        change
            ``[n]`` about how much the cost changes if the pod goes to each node.
        feasible
            ``[n]`` the nodes that could take it as things are.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one plugin costs at least.

    With ``k_n`` pods on node ``n``, its cost is at least ``Σ_{c,n} table[c, n]·y[c, n] + Σ_n k_n·(held_n + Σ_c
    crowding[c, n]·y[c, n])`` in every legal placement, plus ``missing[c]`` for each pod without a node.

    Parameters
    ----------
    name
        Of the plugin.
    table
        ``[c, n]`` cost of a pod on a node, by itself.
    missing
        ``[c]`` cost of a pod without a node.
    crowding, held
        ``[c, n]`` and ``[n]``, where pods on a node cost each other something.
    turned
        ``[c, n]`` and ``[n]``, like ``crowding`` and ``held``: another way to say the same. On each node, what is
        between the two holds as well.
    signed
        Whether any of that may be negative, so that a pod may make others cost less. Then the plugin has no other costs
        of pods on nodes, and what it says holds for each node by itself.
    resting
        ``[c]`` what a class costs beside all that if none of its pods moves, where few may.
    """

    name: str
    table: Floats
    missing: Floats
    crowding: Floats | None = None
    held: Floats | None = None
    turned: tuple[Floats, Floats] | None = None
    resting: Floats | None = None
    signed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """``constant[n] + Σ_c per_pod[c, n]·y[c, n]`` for each node."""

    constant: Floats
    per_pod: Floats


@dataclass(frozen=True, slots=True, eq=False)
class NodePoints:
    """Points that each pod on a node misses at least: ``cost · Σ_n k_n·m_n`` for ``k_n`` pods on node ``n``.

    ``m_n = rest[n] + Σ_p share[p, n]·p_n``, where ``p_n`` is the highest of the lines of piece ``p``.

    Parameters
    ----------
    whole
        Whether each ``p_n``, and then ``m_n``, is rounded up.
    """

    cost: float
    pieces: tuple[tuple[Line, ...], ...]
    share: Floats
    rest: Floats
    whole: bool


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadCost:
    """What some classes cost at least together, by where their pods are.

    Parameters
    ----------
    classes
        ``[g]`` the classes.
    pods
        ``[j, g, n]`` all ways to place them; what is missing has no node.
    cost
        ``[j]`` the cost of each.
    """

    classes: Ints
    pods: Ints
    cost: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Detail:
    """What one plugin costs at least, in more detail than a `Part`: the sum of all that is given here.

    Parameters
    ----------
    table, missing
        As in `Part`.
    points
        What depends on the pods of a node.
    workloads
        What depends on the pods of some classes.
    """

    name: str
    table: Floats
    missing: Floats
    points: NodePoints | None = None
    workloads: tuple[WorkloadCost, ...] = ()


class FinalCost(Protocol):
    """A cost of whole placements."""

    @property
    def step(self) -> int:
        """A number of which all costs are multiples."""

    def cost(self, placement: Placement) -> int:
        """Return the cost of a placement."""

    def parts(self, placement: Placement) -> Mapping[str, int]:
        """Return the cost of a placement by plugin; they add up to `cost`."""

    def state(self, placement: Placement) -> FinalState:
        """Return a placement to be changed."""

    def tables(self) -> ScoreTables | None:
        """Return what the cost is made of as plain numbers, or ``None`` if plugins must be asked."""

    def relaxation(self, start: Placement, limit: int | None = None) -> Sequence[Part]:
        """Return what each plugin costs at least.

        Parameters
        ----------
        start
            Where pods are at the start: a node that it overloads may stay so.
        limit
            How many pods may move, if that is limited.
        """

    def relaxations(self, start: Placement, limit: int | None, at_once: int) -> Iterator[tuple[range, Sequence[Part]]]:
        """Yield the same for so many classes at a time, where all of it would take too much memory.

        Tables have the rows of these classes.
        """

    def details(
        self, start: Placement, upper: Ints, waiting: Ints, enough: Callable[[], bool] = lambda: False
    ) -> Sequence[Detail]:
        """Return the same in more detail, which takes longer, and is for small problems.

        Parameters
        ----------
        upper
            ``[c, n]`` the most pods of each class that a node can hold.
        waiting
            ``[c]`` the most pods of each class that may have no node.
        enough
            Is asked now and then whether to leave out what is not known yet.
        """
