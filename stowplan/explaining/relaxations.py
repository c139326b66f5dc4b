"""What would admit a pod that no node admits; each proposal was checked by the filters on the changed snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stowplan.explaining.check import Check
from stowplan.explaining.loosening import (
    Loosening,
    intolerable,
    loosenings,
    taint_words,
    tolerating,
    with_skew,
)
from stowplan.explaining.making_room import Room, evictions, larger_nodes, more_nodes, smaller_requests
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline, Over
from stowplan.plans.cordons import uncordon
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.scenarios.rules import HARD

ADDED = 3
"""Pools of which one more node is proposed, at most."""
UNCORDONED = 20
"""Cordoned nodes that are tried one by one."""
SECONDS = 5.0
"""How long proposals are looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """Changes after which kube-scheduler's filters admit a pod.

    Parameters
    ----------
    changes
        What is changed, in words.
    node
        A node that admits the pod then.
    victims
        Keys of the pods that are evicted.
    snapshot
        The changed cluster.
    minimal
        Whether it is known that the pod is not admitted without any one of the changes; if not, some may be left out.
    """

    changes: Sequence[str]
    node: str
    victims: Sequence[str]
    snapshot: Snapshot
    minimal: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Relaxations:
    """What was found, and what was not tried to the end.

    Parameters
    ----------
    untried
        Kinds of proposals that were left out, wholly or in part, because the time was over or a stop was asked for.
    interrupted
        Whether a stop was asked for.
    refusing
        If nothing admits the pod: what refuses it still, without all rules that can be dropped, and on more nodes that
        are as large as it asks for.
    """

    found: Sequence[Relaxation] = ()
    untried: Sequence[str] = ()
    interrupted: bool = False
    refusing: Sequence[str] = ()


def relaxations(
    snapshot: Snapshot, framework: Framework, pod: Pod, *, stop: Stop | None = None, seconds: float = SECONDS
) -> Relaxations:
    """Return what admits an unscheduled pod: single changes, or, if none does, combinations that need all their parts.

    Parameters
    ----------
    framework
        On the cluster as it is; its filters check every proposal on the changed snapshot. It is left as it was.
    stop, seconds
        Asked each time before the filters are; a stop, or the end of the time, ends with what was found.
    """
    deadline = Deadline(seconds, stop=stop or Stop())
    check = Check(framework, pod.key, deadline)
    found: list[Relaxation] = []
    untried = [*_SINGLE, COMBINED]
    try:
        for what, make in _SINGLE.items():
            _try(make(snapshot, check), check, found)
            untried.remove(what)
        if not found:
            _combine(snapshot, pod, check, found)
        return Relaxations(found, refusing=() if found else _refusing(snapshot, pod, check))
    except Over:
        return Relaxations(found, untried, deadline.stop.is_set())
    finally:
        check.restore()


def _try(rooms: Iterator[Room], check: Check, found: list[Relaxation]) -> None:
    """Add those of some changes that admit the pod to what was found."""
    added = 0
    for room in rooms:
        is_node = room.words.startswith("1 more")
        if (is_node and added == ADDED) or (node := check.node(room.snapshot)) is None:
            continue
        added += is_node
        if all(one.changes != (room.words,) for one in found):
            found.append(Relaxation((room.words,), node, room.victims, room.snapshot))


