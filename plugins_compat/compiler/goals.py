"""From an objective to tiers of terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.objective import FEASIBILITY, Objective, TierSettings
from stowplan.models.problem import (
    Devices,
    DomainCurve,
    Move,
    Open,
    Origin,
    Prefer,
    Rule,
    Tier,
    Unplaced,
    Violation,
    Weighted,
)
from stowplan.models.problem.rules import PENALTY_WEIGHT
from stowplan.plugins_compat.compiler.variance import SCALE, variance
from stowplan.plugins_compat.curves import convex
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView, View

FINE = 10_000
"""Whole units per displayed unit, in tiers whose terms are not whole by nature."""

Weigh = Callable[[Pod], float]
"""Returns what a pod's move weighs, positive and in whole hundredths; where it differs, signatures do too."""

HUNDREDTHS = 100


@dataclass(frozen=True, slots=True)
class DrainAndAdmit:
    """Nodes to drain and pods to admit with the least cost of moves, before all that the objective asks for.

    Parameters
    ----------
    drain
        Names of the nodes that every pod that is free to move is to leave.
    admit
        Keys of pending pods that are to get a node.
    """

    drain: frozenset[str] = frozenset()
    admit: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.drain or self.admit)


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers of a problem, over signatures, and notes about what of the objective they leave out or weigh."""

    tiers: tuple[Tier, ...]
    notes: tuple[str, ...]


def make_tiers(
    view: View,
    objective: Objective,
    framework: Framework,
    pending: Sequence[Signature],
    rules: Sequence[Rule],
    weigh: Weigh | None = None,
    drain_and_admit: DrainAndAdmit = DrainAndAdmit(),
    prices: Mapping[str, float] | None = None,
) -> Tiers:
    """Return the tiers: drain and admit, constraint violations, pending pods by priority, then the objective's own.

    Where pods may lose their node to others, pending pods come before constraint violations: no pod shall lose its
    node just to repair a rule.

    Parameters
    ----------
    pending
        Signatures of the pods that may stay unscheduled.
    rules
        Those of all plugins. They tell what pods take besides resources, and which nodes scores are normalized over.
    weigh
        Tells what moves cost beside each other; without it, all cost the same.
    prices
        What each node costs in an hour, by name; an objective with ``price`` needs them.
    """
    weights = np.array([weigh(signature.pod) if weigh else 1.0 for signature in view.signatures])
    first = _drain_and_admit_tiers(view, drain_and_admit, weights) if drain_and_admit else ()
    repair = [Tier(FEASIBILITY, (Weighted(1, Violation(Origin(FEASIBILITY))),), PENALTY_WEIGHT, "violations")]
    waiting = _pending_tiers(view, pending, rules)
    base = [*waiting, *repair] if objective.preemption == "by-priority" else [*repair, *waiting]
    scoring = view.scoring(rules)
    own = [_tier(scoring, settings, framework, weights, prices) for settings in objective.tiers]
    notes = [note for settings in objective.tiers for note in _notes(view, settings, framework, weights)]
    return Tiers((*first, *base, *own), tuple(notes))


def _drain_and_admit_tiers(view: View, wanted: DrainAndAdmit, weights: Floats) -> Iterator[Tier]:
    """Yield the tiers of pods left to drain, of pods not admitted, and of the cost of moves."""
    if wanted.drain:
        named = np.array([[node.name in wanted.drain for node in view.state.nodes]], dtype=np.int64)
        term = Prefer(Origin("drain"), np.zeros(len(view.signatures), dtype=np.int64), named)
        yield Tier("movable pods left to drain", (Weighted(1, term),), 1, "pods")
    if wanted.admit:
        admitted = np.array([signature.pod.key in wanted.admit for signature in view.signatures], dtype=np.int64)
        yield Tier("pods not admitted", (Weighted(1, Unplaced(Origin("fit"), admitted)),), 1, "pods")
    scale = HUNDREDTHS if np.any(weights != 1) else 1
    cost = np.rint(weights * scale).astype(np.int64)
    yield Tier("moves needed", (Weighted(1, Move(Origin("moves"), cost)),), scale, "moves")


def _pending_tiers(view: View, pending: Sequence[Signature], rules: Sequence[Rule]) -> list[Tier]:
    priorities = np.array([signature.pod.priority for signature in view.signatures], dtype=np.int64)
    tiers = []
    for priority in sorted({signature.pod.priority for signature in pending}, reverse=True):
        cost = (priorities == priority).astype(np.int64)
        term = Unplaced(Origin("pending", f"priority {priority}"), cost)
        tiers.append(Tier(f"pending (priority {priority})", (Weighted(1, term),), 1, "pods"))
    if tiers:
        term = Unplaced(Origin("pending", "size"), _sizes(view, rules))
        tiers.append(Tier("pending (size-weighted)", (Weighted(1, term),), 1000, "node equivalents"))
    return tiers


def _sizes(view: View, rules: Sequence[Rule]) -> Ints:
    """``[s]`` a pod's largest share of any resource of an average node that offers it, in thousandths, at least 1.

    Devices count as a resource.
    """
    allocatable = view.state.allocatable
    capacity = allocatable.sum(axis=1) / np.maximum(1, np.count_nonzero(allocatable, axis=1))
    vectors = np.array([view.state.vector(signature) for signature in view.signatures]).reshape(
        len(view.signatures), -1
    )
    share = np.divide(vectors, capacity, out=np.zeros(vectors.shape), where=capacity > 0)
    largest = share.max(axis=1, initial=0.0)
    for rule in rules:
        if isinstance(rule, Devices) and rule.count.any():
            largest = np.maximum(largest, rule.volume / (rule.size * rule.count[rule.count > 0].mean()))
    sizes: Ints = np.maximum(1, np.rint(largest * 1000)).astype(np.int64)
    return sizes


def _tier(
    view: ScoreView,
    settings: TierSettings,
    framework: Framework,
    weights: Floats,
    prices: Mapping[str, float] | None = None,
) -> Tier:
    weighed = bool(np.any(weights != 1))
    scale = _scale(settings, weighed)

    def whole(weight: float) -> int:
        return round(weight * scale)

    terms: list[Weighted] = []
    for resource, weight in settings.variance.items():
        if weight:
            terms.append(Weighted(1, variance(view, resource, weight * scale)))
    for resource, weight in settings.evenness.items():
        if weight:
            terms.append(Weighted(1, variance(view, resource, weight * scale, alike=True)))
    if settings.moves:
        least = min(1, whole(settings.moves))
        cost = np.maximum(least, np.rint(weights * settings.moves * scale)).astype(np.int64)
        terms.append(Weighted(1, Move(Origin("moves"), cost)))
    if settings.nodes:
        cost = np.full(view.state.size, whole(settings.nodes), dtype=np.int64)
        terms.append(
            Weighted(
                1, Open(Origin("nodes in use"), cost, view.held(s for s in view.state.signatures.all if _keeps_open(s)))
            )
        )
    if settings.price:
        terms.append(Weighted(1, _price(view, settings.price * scale, prices)))
    surrogate: list[Weighted] = []
    if settings.point:
        for plugin, weight, point in scoring_plugins(settings, framework):
            scoring = replace(view, point=whole(point))
            surrogate += [Weighted(w.weight * weight, w.term) for w in plugin.terms(scoring)]
    constant = 0
    for key, weight in settings.spread.items():
        if weight:
            spreading = _even(view, key, whole(weight))
            terms += spreading.terms
            constant += spreading.constant
    return Tier(settings.name, tuple(terms), scale, _unit(settings), surrogate=tuple(surrogate), constant=constant)


def _price(view: ScoreView, weight: float, prices: Mapping[str, float] | None) -> Open:
    """Return what nodes in use cost in an hour, times a weight.

    Raises
    ------
    InputError
        If prices are not known.
    """
    if prices is None:
        raise InputError("needs prices of nodes; give --prices FILE", None, "objective", "price")
    cost = np.rint(np.array([prices[node.name] for node in view.state.nodes]) * weight).astype(np.int64)
    held = view.held(s for s in view.state.signatures.all if _keeps_open(s))
    return Open(Origin("price"), cost, held)


def scoring_plugins(settings: TierSettings, framework: Framework) -> list[tuple[Plugin, int, float]]:
    """Return the plugins whose scores count in a tier, each with its weight and with what a point costs.

    Raises
    ------
    InputError
        If a plugin is named that does not score in the profile.
    """
    if not isinstance(settings.scores, dict):
        return [(plugin, weight, settings.scores) for plugin, weight in framework.scores if settings.scores]
    by_name = {plugin.name: plugin for plugin, _ in framework.scores}
    for name in settings.scores:
        if name not in by_name:
            known = ", ".join(sorted(by_name)) or "none"
            raise InputError(
                f"{name!r} does not score in this profile; must be one of {known}", None, "objective", "scores"
            )
    return [(by_name[name], 1, point) for name, point in settings.scores.items() if point]


def _notes(view: View, settings: TierSettings, framework: Framework, weights: Floats) -> Iterator[str]:
    """Yield what of a tier's settings is not in the model, and what weighs otherwise than they say."""
    owners = int(view.counts[weights != 1].sum())
    if settings.moves and np.any(weights != 1):
        yield f"moves of {owners} pods cost more or less than others, as annotations of theirs say"
    for plugin, _, _ in scoring_plugins(settings, framework):
        yield from plugin.omissions(view)
    for key, weight in settings.spread.items():
        if weight and view.state.topology(key).size < 2:
            yield f"spread over {key}: fewer than two domains, nothing to spread over"


