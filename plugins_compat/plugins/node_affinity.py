"""NodeAffinity: node selectors, required and preferred node affinity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import TypeAdapter, field_validator

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes.pod import NodeAffinity as Affinity
from stowplan.models.kubernetes.pod import PreferredSchedulingTerm
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, default_normalize
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code, NodeSet, Status
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.matching import everywhere, matching, required_nodes, required_selector, selected
from stowplan.plugins_compat.plugins.static_filter import StaticFilter


class NodeAffinityArgs(Args):
    """``addedAffinity`` applies to every pod of the profile."""

    added_affinity: Affinity | None = None

    @field_validator("added_affinity", mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        return TypeAdapter(Affinity).validate_python(value) if isinstance(value, dict) else value


class NodeAffinity(StaticFilter):
    """Rejects nodes outside the pod's node selector and required affinity; scores preferred terms by weight."""

    name = "NodeAffinity"
    surrogate = "normalized over all nodes the pod may use, not over those feasible at the moment"
    Args = NodeAffinityArgs

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """Narrow the nodes when every required term names some."""
        required = required_selector(cycle.signature.pod)
        if required is None or not required.node_selector_terms:
            return None
        names: frozenset[str] = frozenset()
        for term in required.node_selector_terms:
            pins = [frozenset(r.values) for r in term.match_fields if r.key == "metadata.name" and r.operator == "In"]
            if not pins:
                return None
            pinned = frozenset.intersection(*pins)
            if not pinned and self.release.node_affinity_first_conflict:
                return Status(Code.UNRESOLVABLE, ("pod affinity terms conflict",))
            names |= pinned
        return NodeSet(names) if names else Status(Code.UNRESOLVABLE, ("pod affinity terms conflict",))

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` nodes that the pod and the profile both select."""
        return self._added() & required_nodes(self.state, signature)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        if not self._added()[node]:
            return ("node(s) didn't match scheduler-enforced node affinity",)
        return ("node(s) didn't match Pod's node affinity/selector",)

    def pre_score(self, cycle: CycleState, nodes: Ints) -> bool:
        """Drop out, in releases that do, when there is nothing to prefer."""
        affinity = cycle.pod.spec.affinity
        own = affinity and affinity.node_affinity and affinity.node_affinity.preferred
        added = self.args.added_affinity and self.args.added_affinity.preferred
        return bool(own or added) or not self.release.skips_idle_scores

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Sum the weights of matching preferred terms."""
        return self.weights(cycle.signature)[nodes]

    def normalize(self, cycle: CycleState, nodes: Ints, scores: Ints) -> Ints:
        """Scale so that the best node has 100."""
        return default_normalize(scores)

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the scores as a table, normalized over the nodes that each signature may use at all."""
        yield from view.prefer_score(self.name, self.weights, default_normalize, self.preferred)

    def _added(self) -> Bools:
        added: Affinity | None = self.args.added_affinity
        if added is None or added.required is None:
            return everywhere(self.state)
        required = added.required
        return self.state.memo((self.name, "added"), lambda: selected(self.state, required))

    def preferred(self, signature: Signature) -> Sequence[PreferredSchedulingTerm]:
        """Return the preferred terms, the profile's first, that weigh anything."""
        affinity = signature.pod.spec.affinity
        own = affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()
        added = self.args.added_affinity.preferred if self.args.added_affinity else ()
        return [term for term in (*added, *own) if term.weight and not term.preference.empty]

    def weights(self, signature: Signature) -> Ints:
        """``[n]`` the sum of the weights of matching preferred terms."""

        def make() -> Ints:
            total = np.zeros(self.state.size, dtype=np.int64)
            for term in self.preferred(signature):
                total[matching(self.state, term.preference)] += term.weight
            return total

        return self.state.memo((self.name, "preferred", signature), make)