def _adding(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    del check
    return more_nodes(snapshot)


def _uncordoning(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    del check
    for name in [node.name for node in snapshot.nodes if node.unschedulable][:UNCORDONED]:
        yield Room(f"uncordon {name}", uncordon(snapshot, [name]))


def _dropping(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    for loosening in loosenings(snapshot, check.pod(snapshot)):
        if not loosening.words.startswith(("no hard spread", "uncordon", "tolerations")):
            yield Room(loosening.words, loosening.apply(snapshot))


def _skews(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    """Yield, for each hard spread constraint, the smallest ``maxSkew`` with which the pod has a node."""
    pod = check.pod(snapshot)
    for i, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != HARD:
            continue
        low, high = constraint.max_skew, constraint.max_skew + len(snapshot.pods)
        if check.node(with_skew(snapshot, pod, i, high)) is None:
            continue
        while high - low > 1:  # the pod has no node with low, and has one with high
            middle = (low + high) // 2
            if check.node(with_skew(snapshot, pod, i, middle)) is None:
                low = middle
            else:
                high = middle
        yield Room(f"maxSkew {high} over {constraint.topology_key}", with_skew(snapshot, pod, i, high))


def _tolerations(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    """Yield a snapshot in which the pod tolerates what keeps it off a node that admits it otherwise."""
    pod = check.pod(snapshot)
    every = dict.fromkeys(taint for node in snapshot.nodes for taint in intolerable(pod, node.taints))
    if not every:
        return
    name = check.node(tolerating(snapshot, pod, list(every)))
    if name is not None:
        taints = intolerable(pod, snapshot.nodes[snapshot.node_index[name]].taints)
        if taints:
            words = "a toleration of " if len(taints) == 1 else "tolerations of "
            yield Room(words + ", ".join(map(taint_words, taints)), tolerating(snapshot, pod, taints))


def _combine(snapshot: Snapshot, pod: Pod, check: Check, found: list[Relaxation]) -> None:
    """Add combinations: rules that are dropped, with nothing else, or with room that is made beside them.

    All rules that can be are dropped first. Then each of them comes back as long as the pod keeps a node. Where that
    does not end in time, what is known to admit the pod is added all the same.
    """
    every = loosenings(snapshot, pod)
    for makes in _COMBINED:
        for make in makes:
            kept, best = list(every), _first(snapshot, every, check, make)
            if best is None:
                continue
            try:
                for loosening in every:
                    fewer = [one for one in kept if one is not loosening]
                    again = _first(snapshot, fewer, check, make)
                    if again is not None:
                        kept, best = fewer, again
                if make is _as_it_is or _first(snapshot, kept, check, _as_it_is) is None:
                    found.append(best)
            except Over:
                found.append(replace(best, minimal=len(best.changes) == 1))
                raise
        if found:
            return


_Make = Callable[[Snapshot, Check], Iterator[Room]]


def _first(snapshot: Snapshot, dropped: Sequence[Loosening], check: Check, make: _Make) -> Relaxation | None:
    """Return the first way to make room, once some rules are dropped, that admits the pod."""
    words = tuple(loosening.words for loosening in dropped)
    for room in make(_loose(snapshot, dropped), check):
        node = check.node(room.snapshot)
        if node is not None:
            changes = (*words, *(word for word in (room.words, room.also) if word))
            return Relaxation(changes, node, room.victims, room.snapshot)
    return None


def _loose(snapshot: Snapshot, dropped: Sequence[Loosening]) -> Snapshot:
    """Return a snapshot in which some rules do not hold."""
    for loosening in dropped:
        snapshot = loosening.apply(snapshot)
    return snapshot


def _refusing(snapshot: Snapshot, pod: Pod, check: Check) -> Sequence[str]:
    """Return what refuses the pod on the roomiest nodes, where no rule holds that can be dropped."""
    loose = _loose(snapshot, loosenings(snapshot, pod))
    found: dict[str, None] = {}
    for room in (*more_nodes(loose), *_larger(loose, check)):
        diagnosis = check.diagnosis(room.snapshot)
        new = int(np.flatnonzero(diagnosis.nodes == len(room.snapshot.nodes) - 1)[0])
        status = diagnosis.rejected or diagnosis.why(new)
        found[": ".join(filter(None, (status.plugin, ", ".join(status.reasons))))] = None
    return tuple(found)


def _as_it_is(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    del check
    yield Room("", snapshot)


def _evicting(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    return evictions(snapshot, check.pod(snapshot), check.framework(snapshot), check.go_on)


def _lowering(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    return smaller_requests(snapshot, check.pod(snapshot), check.framework(snapshot))


def _larger(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    return larger_nodes(snapshot, check.pod(snapshot), check.framework)


def _adding_and_lowering(snapshot: Snapshot, check: Check) -> Iterator[Room]:
    """Yield one more node of each kind, on which the pod requests no more than that has."""
    for added in more_nodes(snapshot):
        for lower in _lowering(added.snapshot, check):
            yield Room(added.words, lower.snapshot, also=lower.words)


_SINGLE: Mapping[str, _Make] = {
    "more nodes": _adding,
    "smaller requests": _lowering,
    "maxSkew": _skews,
    "tolerations": _tolerations,
    "cordons": _uncordoning,
    "other rules": _dropping,
    "evictions": _evicting,
}
"""Kinds of single changes, what takes longest last."""
COMBINED = "combinations"
_COMBINED: Sequence[Sequence[_Make]] = (
    (_as_it_is, _adding, _evicting, _lowering),
    (_larger, _adding_and_lowering),
)
"""What makes room beside rules that are dropped; what comes later is tried where nothing before it helps."""