def _scale(settings: TierSettings, weighed: bool) -> int:
    if any(settings.variance.values()) or any(settings.evenness.values()):
        return SCALE
    if settings.point or settings.price:
        return FINE
    moves = settings.moves / HUNDREDTHS if weighed else settings.moves
    weights = (moves, settings.nodes, *settings.spread.values())
    return next((s for s in (1, 10, 100, 1000) if all((w * s).is_integer() for w in map(float, weights))), FINE)


def _unit(settings: TierSettings) -> str:
    """Say what a tier is measured in, as ``pp² + 10/move``; a weight of 1 goes without saying."""
    parts = {
        "pp²": max((*settings.variance.values(), *settings.evenness.values()), default=0),
        "node": settings.nodes,
        "price/h": settings.price,
        "point": settings.point,
        "pair": max(settings.spread.values(), default=0),
        "move": settings.moves,
    }
    used = {unit: weight for unit, weight in parts.items() if weight}
    if len(used) == 1:
        unit = next(iter(used))
        return unit if unit in ("pp²", "price/h") else f"{unit}s"
    return " + ".join(unit if weight == 1 else f"{weight:g}/{unit}" for unit, weight in used.items())


def _keeps_open(signature: Signature) -> bool:
    return not signature.pod.per_node


@dataclass(frozen=True, slots=True)
class _Spreading:
    """Pairs of pods of one workload in one domain: terms of workloads that can move, and the cost of all others."""

    terms: Sequence[Weighted]
    constant: int


def _even(view: View, key: str, weight: int) -> _Spreading:
    """Return, for each workload, the pairs of its pods that share a domain."""
    topology = view.state.topology(key)
    terms: list[Weighted] = []
    constant = 0
    if topology.size < 2:
        return _Spreading(terms, constant)
    workloads: dict[tuple[str, str, str], list[Signature]] = {}
    for signature in view.state.signatures.all:
        controller = signature.pod.metadata.controller
        if controller is not None and not signature.pod.per_node:
            workloads.setdefault((controller.kind, signature.pod.namespace, controller.name), []).append(signature)
    for (kind, namespace, name), signatures in workloads.items():
        group = view.select(signatures)
        held = topology.total(view.held(signatures))
        size = int(view.counts[group].sum() + held.sum())
        if not len(group):
            constant += int((weight * held * (held - 1) // 2).sum())
        elif size > 1:
            origin = Origin("spread", f"{kind} {namespace}/{name} over {key}")
            curve = convex(lambda x: weight * x * (x - 1) / 2, range(size + 1), 0)
            terms.append(Weighted(1, DomainCurve(origin, group, topology, held, curve)))
    return _Spreading(terms, constant)
