"""Rules of one pod that can be loosened, each as a change of the snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from stowplan.models.kubernetes import Pod, Toleration
from stowplan.models.kubernetes.pod import PodSpec
from stowplan.models.kubernetes.taints import Taint, tolerated
from stowplan.models.snapshot import Snapshot
from stowplan.plans.cordons import CORDONED, uncordon
from stowplan.scenarios.changes import Rule
from stowplan.scenarios.rules import HARD, drop_rule, with_specs

KEEPING_OFF = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods off a node."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Something that may let a pod in.

    Parameters
    ----------
    words
        What is changed, as a report says it.
    """

    words: str


@dataclass(frozen=True, slots=True, eq=False)
class Loosening(Change):
    """A rule that no longer holds.

    Parameters
    ----------
    apply
        Returns the changed snapshot.
    """

    apply: Callable[[Snapshot], Snapshot]


def only(pod: Pod) -> Callable[[Pod], bool]:
    """Return whether a pod is this one."""
    return lambda other: other.key == pod.key


def loosenings(snapshot: Snapshot, pod: Pod) -> Sequence[Loosening]:
    """Return the rules that can be dropped for a pod, as far as it has them."""
    found = [*_own_rules(snapshot, pod), *_spread(snapshot, pod), *_nodes(snapshot, pod)]
    return [one for one in found if _changes(snapshot, one.apply(snapshot))]


def _changes(before: Snapshot, after: Snapshot) -> bool:
    return before.nodes is not after.nodes or any(a is not b for a, b in zip(before.pods, after.pods, strict=True))


def _own_rules(snapshot: Snapshot, pod: Pod) -> Iterator[Loosening]:
    own: dict[Rule, str] = {
        "node-affinity": "no node selector and no required node affinity",
        "affinity": "no required affinity to other pods",
        "anti-affinity": "no required anti-affinity of its own",
        "host-ports": "no host ports",
    }
    for rule, words in own.items():
        yield Loosening(words, partial(drop_rule, rule=rule, holds=only(pod)))
    others = _repelling(snapshot, pod)
    if others:
        words = f"no required anti-affinity of {', '.join(sorted(others)[:3])}{', …' if len(others) > 3 else ''}"
        yield Loosening(words, partial(drop_rule, rule="anti-affinity", holds=lambda one: _owner(one) in others))


def _repelling(snapshot: Snapshot, pod: Pod) -> set[str]:
    """Return the owners of bound pods that have required anti-affinity to pods with the labels of this one."""
    found = set()
    for other in snapshot.pods:
        affinity = other.spec.affinity and other.spec.affinity.pod_anti_affinity
        if other.node_name and not other.finished and affinity and other.key != pod.key:
            selectors = (term.label_selector for term in affinity.required)
            if any(selector is not None and selector.matches(pod.metadata.labels) for selector in selectors):
                found.add(_owner(other))
    return found


def _owner(pod: Pod) -> str:
    controller = pod.metadata.controller
    return f"{pod.namespace}/{controller.name if controller else pod.name}"


def _spread(snapshot: Snapshot, pod: Pod) -> Iterator[Loosening]:
    for i, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == HARD:
            words = f"no hard spread over {constraint.topology_key}"
            yield Loosening(words, partial(with_skew, pod=pod, constraint=i, max_skew=None))


def with_skew(snapshot: Snapshot, pod: Pod, constraint: int, max_skew: int | None) -> Snapshot:
    """Return a snapshot in which one spread constraint of a pod has another ``maxSkew``; ``None`` makes it soft."""

    def changed(spec: PodSpec) -> PodSpec:
        own = list(spec.topology_spread_constraints)
        one = own[constraint]
        own[constraint] = (
            replace(one, when_unsatisfiable="ScheduleAnyway", min_domains=None)
            if max_skew is None
            else replace(one, max_skew=max_skew)
        )
        return replace(spec, topology_spread_constraints=tuple(own))

    return with_specs(snapshot, only(pod), changed)


def _nodes(snapshot: Snapshot, pod: Pod) -> Iterator[Loosening]:
    cordoned = [node.name for node in snapshot.nodes if node.unschedulable]
    if cordoned:
        words = f"uncordon {', '.join(cordoned[:3])}{', …' if len(cordoned) > 3 else ''}"
        yield Loosening(words, partial(uncordon, names=cordoned))
    taints = dict.fromkeys(taint for node in snapshot.nodes for taint in intolerable(pod, node.taints))
    if taints:
        words = "tolerations of " + ", ".join(taint_words(taint) for taint in list(taints)[:3])
        words += ", …" if len(taints) > 3 else ""
        yield Loosening(words, partial(tolerating, pod=pod, taints=list(taints)))


def intolerable(pod: Pod, taints: Sequence[Taint]) -> Sequence[Taint]:
    """Return the taints that keep a pod off a node, but for that of a cordon."""
    return [
        taint
        for taint in taints
        if taint.effect in KEEPING_OFF and taint.key != CORDONED.key and not tolerated(taint, pod.spec.tolerations)
    ]


def tolerating(snapshot: Snapshot, pod: Pod, taints: Sequence[Taint]) -> Snapshot:
    """Return a snapshot in which a pod tolerates some taints."""
    more = tuple(
        Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect) for taint in taints
    )
    return with_specs(
        snapshot, only(pod), lambda spec: replace(spec, tolerations=tuple(dict.fromkeys((*spec.tolerations, *more))))
    )


def taint_words(taint: Taint) -> str:
    """Write a taint as kubectl does."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
