"""What would admit a pod that no node admits; each proposal was checked by the filters on the changed snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stowplan.explaining.loosening import (
    Loosening,
    intolerable,
    loosenings,
    taint_words,
    tolerating,
    with_skew,
)
from stowplan.explaining.making_room import Room, evictions, more_nodes, smaller_requests
from stowplan.explaining.node_results import own_profile
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plans.cordons import uncordon
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.scenarios.rules import HARD

ADDED = 3
"""Pools of which one more node is proposed, at most."""
UNCORDONED = 20
"""Cordoned nodes that are tried one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """Changes after which kube-scheduler's filters admit a pod; without any one of them, they do not.

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
    """

    changes: Sequence[str]
    node: str
    victims: Sequence[str]
    snapshot: Snapshot


def relaxations(
    snapshot: Snapshot, profile: Profile, pod: Pod, *, stopped: Callable[[], bool] = lambda: False
) -> list[Relaxation]:
    """Return what admits an unscheduled pod: single changes, or, if none does, combinations that need all their parts.

    Parameters
    ----------
    profile
        Of the scheduler; its filters check every proposal on the changed snapshot.
    stopped
        Asked before each proposal; ``True`` ends with what was found.
    """
    check = _Check(own_profile(profile, pod), pod.key)
    found: list[Relaxation] = []
    added = 0
    for room in _single(snapshot, pod, check):
        if stopped():
            return found
        is_node = room.words.startswith("1 more")
        if (is_node and added == ADDED) or (node := check.node(room.snapshot)) is None:
            continue
        added += is_node
        if all(one.changes != (room.words,) for one in found):
            found.append(Relaxation((room.words,), node, room.victims, room.snapshot))
    return found or list(_combined(snapshot, pod, check, stopped))


class _Check:
    """Asks the filters whether a pod has a node in some snapshot."""

    def __init__(self, profile: Profile, key: str) -> None:
        self.profile = profile
        self.key = key

    def framework(self, snapshot: Snapshot) -> Framework:
        return populated(snapshot, self.profile, snapshot.assignment)

    def pod(self, snapshot: Snapshot) -> Pod:
        return next(pod for pod in snapshot.pods if pod.key == self.key)

    def node(self, snapshot: Snapshot) -> str | None:
        """Return the first node that admits the pod."""
        framework = self.framework(snapshot)
        diagnosis = framework.run_filters(framework.cycle(self.pod(snapshot)))
        if diagnosis.rejected is not None or not len(diagnosis.feasible):
            return None
        return framework.state.nodes[int(diagnosis.feasible[0])].name


def _single(snapshot: Snapshot, pod: Pod, check: _Check) -> Iterator[Room]:
    yield from _making_room(snapshot, check)
    yield from _skews(snapshot, pod, check)
    yield from _tolerations(snapshot, pod, check)
    for name in [node.name for node in snapshot.nodes if node.unschedulable][:UNCORDONED]:
        yield Room(f"uncordon {name}", uncordon(snapshot, [name]))
    for loosening in loosenings(snapshot, pod):
        if not loosening.words.startswith(("no hard spread", "uncordon", "tolerations")):
            yield Room(loosening.words, loosening.apply(snapshot))


def _making_room(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
    pod, framework = check.pod(snapshot), check.framework(snapshot)
    yield from more_nodes(snapshot)
    yield from evictions(snapshot, pod, framework)
    yield from smaller_requests(snapshot, pod, framework)


def _skews(snapshot: Snapshot, pod: Pod, check: _Check) -> Iterator[Room]:
    """Yield, for each hard spread constraint, the smallest ``maxSkew`` with which the pod has a node."""
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


def _tolerations(snapshot: Snapshot, pod: Pod, check: _Check) -> Iterator[Room]:
    """Yield a snapshot in which the pod tolerates what keeps it off a node that admits it otherwise."""
    every = dict.fromkeys(taint for node in snapshot.nodes for taint in intolerable(pod, node.taints))
    if not every:
        return
    name = check.node(tolerating(snapshot, pod, list(every)))
    if name is not None:
        taints = intolerable(pod, snapshot.nodes[snapshot.node_index[name]].taints)
        if taints:
            words = "a toleration of " if len(taints) == 1 else "tolerations of "
            yield Room(words + ", ".join(map(taint_words, taints)), tolerating(snapshot, pod, taints))


def _combined(snapshot: Snapshot, pod: Pod, check: _Check, stopped: Callable[[], bool]) -> Iterator[Relaxation]:
    """Yield combinations: rules that are dropped, with nothing else, or with room that is made beside them.

    All rules that can be are dropped first. Then each of them comes back as long as the pod keeps a node.
    """
    every = loosenings(snapshot, pod)
    for make in (_as_it_is, more_nodes, _evicting, _lowering):
        if stopped():
            return
        kept, found = list(every), _first(snapshot, every, check, make)
        for loosening in every if found is not None else ():
            fewer = [one for one in kept if one is not loosening]
            again = _first(snapshot, fewer, check, make)
            if again is not None:
                kept, found = fewer, again
        if found is not None and (make is _as_it_is or _first(snapshot, kept, check, _as_it_is) is None):
            yield found


_Make = Callable[..., Iterator[Room]]


def _first(snapshot: Snapshot, dropped: Sequence[Loosening], check: _Check, make: _Make) -> Relaxation | None:
    """Return the first way to make room, once some rules are dropped, that admits the pod."""
    loose = snapshot
    for loosening in dropped:
        loose = loosening.apply(loose)
    words = [loosening.words for loosening in dropped]
    rooms = make(loose) if make in (more_nodes, _as_it_is) else make(loose, check)
    for room in rooms:
        node = check.node(room.snapshot)
        if node is not None:
            return Relaxation((*words, *([room.words] if room.words else [])), node, room.victims, room.snapshot)
    return None


def _as_it_is(snapshot: Snapshot) -> Iterator[Room]:
    yield Room("", snapshot)


def _evicting(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
    return evictions(snapshot, check.pod(snapshot), check.framework(snapshot))


def _lowering(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
    return smaller_requests(snapshot, check.pod(snapshot), check.framework(snapshot))
