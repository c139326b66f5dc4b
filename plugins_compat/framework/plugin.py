"""What a plugin is: one upstream plugin with three faces.

1. For the framework: the extension points, exact, vectorized over nodes.
2. For the optimizer: the same predicate as `rules`.
3. For the optimizer: the same score as `terms`.

A plugin overrides what applies to it. The three faces share the matching code of the plugin's file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

from stowplan.models.arrays import Floats, Ints
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import POINTS, Rule, Weighted
from stowplan.models.validation import without_nulls
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.diagnosis import Diagnosis
from stowplan.plugins_compat.framework.extension import Extenders
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import NodeSet, PostFilterResult, Status, Wait
from stowplan.plugins_compat.framework.view import ScoreView, View


class Args(BaseModel):
    """Arguments of a plugin, as a ``pluginConfig`` entry holds them."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, validate_by_name=True)

    api_version: str | None = None
    kind: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return without_nulls(data)


class Handle(Protocol):
    """What a plugin may ask of the framework that runs it."""

    @property
    def filters(self) -> Sequence[Plugin]:
        """The filter plugins, in order."""

    @property
    def extenders(self) -> Extenders:
        """The extenders of the profile."""

    def count(self, cycle: CycleState, signature: Signature, node: int, count: int) -> None:
        """Add pods of a signature to a node within a cycle, or take them off; to be undone before the cycle ends."""

    def fits(self, cycle: CycleState, node: int, filters: Sequence[Plugin], rivals: Sequence[Pod]) -> Status | None:
        """Run filters on one node, first with the nominated pods given counted in, then without; ``None`` is a fit."""

    def draw(self, number: int) -> int:
        """Return a number below ``number`` where upstream draws one."""


