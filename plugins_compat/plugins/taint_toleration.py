"""TaintToleration: taints keep pods off nodes, or lower the score of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes.taints import Taint, tolerated
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import default_normalize
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.static_filter import StaticFilter


class TaintToleration(StaticFilter):
    """Rejects nodes with an untolerated NoSchedule or NoExecute taint; scores down PreferNoSchedule taints."""

    name = "TaintToleration"
    surrogate = "normalized over all nodes the pod may use, not over those feasible at the moment"

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` nodes whose hard taints are all tolerated."""
        return self._by_taints(lambda taints: self._first_untolerated(signature, taints) is None).astype(np.bool_)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason; older releases name the taint."""
        if self.release.generic_taint_reason:
            return ("node(s) had untolerated taint(s)",)
        taint = self._first_untolerated(cycle.signature, self.state.nodes[node].taints)
        assert taint is not None
        return (f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}",)

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Count untolerated PreferNoSchedule taints."""
        return self.untolerated(cycle.signature)[nodes]

    def normalize(self, cycle: CycleState, nodes: Ints, scores: Ints) -> Ints:
        """Fewest untolerated taints is best."""
        return default_normalize(scores, reverse=True)

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the scores as a table, normalized over the nodes that each signature may use at all."""
        yield from view.prefer_score(self.name, self.untolerated, lambda s: default_normalize(s, reverse=True))

    def _first_untolerated(self, signature: Signature, taints: Sequence[Taint]) -> Taint | None:
        tolerations = signature.pod.spec.tolerations
        hard = (taint for taint in taints if taint.effect != "PreferNoSchedule")
        return next((taint for taint in hard if not tolerated(taint, tolerations)), None)

    def untolerated(self, signature: Signature) -> Ints:
        """``[n]`` number of PreferNoSchedule taints that a pod does not tolerate."""
        soft = [t for t in signature.pod.spec.tolerations if t.effect in ("", "PreferNoSchedule")]

        def count(taints: Sequence[Taint]) -> int:
            return sum(t.effect == "PreferNoSchedule" and not tolerated(t, soft) for t in taints)

        return self.state.memo((self.name, "soft", signature), lambda: self._by_taints(count))

    def _by_taints(self, value: Callable[[Sequence[Taint]], int]) -> Ints:
        """Evaluate once for each distinct set of taints, then spread over the nodes."""
        codes: dict[tuple[Taint, ...], int] = {}
        code = self.state.memo(
            (self.name, "taints"),
            lambda: np.array([codes.setdefault(node.taints, len(codes)) for node in self.state.nodes], dtype=np.int64),
        )
        distinct = self.state.memo((self.name, "distinct"), lambda: list(codes))
        values: Ints = np.array([value(taints) for taints in distinct], dtype=np.int64)[code]
        return values
