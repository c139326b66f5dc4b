"""PodTopologySpread: pods that count together are spread evenly over the domains of a topology key."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter, field_validator, model_validator

from stowplan.models.arrays import Bools, Ints
from stowplan.models.interning import FrozenMap
from stowplan.models.kubernetes import LabelSelector, LabelSelectorRequirement, Pod, TopologySpreadConstraint
from stowplan.models.kubernetes.taints import tolerated
from stowplan.models.objective import HOSTNAME, ZONE
from stowplan.models.problem import POINTS, Origin, Rule, Spread, Topology, Weighted
from stowplan.plugins_compat.framework.counts import DomainCounts, Eligible
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import SUCCESS, UNRESOLVABLE, UNSCHEDULABLE
from stowplan.plugins_compat.framework.view import ScoreView, View
from stowplan.plugins_compat.matching import required_nodes, with_keys
from stowplan.plugins_compat.plugins.default_selector import default_selector

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(3, HOSTNAME, "ScheduleAnyway"),
    TopologySpreadConstraint(5, ZONE, "ScheduleAnyway"),
)
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"


class PodTopologySpreadArgs(Args):
    """Constraints for pods that have none of their own."""

    default_constraints: tuple[Any, ...] = ()
    defaulting_type: Literal["List", "System"] = "System"

    @field_validator("default_constraints", mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return TypeAdapter(tuple[TopologySpreadConstraint, ...]).validate_python(value or ())

    @model_validator(mode="after")
    def _consistent(self) -> PodTopologySpreadArgs:
        if self.defaulting_type == "System" and self.default_constraints:
            raise ValueError("defaultConstraints must be empty when defaultingType is System")
        if any(c.label_selector is not None for c in self.default_constraints):
            raise ValueError("defaultConstraints must not have a labelSelector")
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A constraint as the plugin uses it.

    Parameters
    ----------
    selector
        Which pods of the namespace count; ``None`` counts none.
    eligible
        Nodes on which pods count.
    counts_self
        Whether the incoming pod itself is selected.
    """

    key: str
    topology: Topology
    max_skew: int
    min_domains: int
    selector: LabelSelector | None
    eligible: Eligible
    counts_self: bool


@dataclass(frozen=True, slots=True, eq=False)
class SoftConstraint:
    """A soft constraint as the score reads it.

    Parameters
    ----------
    counts, eligible
        Counts of pods that are added up, each on its eligible nodes. Several where constraints share a key, in
        releases that keep counts by key.
    repeated
        Whether an earlier constraint has the key, in such releases.
    """

    constraint: Constraint
    counts: Sequence[DomainCounts]
    eligible: Sequence[Eligible]
    repeated: bool


