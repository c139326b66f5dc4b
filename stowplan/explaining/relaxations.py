"""What would admit a pod that no node admits; each proposal was checked by the filters on the changed snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.plans.cordons import uncordon
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.scenarios.rules import HARD

ADDED = 3
"""Pools of which one more node is proposed, at most."""
UNCORDONED = 20
"""Cordoned nodes that are tried one by one."""
SECONDS = 5.0
"""How long proposals are looked for."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Relaxations:
    """What was found, and what was not tried to the end.

    Parameters
    ----------
    untried
        Kinds of proposals that were left out, wholly or in part, because the time was over or a stop was asked for.
    interrupted
        Whether a stop was asked for.
    """

    found: Sequence[Relaxation] = ()
    untried: Sequence[str] = ()
    interrupted: bool = False


def relaxations(
    snapshot: Snapshot, profile: Profile, pod: Pod, *, stop: Stop | None = None, seconds: float = SECONDS
) -> Relaxations:
    """Return what admits an unscheduled pod: single changes, or, if none does, combinations that need all their parts.

    Parameters
    ----------
    profile
        Of the scheduler; its filters check every proposal on the changed snapshot.
    stop, seconds
        Asked each time before the filters are; a stop, or the end of the time, ends with what was found.
    """
    deadline = Deadline(seconds, stop=stop or Stop())
    check = _Check(own_profile(profile, pod), pod.key, deadline)
    found: list[Relaxation] = []
    untried = [*_SINGLE, COMBINED]
    try:
        for what, make in _SINGLE.items():
            _try(make(snapshot, check), check, found)
            untried.remove(what)
        if not found:
            for relaxation in _combined(snapshot, pod, check):
                found.append(relaxation)
    except _Over:
        return Relaxations(found, untried, deadline.stop.is_set())
    return Relaxations(found)


def _try(rooms: Iterator[Room], check: _Check, found: list[Relaxation]) -> None:
    """Add those of some changes that admit the pod to what was found."""
    added = 0
    for room in rooms:
        is_node = room.words.startswith("1 more")
        if (is_node and added == ADDED) or (node := check.node(room.snapshot)) is None:
            continue
        added += is_node
        if all(one.changes != (room.words,) for one in found):
            found.append(Relaxation((room.words,), node, room.victims, room.snapshot))


class _Over(Exception):
    """The time is over, or a stop was asked for."""


class _Check:
    """Asks the filters whether a pod has a node in some snapshot."""

    def __init__(self, profile: Profile, key: str, deadline: Deadline) -> None:
        self.profile = profile
        self.key = key
        self._deadline = deadline

    def go_on(self) -> None:
        """Raise if it is time to end."""
        if self._deadline.over:
            raise _Over

    def framework(self, snapshot: Snapshot) -> Framework:
        self.go_on()
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


def _adding(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
    del check
    return more_nodes(snapshot)


def _uncordoning(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
    del check
    for name in [node.name for node in snapshot.nodes if node.unschedulable][:UNCORDONED]:
        yield Room(f"uncordon {name}", uncordon(snapshot, [name]))


def _dropping(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
    for loosening in loosenings(snapshot, check.pod(snapshot)):
        if not loosening.words.startswith(("no hard spread", "uncordon", "tolerations")):
            yield Room(loosening.words, loosening.apply(snapshot))


def _skews(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
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


def _tolerations(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
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


def _combined(snapshot: Snapshot, pod: Pod, check: _Check) -> Iterator[Relaxation]:
    """Yield combinations: rules that are dropped, with nothing else, or with room that is made beside them.

    All rules that can be are dropped first. Then each of them comes back as long as the pod keeps a node.
    """
    every = loosenings(snapshot, pod)
    for make in (_as_it_is, _adding, _evicting, _lowering):
        kept, found = list(every), _first(snapshot, every, check, make)
        for loosening in every if found is not None else ():
            fewer = [one for one in kept if one is not loosening]
            again = _first(snapshot, fewer, check, make)
            if again is not None:
                kept, found = fewer, again
        if found is not None and (make is _as_it_is or _first(snapshot, kept, check, _as_it_is) is None):
            yield found


_Make = Callable[[Snapshot, _Check], Iterator[Room]]


def _first(snapshot: Snapshot, dropped: Sequence[Loosening], check: _Check, make: _Make) -> Relaxation | None:
    """Return the first way to make room, once some rules are dropped, that admits the pod."""
    loose = snapshot
    for loosening in dropped:
        loose = loosening.apply(loose)
    words = [loosening.words for loosening in dropped]
    for room in make(loose, check):
        node = check.node(room.snapshot)
        if node is not None:
            return Relaxation((*words, *([room.words] if room.words else [])), node, room.victims, room.snapshot)
    return None


def _as_it_is(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
    del check
    yield Room("", snapshot)


def _evicting(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
    return evictions(snapshot, check.pod(snapshot), check.framework(snapshot), check.go_on)


def _lowering(snapshot: Snapshot, check: _Check) -> Iterator[Room]:
    return smaller_requests(snapshot, check.pod(snapshot), check.framework(snapshot))


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
