"""The figures of a comparison, from which every form of output is made: table, CSV, and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stowplan.answers.measures import Measures, NodeUsage, Usage
from stowplan.models.problem import Move
from stowplan.models.result import TierOutcome
from stowplan.plugins_compat.requests import CPU, EPHEMERAL, MEMORY

FRACTION = "fraction"
"""Unit of shares, where 1 is the whole."""

Value = int | float | None
"""A figure; ``None`` if not defined."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a placement.

    Parameters
    ----------
    key
        Path of the figure in JSON; joined with dots, its name in CSV.
    title
        Name in tables.
    unit
        Unit; empty for scores and other plain numbers.
    value
        Returns the figure of a placement from its measures.
    bound
        A proven lower bound, for tiers.
    detail
        Whether only the wide table shows it.
    """

    key: tuple[str, ...]
    title: str
    unit: str
    value: Callable[[Measures], Value]
    bound: float | None = None
    detail: bool = False

    @property
    def name(self) -> str:
        """The key as one string."""
        return ".".join(self.key)


def figures(tiers: Sequence[TierOutcome], columns: Sequence[Measures]) -> list[Figure]:
    """Return the figures of some placements of one problem, in the order in which they are shown.

    Parameters
    ----------
    tiers
        Values and bounds of the best of them.
    columns
        Measures of the placements.
    """
    found = [
        Figure(("scheduled",), "pods scheduled", "pods", lambda m: m.scheduled),
        Figure(("unscheduled",), "pods unscheduled", "pods", lambda m: m.unscheduled),
        Figure(("moves",), "moves", "pods", lambda m: m.moves),
        Figure(("refused",), "refused by filters", "pods", lambda m: len(m.refused)),
        Figure(("violations",), "violated constraints", "constraints", lambda m: len(m.violations), detail=True),
    ]
    found += [figure for t, outcome in enumerate(tiers) for figure in _tier(t, outcome)]
    for r, usage in enumerate(columns[0].usage):
        found += _usage(r, usage.resource)
    found.append(Figure(("nodesInUse",), "nodes in use", "nodes", lambda m: m.nodes_in_use))
    if columns[0].price is not None:
        found.append(Figure(("price",), "price of nodes in use", "per hour", lambda m: m.price))
    if any(measures.scores is not None for measures in columns):
        found += _scores(columns)
    return found


def node_figures(columns: Sequence[Measures]) -> list[Figure]:
    """Return the figures of every node: its pods, and what they request of each resource."""
    found = []
    for n, node in enumerate(columns[0].nodes):
        found.append(_of_node(node.name, ("pods",), "pods", n, lambda one: one.pods))
        for resource in node.requested:
            found.append(_requested(node.name, resource, n))
    return found


def _requested(node: str, resource: str, n: int) -> Figure:
    return _of_node(node, ("requested", resource), _unit(resource), n, lambda one: one.requested[resource])


def _of_node(node: str, key: tuple[str, ...], unit: str, n: int, value: Callable[[NodeUsage], Value]) -> Figure:
    return Figure(("nodes", node, *key), f"{node} {' '.join(key)}", unit, lambda m: value(m.nodes[n]), detail=True)


def values(found: Sequence[Figure], measures: Measures) -> dict[str, Any]:
    """Return the figures of one placement as a tree, by the parts of their keys."""
    tree: dict[str, Any] = {}
    for figure in found:
        branch = tree
        for part in figure.key[:-1]:
            branch = branch.setdefault(part, {})
        branch[figure.key[-1]] = figure.value(measures)
    return tree


def _tier(t: int, outcome: TierOutcome) -> Iterator[Figure]:
    """Yield the value of a tier and, if moves are a part of it, both parts: better placements can be expensive."""
    tier = outcome.tier
    yield Figure(
        ("tiers", tier.name), tier.name, tier.unit, lambda m: tier.shown(m.values[t]), tier.shown(outcome.bound)
    )
    moves = [isinstance(weighted.term, Move) for weighted in tier.terms]
    if any(moves) and not all(moves):
        key = ("tierParts", tier.name)
        yield Figure((*key, "placement"), "  placement", tier.unit, lambda m: tier.shown(m.values[t] - m.move_costs[t]))
        yield Figure((*key, "moves"), "  cost of moves", tier.unit, lambda m: tier.shown_difference(m.move_costs[t]))


def _unit(resource: str) -> str:
    """Return what amounts of a resource are counted in."""
    return {CPU: "millicores", MEMORY: "bytes", EPHEMERAL: "bytes"}.get(resource, "")


def _usage(r: int, resource: str) -> list[Figure]:
    unit = _unit(resource)
    name = resource.rpartition("/")[2]

    def one(key: str, title: str, unit: str, value: Callable[[Usage], Value], *, detail: bool = False) -> Figure:
        return Figure(("usage", resource, key), title, unit, lambda m: value(m.usage[r]), detail=detail)

    return [
        one("mean", f"{name} requested", FRACTION, lambda u: u.mean),
        one("deviation", "  standard deviation", FRACTION, lambda u: u.deviation),
        one("highest", "  fullest node", FRACTION, lambda u: u.highest),
        one("plainDeviation", "  unweighted deviation", FRACTION, lambda u: u.plain_deviation, detail=True),
        one("requested", "  amount requested", unit, lambda u: u.requested, detail=True),
        one("allocatable", "  amount allocatable", unit, lambda u: u.allocatable, detail=True),
    ]


def _scores(columns: Sequence[Measures]) -> list[Figure]:
    plugins = sorted({plugin for m in columns if m.scores is not None for plugin in m.scores.by_plugin})

    def of(plugin: str) -> Callable[[Measures], Value]:
        return lambda m: _scored(m).get(plugin)

    return [
        Figure(
            ("scores", "total"), "plugin score per pod", "", lambda m: sum(s) if (s := _scored(m).values()) else None
        ),
        *(Figure(("scores", "byPlugin", plugin), f"  {plugin}", "", of(plugin), detail=True) for plugin in plugins),
        Figure(
            ("scores", "scored"), "  pods scored", "pods", lambda m: m.scores.scored if m.scores else None, detail=True
        ),
        Figure(
            ("scores", "pods"), "  pods considered", "pods", lambda m: m.scores.pods if m.scores else None, detail=True
        ),
    ]


def _scored(measures: Measures) -> Mapping[str, float]:
    """Return the mean score of each plugin; none where no pod was scored."""
    scores = measures.scores
    return scores.by_plugin if scores is not None and scores.scored else {}
