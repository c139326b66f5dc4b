"""Extenders of replays: one prefers the nodes of its tokens, one keeps pods off cordoned nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from stowplan.models.kubernetes import Node, Pod
from stowplan.models.kubernetes.taints import tolerated
from stowplan.models.plan import Plan, TokenDocument
from stowplan.plans.cordons import CORDONED
from stowplan.plans.replacements import group_of_token
from stowplan.plugins_compat.extenders.answers import Filtered
from stowplan.plugins_compat.extenders.config import ExtenderConfig
from stowplan.plugins_compat.framework.extension import MOST_POINTS, Proposal
from stowplan.plugins_compat.framework.framework import Framework


class TokenExtender:
    """An extender that gives the node of a pod's token all points and every other node none.

    It answers as ``stowplan serve`` does: a pod gets one token of its own, or of its owner and template, and keeps it;
    a token whose node is among those in question goes first. Tokens of waves to come are not given out.

    Parameters
    ----------
    framework
        Its score plugins decide how much weight makes the points count more than all others together.
    """

    def __init__(self, plan: Plan, framework: Framework) -> None:
        most = sum(weight for _, weight in framework.scores)
        self.config = ExtenderConfig.model_validate(
            {"urlPrefix": "http://plan", "prioritizeVerb": "prioritize", "weight": most + 1}
        )
        self._tokens = plan.tokens
        self._left = Counter({i: token.count for i, token in enumerate(plan.tokens)})
        self._held: dict[str, int] = {}
        self.wave = 0

    def is_interested(self, pod: Pod) -> bool:
        """Every pod may have a token."""
        return True

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
        """Return scores by node name."""
        names = [node.name for node in nodes]
        token = self._token(pod, names)
        target = None if token is None else self._tokens[token].target
        return {name: MOST_POINTS if name == target else 0 for name in names}

    def _token(self, pod: Pod, names: Sequence[str]) -> int | None:
        holder = f"{pod.key} {pod.metadata.uid}"
        if holder in self._held:
            return self._held[holder]
        fitting = [
            i for i, token in enumerate(self._tokens) if self._left[i] and token.wave <= self.wave and _fits(token, pod)
        ]
        if not fitting:
            return None
        token = min(fitting, key=lambda i: (self._tokens[i].target not in names, self._tokens[i].wave, i))
        self._left[token] -= 1
        self._held[holder] = token
        return token

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """Reject no node."""
        return Filtered([node.name for node in nodes])

    def preempt(self, pod: Pod, victims: Mapping[str, Proposal]) -> dict[str, tuple[list[str], int]]:
        """Agree to everything."""
        return _agree(victims)

    def bind(self, pod: Pod, node: str) -> None:
        """Bind nothing: that is the business of the binder."""


def _fits(token: TokenDocument, pod: Pod) -> bool:
    controller = pod.metadata.controller
    owner = controller.uid if controller else ""
    return group_of_token(token).admits(pod.namespace, pod.name, owner, (pod.template_hash,))


class CordonExtender:
    """An extender that turns cordoned nodes down, as the plugin NodeUnschedulable does.

    Unlike a cordon, it leaves the taints of nodes as they are. Only pods that spread over nodes whose taints they
    tolerate, and no others (``nodeTaintsPolicy: Honor``), could tell the difference.
    """

    config = ExtenderConfig.model_validate({"urlPrefix": "http://cordons", "filterVerb": "filter"})

    def __init__(self) -> None:
        self.nodes: frozenset[str] = frozenset()

    def is_interested(self, pod: Pod) -> bool:
        """Whether a cordon keeps the pod away."""
        return bool(self.nodes) and not tolerated(CORDONED, pod.spec.tolerations)

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """Reject cordoned nodes."""
        passed = [node.name for node in nodes if node.name not in self.nodes]
        refused = {node.name: "node(s) were unschedulable" for node in nodes if node.name in self.nodes}
        return Filtered(passed, unresolvable=refused)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
        """Prefer nothing."""
        return {}

    def preempt(self, pod: Pod, victims: Mapping[str, Proposal]) -> dict[str, tuple[list[str], int]]:
        """Agree to everything."""
        return _agree(victims)

    def bind(self, pod: Pod, node: str) -> None:
        """Bind nothing: that is the business of the binder."""


def _agree(victims: Mapping[str, Proposal]) -> dict[str, tuple[list[str], int]]:
    return {name: ([v.metadata.uid for v in pods], violations) for name, (pods, violations) in victims.items()}