class PodTopologySpread(Plugin):
    """Rejects nodes that would make the spread too uneven; scores down domains that hold many already."""

    name = "PodTopologySpread"
    surrogate = "the share of a pod's group that is in its domain"
    deviation = "1.24: two constraints of a pod with one topology key are counted apart"
    monotone = True
    one_reason_a_code = True
    Args = PodTopologySpreadArgs
    _CHANGES = "PodTopologySpread changes"

    # -- filter -----------------------------------------------------------------------------------------------

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod has no hard constraint."""
        return not self._constraints(cycle.signature, HARD)

    def count_pod(self, cycle: CycleState, signature: Signature, node: int, count: int) -> None:
        """Note pods that upstream's first count passes over but later changes of it do not.

        Those are terminating pods, and any pod where a constraint selects with an empty selector.
        """
        for constraint in self._constraints(cycle.signature, HARD):
            selector, namespace = constraint.selector, cycle.pod.namespace
            if (
                selector is not None
                and constraint.eligible.mask[node]
                and signature.pod.namespace == namespace
                and selector.matches(signature.pod.metadata.labels)
                and not self._counts(namespace, selector)(signature)
            ):
                changes = cycle.data.setdefault(self._CHANGES, {})
                place = (id(constraint), int(constraint.topology.domain[node]))
                changes[place] = changes.get(place, 0) + count

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes without a topology key for good, nodes with too much skew for now."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        for constraint in self._constraints(cycle.signature, HARD):
            undecided = codes == SUCCESS
            domain = constraint.topology.domain[nodes]
            codes[undecided & (domain < 0)] = UNRESOLVABLE
            undecided &= domain >= 0
            totals = self._changed(cycle, constraint, self._totals(cycle.signature, constraint))
            known = self._domains(constraint)
            if not len(known):
                continue
            least = 0 if len(known) < constraint.min_domains else int(totals[known].min())
            skew = totals[domain] + constraint.counts_self - least
            codes[undecided & (skew > constraint.max_skew)] = UNSCHEDULABLE
        return codes

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        reason = "node(s) didn't match pod topology spread constraints"
        if self.filter(cycle, np.array([node]))[0] == UNRESOLVABLE:
            reason += " (missing required label)"
        return (reason,)

    def rules(self, view: View) -> Iterable[Rule]:
        """One `Spread` for each distinct constraint, and an `Allow` for nodes that lack a key."""
        groups: dict[Any, tuple[Constraint, Signature]] = {}
        bound: dict[Any, list[Signature]] = {}
        for signature in self.state.signatures.all:
            for c in self._constraints(signature, HARD):
                what = (signature.pod.namespace, c.key, c.max_skew, c.min_domains, c.selector, id(c.eligible))
                groups.setdefault(what, (c, signature))
                bound.setdefault(what, []).append(signature)
        for what, (c, signature) in groups.items():
            yield self._spread(view, c, signature.pod.namespace, bound[what])
        rule = view.allow(
            self.name, lambda signature: with_keys(self.state, {c.key for c in self._constraints(signature, HARD)})
        )
        if rule is not None:
            yield rule

    def _spread(self, view: View, constraint: Constraint, namespace: str, seekers: Sequence[Signature]) -> Spread:
        topology = self._restricted(constraint)
        counted = self._counted(namespace, constraint.selector)
        return Spread(
            Origin(self.name, f"{namespace}: {_words(constraint.selector)} over {constraint.key}"),
            view.select(seekers),
            view.select(counted),
            topology,
            constraint.max_skew,
            constraint.min_domains,
            topology.total(view.held(seekers)),
            topology.total(view.held(counted)),
        )

    def required_counts(self, signature: Signature) -> Iterator[DomainCounts]:
        """Yield all counts of pods that the filter reads for a signature."""
        for c in self._constraints(signature, HARD):
            yield self._domain_counts(signature.pod.namespace, c.selector)

    def preferred(self, signature: Signature) -> Sequence[SoftConstraint]:
        """Return the soft constraints of a signature, as its score reads them."""

        def make() -> Sequence[SoftConstraint]:
            constraints = self._constraints(signature, SOFT)
            shared = not self.release.spread_per_constraint
            found = []
            for i, c in enumerate(constraints):
                added = [o for o in constraints if o.key == c.key] if shared and c.key != HOSTNAME else [c]
                repeated = shared and any(other.key == c.key for other in constraints[:i])
                counts = [self._domain_counts(signature.pod.namespace, other.selector) for other in added]
                found.append(SoftConstraint(c, counts, [other.eligible for other in added], repeated))
            return found

        return self.state.memo((self.name, "preferred", signature), make)

    def required(self, signature: Signature) -> Iterator[tuple[Constraint, DomainCounts, Eligible, Ints]]:
        """Yield the hard constraints of a signature: what is counted, on which nodes, and the domains compared."""
        for c in self._constraints(signature, HARD):
            source = self._source(signature, c)
            counts = self._domain_counts(signature.pod.namespace, source.selector)
            yield c, counts, source.eligible, self._domains(c)

    def balanced(self, signature: Signature) -> Sequence[tuple[Constraint, Callable[[Signature], bool]]]:
        """Return the hard constraints of a signature, each with the predicate of the signatures that it counts."""
        namespace = signature.pod.namespace
        return [(c, self._counts(namespace, c.selector)) for c in self._constraints(signature, HARD)]

    # -- score ------------------------------------------------------------------------------------------------

    def pre_score(self, cycle: CycleState, nodes: Ints) -> bool:
        """Note the constraints and their weights over the candidates."""
        constraints = self._constraints(cycle.signature, SOFT)
        if not constraints and self.release.skips_idle_scores:
            return False
        ignored = np.zeros(len(nodes), dtype=np.bool_)
        if self.needs_all_keys(cycle.signature):
            for c in constraints:
                ignored |= c.topology.domain[nodes] < 0
        weights: list[float] = []
        sized: set[str] = set()
        for c in constraints:
            if c.key == HOSTNAME:
                size = int((~ignored).sum())
            elif c.key in sized and not self.release.spread_per_constraint:
                size = 0  # the pairs of this key were new to the first constraint only
            else:
                size = len(np.unique(c.topology.domain[nodes][~ignored]))
            sized.add(c.key)
            weights.append(math.log(size + 2))
        cycle.data[self.name] = (constraints, weights, ignored)
        return True

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Sum, over the constraints, the pods in the node's domain times the weight.

        The sum is rounded half away from zero; old releases cut it off.
        """
        constraints, weights, ignored = cycle.data[self.name]
        raw = np.zeros(len(nodes), dtype=np.float64)
        for i, c in enumerate(constraints):
            domain = c.topology.domain[nodes]
            if c.key == HOSTNAME:
                count = self._domain_counts(cycle.signature.pod.namespace, c.selector).per_node[nodes]
            elif c.topology.size:
                count = self._soft_totals(cycle.signature, constraints, i)[domain]
            else:
                continue
            raw += np.where(domain >= 0, count * weights[i] + float(c.max_skew - 1), 0.0)
        raw[ignored] = 0.0
        up = (raw - np.trunc(raw) >= 0.5) & self.release.spread_rounds
        whole: Ints = (np.trunc(raw) + up).astype(np.int64)
        return whole

    def normalize(self, cycle: CycleState, nodes: Ints, scores: Ints) -> Ints:
        """Turn over and scale between the smallest and the largest; ignored nodes get 0."""
        ignored: Bools = cycle.data[self.name][2]
        counted = scores[~ignored]
        highest = int(counted.max(initial=0))
        if highest == 0:
            return np.where(ignored, 0, POINTS)
        turned: Ints = np.where(ignored, 0, POINTS * (highest + int(counted.min()) - scores) // highest)
        return turned

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return a surrogate: each pod costs the share of its group that is in its domain.

        The exact score compares nodes with each other at the moment of placement, which has no final-state meaning.
        Constraints weigh in as ``ln(domains + 2)``, as upstream weighs them.
        """
        groups: dict[Any, tuple[Constraint, str, float]] = {}
        for signature in view.signatures:
            soft = self._constraints(signature, SOFT)
            weights = [math.log(max(1, c.topology.size) + 2) for c in soft]
            for c, weight in zip(soft, weights, strict=True):
                what = (signature.pod.namespace, c.key, c.selector)
                groups.setdefault(what, (c, signature.pod.namespace, weight / sum(weights)))
        for c, namespace, share in groups.values():
            yield from view.even(
                Origin(self.name, f"{_words(c.selector)} over {c.key}"),
                c.topology,
                self._counted(namespace, c.selector),
                share,
            )

    # -- constraints ------------------------------------------------------------------------------------------

    def _constraints(self, signature: Signature, mode: str) -> Sequence[Constraint]:
        return self.state.memo((self.name, mode, signature), lambda: self._make(signature, mode))

    def _make(self, signature: Signature, mode: str) -> Sequence[Constraint]:
        pod = signature.pod
        own = pod.spec.topology_spread_constraints
        given: Iterable[TopologySpreadConstraint] = own
        derived: LabelSelector | None = None
        if not own:
            given = SYSTEM_DEFAULTS if self.args.defaulting_type == "System" else self.args.default_constraints
            derived = default_selector(self.state.snapshot, pod)
            if derived is None:
                return ()
        used = [c for c in given if c.when_unsatisfiable == mode]
        # Nodes must carry every key of the set to count, except for the system's own soft defaults.
        every_key = mode == HARD or self.needs_all_keys(signature)
        keyed = with_keys(self.state, {c.topology_key for c in used} if every_key else set())
        return [self._constraint(signature, c, derived if not own else c.label_selector, keyed) for c in used]

    def _constraint(
        self, signature: Signature, c: TopologySpreadConstraint, selector: LabelSelector | None, keyed: Bools
    ) -> Constraint:
        pod = signature.pod
        if self.release.spread_label_keys and c.label_selector is not None:
            selector = c.label_selector.also(
                *(
                    LabelSelectorRequirement(key, "In", (pod.metadata.labels[key],))
                    for key in c.match_label_keys
                    if key in pod.metadata.labels
                )
            )
        policies = self.release.spread_policies
        mask = keyed
        if not policies or (c.node_affinity_policy or "Honor") == "Honor":
            mask = mask & required_nodes(self.state, signature)
        if policies and c.node_taints_policy == "Honor":
            mask = mask & self._tolerated(signature)
        return Constraint(
            c.topology_key,
            self.state.topology(c.topology_key),
            c.max_skew,
            (c.min_domains or 1) if self.release.spread_min_domains else 0,
            selector,
            self.state.eligible(mask),
            selector is not None and selector.matches(pod.metadata.labels),
        )

    def needs_all_keys(self, signature: Signature) -> bool:
        """Whether nodes must carry every key of the soft constraints to be scored."""
        return bool(signature.pod.spec.topology_spread_constraints) or self.args.defaulting_type == "List"

    def _tolerated(self, signature: Signature) -> Bools:
        tolerations = signature.pod.spec.tolerations

        def make() -> Bools:
            return np.array(
                [
                    all(t.effect == "PreferNoSchedule" or tolerated(t, tolerations) for t in node.taints)
                    for node in self.state.nodes
                ],
                dtype=np.bool_,
            )

        return self.state.memo((self.name, "tolerated", tolerations), make)

    # -- counts -----------------------------------------------------------------------------------------------

    def _counts(self, namespace: str, selector: LabelSelector | None) -> Callable[[Signature], bool]:
        """Return the predicate of signatures that count: same namespace, selected, not terminating."""
        if selector is None or (selector.empty and not self.release.spread_empty_selector_counts):
            return lambda signature: False

        def counts(signature: Signature) -> bool:
            pod: Pod = signature.pod
            return pod.namespace == namespace and not pod.terminating and selector.matches(pod.metadata.labels)

        return counts

    def _counted(self, namespace: str, selector: LabelSelector | None) -> list[Signature]:
        """Return the signatures that count."""
        counts = self._counts(namespace, selector)
        return [signature for signature in self.state.signatures.selected(selector, namespace) if counts(signature)]

    def _domain_counts(self, namespace: str, selector: LabelSelector | None) -> DomainCounts:
        return self.state.domain_counts(
            (self.name, namespace, selector),
            self._counts(namespace, selector),
            lambda: self._counted(namespace, selector),
        )

    def _totals(self, signature: Signature, constraint: Constraint) -> Ints:
        """``[d]`` pods that count, by domain, for a hard constraint."""
        source = self._source(signature, constraint)
        return self._domain_counts(signature.pod.namespace, source.selector).total(source.topology, source.eligible)

    def _source(self, signature: Signature, constraint: Constraint) -> Constraint:
        """Return the hard constraint whose counts are read for one."""
        if self.release.spread_per_constraint:
            return constraint
        # Counts are kept by key and value, and the last constraint with the key writes them.
        return [c for c in self._constraints(signature, HARD) if c.key == constraint.key][-1]

    def _changed(self, cycle: CycleState, constraint: Constraint, totals: Ints) -> Ints:
        """Return the counts with what `count_pod` noted."""
        changes = [
            (domain, change) for (c, domain), change in cycle.data.get(self._CHANGES, {}).items() if c == id(constraint)
        ]
        if not changes:
            return totals
        changed = totals.copy()
        for domain, change in changes:
            changed[domain] += change
        return changed

    def _soft_totals(self, signature: Signature, constraints: Sequence[Constraint], i: int) -> Ints:
        """``[d]`` pods that count, by domain, for a soft constraint."""
        namespace, c = signature.pod.namespace, constraints[i]
        if self.release.spread_per_constraint:
            return self._domain_counts(namespace, c.selector).total(c.topology, c.eligible)
        same_key = [other for other in constraints if other.key == c.key]
        parts = [self._domain_counts(namespace, o.selector).total(o.topology, o.eligible) for o in same_key]
        total: Ints = np.sum(parts, axis=0)
        return total

    def _restricted(self, constraint: Constraint) -> Topology:
        """Return the constraint's domains, made by its eligible nodes alone."""
        key = (self.name, "restricted", constraint.key, id(constraint.eligible))
        return self.state.memo(key, lambda: restricted(constraint.topology, constraint.eligible.mask))

    def _domains(self, constraint: Constraint) -> Ints:
        """Return the domains that have an eligible node."""

        def make() -> Ints:
            domain = constraint.topology.domain[constraint.eligible.mask]
            return np.unique(domain[domain >= 0])

        return self.state.memo((self.name, "domains", constraint.topology.key, id(constraint.eligible)), make)


def restricted(topology: Topology, mask: Bools) -> Topology:
    """Return a topology with only the domains that some node of the mask belongs to."""
    inside = mask & (topology.domain >= 0)
    kept, renumbered = np.unique(topology.domain[inside], return_inverse=True)
    domain = np.full_like(topology.domain, -1)
    domain[inside] = renumbered
    return Topology(topology.key, domain, tuple(topology.names[d] for d in kept))


def _words(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pods"
    labels: FrozenMap[str] = selector.match_labels
    parts = [f"{key}={value}" for key, value in labels.items()]
    parts += [f"{r.key} {r.operator} {' '.join(r.values)}".strip() for r in selector.match_expressions]
    return ",".join(parts) or "all pods"