class Plugin:
    """Base of all plugins; every method is the extension point of the same name in kube-scheduler."""

    name: ClassVar[str]
    one_reason_a_code: ClassVar[bool] = False
    """Whether the reasons of a rejection follow from its code, so that they need not be asked for node by node."""
    reads: ClassVar[Literal["nothing", "requests", "pods"]] = "pods"
    """What `filter` asks of the pods on a node: nothing, what they request together, or more than that."""
    reach: ClassVar[Literal["node", "cluster"]] = "cluster"
    """Pods that may change what `pre_filter` and `filter` say of a node: those on it, or any."""
    monotone: ClassVar[bool] = False
    """Whether `pre_filter` and `filter` never reject a node because a pod was taken off it that was there before."""
    surrogate: ClassVar[str] = ""
    """What `terms` mean where they are not the exact score."""
    deviation: ClassVar[str] = ""
    """Where `rules` differ from `filter`."""
    refusal: ClassVar[str] = ""
    """Which pods `refuses` turns down."""
    not_upstream: ClassVar[str] = ""
    """What the plugin follows, where upstream has none of the kind."""
    Args: ClassVar[type[Args]] = Args

    def __init__(self, args: Any, state: ClusterState) -> None:
        self.args = args
        self.state = state
        self.release = state.release

    # -- the framework's face ---------------------------------------------------------------------------------

    def queue_key(self, pod: Pod) -> tuple[Any, ...]:
        """QueueSort: pods are tried in increasing order of this key."""
        raise NotImplementedError

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """PreEnqueue: a status keeps the pod out of the queue."""
        return None

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """PreFilter: a status rejects the pod everywhere (or skips the filter), a `NodeSet` narrows the nodes."""
        return None

    def idle(self, cycle: CycleState) -> bool:
        """Whether `filter` admits this pod everywhere, and PreFilter answers alike, whatever other pods there are."""
        return False

    def minds(self, signature: Signature) -> bool:
        """Whether a pod of a signature can change what `filter` says of the nodes it comes to, or leaves."""
        return True

    def count_pod(self, cycle: CycleState, signature: Signature, node: int, count: int) -> None:
        """PreFilterExtensions: a pod of a signature was added to a node (or taken off it) within the cycle.

        The state counts it already; this is for plugins whose upstream counts differently from then on.
        """

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Filter: return a `Code` for each of the given nodes."""
        raise NotImplementedError

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Why `filter` rejects the pod on a node, in upstream's words. Only asked where it does."""
        raise NotImplementedError

    def count_reasons(self, cycle: CycleState, nodes: Ints, codes: Ints) -> Counter[str]:
        """Count the reasons of `reasons` over nodes where `filter` gave the codes."""
        if not self.one_reason_a_code:
            return Counter(reason for node in nodes.tolist() for reason in self.reasons(cycle, node))
        counts: Counter[str] = Counter()
        for code in np.unique(codes):
            same = nodes[codes == code]
            counts.update(dict.fromkeys(self.reasons(cycle, int(same[0])), len(same)))
        return counts

    def pre_score(self, cycle: CycleState, nodes: Ints) -> bool:
        """PreScore: prepare for scoring the given (feasible) nodes; ``False`` drops the plugin from scoring."""
        return True

    def score(self, cycle: CycleState, nodes: Ints) -> Ints | Floats:
        """Score: return the raw score of each of the given nodes; real numbers in releases that have such scores."""
        raise NotImplementedError

    def normalize(self, cycle: CycleState, nodes: Ints, scores: Ints) -> Ints:
        """NormalizeScore: bring raw scores into 0 to 100."""
        return scores

    def reserve(self, cycle: CycleState, node: int) -> Status | None:
        """Reserve: claim what the pod needs on the node; a status undoes the placement."""
        return None

    def unreserve(self, cycle: CycleState, node: int) -> None:
        """Unreserve: give back what `reserve` claimed."""

    def permit(self, cycle: CycleState, node: int) -> Status | Wait | None:
        """Permit: a status refuses the placement; with `Wait` the pod waits to be allowed or rejected.

        Waiting pods, of which ``state.waiting`` holds all, are counted on their nodes.
        """
        return None

    def pre_bind(self, cycle: CycleState, node: int) -> Status | None:
        """PreBind: a status refuses the placement."""
        return None

    def bind(self, cycle: CycleState, node: int) -> bool:
        """Bind: return whether this plugin bound the pod."""
        raise NotImplementedError

    def post_bind(self, cycle: CycleState, node: int) -> None:
        """PostBind: take note that the pod was bound."""

    def post_filter(self, cycle: CycleState, diagnosis: Diagnosis, handle: Handle) -> PostFilterResult:
        """PostFilter: find a way out when no node is feasible. The cluster is left as it was."""
        raise NotImplementedError

    def accounts(self) -> Mapping[str, tuple[Ints, Ints]]:
        """Return what the plugin accounts for beside the resources of nodes: by name, ``[n]`` taken and offered."""
        return {}

    # -- the optimizer's faces --------------------------------------------------------------------------------

    def refuses(self, pod: Pod) -> str | None:
        """Return what about the pod this plugin cannot answer for, or ``None``.

        Such a pod is not guessed about: it stays where it is, and the report says why.
        """
        return None

    def rules(self, view: View) -> Iterable[Rule]:
        """Return the plugin's predicate as rules over the view's signatures."""
        return ()

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the plugin's score as costs over the view's signatures; one point missed costs ``view.point``.

        The rules of all plugins are known by then: ``view.allowed`` has what they leave.
        """
        return iter(())

    def omissions(self, view: View) -> Iterable[str]:
        """Say what of the plugin's score `terms` leaves out of the model, on this cluster and with these arguments."""
        return ()


def implements(plugin: type[Plugin], point: str) -> bool:
    """Whether a plugin has an extension point of its own."""
    return getattr(plugin, point) is not getattr(Plugin, point)


def default_normalize(scores: Ints, *, reverse: bool = False) -> Ints:
    """Scale scores so that the highest becomes 100, as upstream's ``DefaultNormalizeScore``; then maybe turn over."""
    highest = int(scores.max(initial=0))
    if highest <= 0:
        return np.full_like(scores, POINTS) if reverse else scores
    scaled = scores * POINTS // highest
    return POINTS - scaled if reverse else scaled
