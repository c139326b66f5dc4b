"""The score of a final state as plain numbers, where all plugins are of kinds whose arithmetic is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.objective import HOSTNAME
from stowplan.models.problem import (
    Attachments,
    ClassReadings,
    EvenLimit,
    EvenScore,
    PodCounts,
    Reading,
    ScaledScore,
    ScoreTables,
    Topology,
    UsageKind,
    UsageScore,
)
from stowplan.plugins_compat.final_state.plugin_scores import (
    AffinityScores,
    BalancedScores,
    FitScores,
    FixedScores,
    OverFeasible,
    ScaledScores,
    Usage,
)
from stowplan.plugins_compat.final_state.scorer import FinalStateScorer
from stowplan.plugins_compat.final_state.spread_scores import SpreadScores
from stowplan.plugins_compat.framework.counts import DomainCounts, Eligible
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins.attach_limits import AttachLimits
from stowplan.plugins_compat.plugins.inter_pod_affinity import InterPodAffinity
from stowplan.plugins_compat.plugins.node_ports import NodePorts
from stowplan.plugins_compat.plugins.pod_topology_spread import PodTopologySpread, SoftConstraint
from stowplan.plugins_compat.plugins.volume_binding import VolumeBinding

ALLOCATED: Mapping[str, UsageKind] = {"LeastAllocated": "least", "MostAllocated": "most"}
BALANCED: Mapping[str, UsageKind] = {"std": "balance", "delta": "improvement"}


class _UnknownError(Exception):
    """A plugin must be asked."""


def score_tables(scorer: FinalStateScorer, points: Mapping[str, int], size: Ints) -> ScoreTables | None:
    """Read a scorer with no pod of its classes in place; return ``None`` if plugins must be asked instead.

    Parameters
    ----------
    points
        Cost of a point of each plugin.
    size
        ``[c]`` number of pods of each class.
    """
    if scorer.unit != 1 or not scorer.kinds:
        return None
    try:
        return _Reader(scorer, points).tables(size)
    except _UnknownError:
        return None


class _Reader:
    """Reads filters and scores of all classes, all counts once."""

    def __init__(self, scorer: FinalStateScorer, points: Mapping[str, int]) -> None:
        self._scorer, self._state = scorer, scorer.framework.state
        self._kinds, self._points = scorer.kinds, points
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._found: list[PodCounts] = []
        self._amounts: dict[int, dict[int, int]] = {}
        self._domains: dict[bytes, Ints] = {}

    def tables(self, size: Ints) -> ScoreTables:
        """Return the tables."""
        scorer = self._scorer
        feasibility = scorer.feasibility
        classes = [self._required(c) for c in range(len(self._kinds))]
        allowed = np.array([self._allowed(c) for c in range(len(self._kinds))], dtype=np.bool_)
        shape = allowed.shape
        fixed = np.zeros(shape, dtype=np.int64)
        usage: list[UsageScore] = []
        scaled: list[ScaledScore] = []
        prices = {"even": 0, "attracted": 0}
        for p, one in scorer.scores:
            price = self._points.get(scorer.names[p], 0)
            if not price:
                continue
            match one:
                case FixedScores():
                    rows = [one.row(c) for c in range(len(self._kinds))]
                    fixed += price * np.array([np.zeros(shape[1], dtype=np.int64) if r is None else r for r in rows])
                case FitScores() | BalancedScores():
                    usage.append(self._usage(one, price))
                case ScaledScores():
                    fixed += price * self._flat(one, p)[:, None]
                    scaled.append(ScaledScore(price, np.array(one.raw).reshape(shape), one.reverse))
                case SpreadScores() if not prices["even"]:
                    fixed += price * self._flat(one, p)[:, None]
                    prices["even"] = price
                    classes = [
                        replace(found, even=[self._even(s) for s in one.preferred(c)], complete=one.complete(c))
                        for c, found in enumerate(classes)
                    ]
                case AffinityScores() if not prices["attracted"]:
                    prices["attracted"] = price
                    classes = [
                        replace(found, attracted=[(self._reading(n, t), worth) for n, t, worth in one.worths(c)])
                        for c, found in enumerate(classes)
                    ]
                case _:
                    raise _UnknownError
        self._fill_amounts()
        every = sum(
            self._points.get(name, 0) * int((scorer.most[:, p] * size).sum()) for p, name in enumerate(scorer.names)
        )
        return ScoreTables(
            every,
            allowed,
            feasibility.needs,
            feasibility.adds,
            self._state.allocatable - self._state.requested,
            fixed,
            self._found,
            classes,
            prices["even"],
            prices["attracted"],
            usage,
            scaled,
            list(self._attachments()),
        )

    # -- filters ------------------------------------------------------------------------------------------------

    def _required(self, c: int) -> ClassReadings:
        """Return what the filters read."""
        kind, state = self._kinds[c], self._state
        found = ClassReadings()
        for plugin in self._scorer.feasibility.reading_pods(c):
            if type(plugin) is PodTopologySpread:
                limits = []
                for constraint, counts, eligible, domains in plugin.required(kind):
                    known = np.zeros(constraint.topology.size, dtype=np.bool_)
                    known[domains] = True
                    reading = self._reading(counts, constraint.topology, eligible)
                    none = len(domains) < constraint.min_domains
                    limits.append(EvenLimit(reading, known, none, int(constraint.counts_self), constraint.max_skew))
                found = replace(found, limits=limits)
            elif type(plugin) is InterPodAffinity:
                company, first, apart = plugin.required(kind)
                found = replace(
                    found,
                    company=[self._reading(*one) for one in company],
                    first_of_kind=first,
                    apart=[*found.apart, *(self._reading(*one) for one in apart)],
                )
            elif type(plugin) is NodePorts:
                by_node = Topology("node", np.arange(state.size), tuple(node.name for node in state.nodes))
                rivals = [self._reading(counts, by_node) for counts in plugin.rivals(kind)]
                found = replace(found, apart=[*found.apart, *rivals])
            elif not _is_known(plugin):
                raise _UnknownError
        return found

    def _allowed(self, c: int) -> Bools:
        """``[n]`` nodes that filters admit which do not depend on other pods, volumes included."""
        allowed = self._scorer.feasibility.allowed(c).copy()
        for plugin in self._scorer.feasibility.reading_pods(c):
            if isinstance(plugin, AttachLimits) and plugin.misses_claims(self._kinds[c]):
                allowed[:] = False
            elif type(plugin) is VolumeBinding:
                allowed &= self._scorer.feasibility.passes(c, plugin)
        found: Bools = allowed
        return found

    def _attachments(self) -> Iterator[Attachments]:
        plugins = {
            plugin: None
            for c in range(len(self._kinds))
            for plugin in self._scorer.feasibility.reading_pods(c)
            if isinstance(plugin, AttachLimits)
        }
        for plugin in plugins:
            found = plugin.attachments_on(self._kinds)
            if found is None:
                raise _UnknownError
            yield found

    # -- scores -------------------------------------------------------------------------------------------------

    def _flat(self, one: OverFeasible, p: int) -> Ints:
        """``[c]`` the points of pods for which all nodes are alike, 0 of others."""
        flat = [one.flat(c) for c in range(len(self._kinds))]
        points: Ints = np.where(flat, self._scorer.most[:, p], 0)
        return points

    def _usage(self, one: FitScores | BalancedScores, price: int) -> UsageScore:
        usage: Usage = one.usage
        if isinstance(one, FitScores):
            kind = ALLOCATED.get(one.plugin.args.scoring_strategy.type)
            scored = np.ones(len(self._kinds), dtype=np.bool_)
        else:
            kind = BALANCED.get(one.plugin.release.balanced)
            scored = one.scored
        if kind is None:
            raise _UnknownError
        return UsageScore(
            kind,
            price,
            usage.weights,
            usage.own,
            usage.asked,
            usage.counted,
            usage.held,
            usage.allocatable,
            scored,
        )

    def _even(self, soft: SoftConstraint) -> EvenScore:
        constraint = soft.constraint
        domain, by_node = constraint.topology.domain, constraint.key == HOSTNAME
        if by_node:
            nodes = np.arange(self._state.size)
            each = Topology(HOSTNAME, nodes, tuple(node.name for node in self._state.nodes))
            counts = [self._number(soft.counts[0], each, None)]
            domain = np.where(domain >= 0, nodes, -1)
        else:
            counts = [
                self._number(counts, constraint.topology, eligible)
                for counts, eligible in zip(soft.counts, soft.eligible, strict=True)
            ]
        return EvenScore(tuple(counts), domain, by_node, constraint.max_skew - 1, soft.repeated and not by_node)

    # -- counts ------------------------------------------------------------------------------------------------

    def _reading(self, counts: DomainCounts, topology: Topology, eligible: Eligible | None = None) -> Reading:
        return Reading(self._number(counts, topology, eligible), topology.domain)

    def _number(self, counts: DomainCounts, topology: Topology, eligible: Eligible | None) -> int:
        domain = topology.domain if eligible is None else np.where(eligible.mask, topology.domain, -1)
        domain = self._domains.setdefault(domain.tobytes(), domain)
        key = id(counts), id(domain), topology.size
        if key not in self._numbers:
            held = topology.total(np.where(domain >= 0, counts.per_node, 0))
            self._numbers[key] = len(self._found)
            # Filled when all is counted that any class reads.
            self._found.append(PodCounts(held, domain, self._amounts.setdefault(id(counts), {})))
        return self._numbers[key]

    def _fill_amounts(self) -> None:
        """Note what pods of each class count for; few are counted in anything."""
        for c, kind in enumerate(self._kinds):
            for counts in self._state.counting(kind):
                if id(counts) in self._amounts:
                    self._amounts[id(counts)][c] = self._state.amount(counts, kind)


def _is_known(plugin: Plugin) -> bool:
    """Whether a filter of volumes is one of ours."""
    return type(plugin) is VolumeBinding or (
        isinstance(plugin, AttachLimits) and type(plugin).filter is AttachLimits.filter
    )
