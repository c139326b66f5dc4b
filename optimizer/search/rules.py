"""Rules, followed while pods come and go one at a time.

A follower answers three questions about its rule: where could one more pod of a class go, does the rule hold now,
and by how much is it exceeded. The first answer may be optimistic where rules depend on company; the second is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import assert_never

import numpy as np

from models.arrays import Bools, Ints
from models.bin_packing import pack
from models.problem import (
    SEVERITY,
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    Held,
    MoveBudget,
    Occupy,
    Placement,
    Problem,
    Repel,
    Rule,
    Spread,
    Topology,
)
from optimizer.evaluate.excess import roles, shares


class Follower:
    """Base of all followers.

    Parameters
    ----------
    before
        ``[places]`` excess at the start.

    Attributes
    ----------
    classes
        Classes that the rule speaks of.
    fragile
        Whether a pod that leaves can break the rule for others.
    """

    fragile = False

    def __init__(self, before: Ints, classes: Iterable[int]) -> None:
        self.before = before
        self.classes = tuple(classes)
        self.was_broken = bool(before.any())
        self.arrived = np.zeros_like(before)

    def room_for(self, c: int) -> Bools | None:
        """``[n]`` nodes that could take one more pod of a class; ``None`` means all."""
        raise NotImplementedError

    def shift(self, c: int, n: int, k: int) -> None:
        """Take note that ``k`` pods of a class came to a node, or left it."""
        raise NotImplementedError

    def place(self, c: int, n: int) -> int:
        """Return the place at which a pod of a class on a node is bound by the rule, or -1."""
        raise NotImplementedError

    def arrive(self, c: int, n: int, k: int) -> None:
        """Take note that the pods that stand on a node and did not at the start became ``k`` more."""
        place = self.place(c, n)
        if place >= 0:
            self.arrived[place] += k

    def excess(self) -> Ints:
        """``[places]`` what exceeds the rule now."""
        raise NotImplementedError

    def weighted(self) -> int:
        """Return the excess, each unit at its severity."""
        return int(self.excess().sum()) * SEVERITY

    def holds(self) -> bool:
        """Whether no place is exceeded more than at the start, and none that is has anybody new."""
        now = self.excess()
        if not self.was_broken:
            return not now.any()
        return bool(np.all(now <= self.before) and not np.any((now > 0) & (self.arrived > 0)))


def follow(rule: Rule, problem: Problem, before: Ints) -> Follower | None:
    """Return the follower of a rule on empty nodes, or ``None`` for rules that the state itself keeps."""
    match rule:
        case Allow() | MoveBudget():
            return None
        case Capacity():
            return FollowCapacity(rule, problem, before)
        case AtMost():
            return FollowAtMost(rule, before)
        case Repel():
            return FollowRepel(rule, before)
        case Attract():
            return FollowAttract(rule, before)
        case Spread():
            return FollowSpread(rule, before)
        case Occupy():
            return FollowOccupy(rule, before)
        case Distinct():
            return FollowDistinct(rule, before)
        case Devices():
            return FollowDevices(rule, before)
        case _:
            assert_never(rule)


class FollowCapacity(Follower):
    """Loads by node."""

    def __init__(self, rule: Capacity, problem: Problem, before: Ints) -> None:
        super().__init__(before, np.flatnonzero(rule.demand).tolist())
        self.fragile = bool((rule.demand < 0).any())
        self.demand = rule.demand.tolist()
        self.room = np.maximum(0, rule.free)
        self.severity = rule.severity
        self.load = np.zeros(len(rule.free), dtype=np.int64)
        self.start: dict[tuple[int, int], int] = {}
        self.here: dict[tuple[int, int], int] = {}
        if rule.held_on_source:
            self.start = problem.start.counts()
            for (c, n), k in self.start.items():
                self.load[n] += self.demand[c] * k

    def room_for(self, c: int) -> Bools:
        fits: Bools = self.load + self.demand[c] <= self.room
        return fits

    def shift(self, c: int, n: int, k: int) -> None:
        if self.start:
            # What started here is charged whether it is here or not; only what comes on top is added.
            now = self.here.get((c, n), 0)
            self.here[c, n] = now + k
            base = self.start.get((c, n), 0)
            k = max(0, now + k - base) - max(0, now - base)
        self.load[n] += self.demand[c] * k

    def place(self, c: int, n: int) -> int:
        return n if self.demand[c] > 0 else -1

    def excess(self) -> Ints:
        over: Ints = np.maximum(0, self.load - self.room)
        return over

    def weighted(self) -> int:
        return int((self.excess() * self.severity).sum())


class FollowAtMost(Follower):
    """Counts by domain."""

    def __init__(self, rule: AtMost, before: Ints) -> None:
        super().__init__(before, rule.group.tolist())
        self.domain = rule.topology.domain
        self.limit = rule.limit
        self.count = rule.held.copy()

    def room_for(self, c: int) -> Bools:
        return _spread_out(self.count < self.limit, self.domain)

    def shift(self, c: int, n: int, k: int) -> None:
        if self.domain[n] >= 0:
            self.count[self.domain[n]] += k

    def place(self, c: int, n: int) -> int:
        return int(self.domain[n])

    def excess(self) -> Ints:
        over: Ints = np.maximum(0, self.count - self.limit)
        return over


class _Roles:
    """Counts of seekers and targets by domain, and each class's part in them."""

    def __init__(self, seekers: Ints, targets: Ints) -> None:
        self.of: dict[int, int] = {}
        for role, classes in enumerate(roles(seekers, targets)):
            self.of.update(dict.fromkeys(classes.tolist(), role))


class FollowRepel(Follower):
    """Counts by domain of both, seekers only, targets only."""

    def __init__(self, rule: Repel, before: Ints) -> None:
        super().__init__(before, np.union1d(rule.seekers, rule.targets).tolist())
        self.domain = rule.topology.domain
        self.role = _Roles(rule.seekers, rule.targets).of
        held: Held = rule.held
        self.count = np.array([rule.topology.total(h) for h in (held.both, held.seekers, held.targets)])

    def room_for(self, c: int) -> Bools:
        a, b, t = self.count
        clash = (a + b + t, a + t, a + b)[self.role[c]]
        return _spread_out(clash == 0, self.domain)

    def shift(self, c: int, n: int, k: int) -> None:
        if self.domain[n] >= 0:
            self.count[self.role[c], self.domain[n]] += k

    def place(self, c: int, n: int) -> int:
        return int(self.domain[n])

    def excess(self) -> Ints:
        a, b, t = self.count
        clash = (a >= 2) | ((a >= 1) & (b + t >= 1)) | ((b >= 1) & (t >= 1))
        pods: Ints = np.where(clash, a + b + t, 0)
        return pods


class FollowAttract(Follower):
    """Company by domain, for every topology, and seekers by node."""

    fragile = True

    def __init__(self, rule: Attract, before: Ints) -> None:
        super().__init__(before, np.union1d(rule.seekers, rule.targets).tolist())
        self.topologies = rule.topologies
        self.role = _Roles(rule.seekers, rule.targets).of
        self.both = rule.held.both.copy()
        self.seekers = rule.held.seekers.copy()
        company = rule.held.both + rule.held.targets
        self.company = [topology.total(company) for topology in rule.topologies]
        self.covered = np.any([topology.domain >= 0 for topology in rule.topologies], axis=0)
        self.total = int(company[self.covered].sum())

    def room_for(self, c: int) -> Bools | None:
        role = self.role[c]
        near = np.ones(len(self.covered), dtype=np.bool_)
        for topology, company in zip(self.topologies, self.company, strict=True):
            near &= _inside(company >= 1, topology)
        if self.total == 1 and role != 1:
            lonely = np.flatnonzero(self.both > 0)
            if len(lonely):  # it was excused as the first of its kind; whoever joins must keep it company
                together: Bools = self._with(int(lonely[0])) | ~self.covered
                return together
        if role == 2:
            return None
        if role == 0 and self.total == 0:
            anywhere: Bools = self.covered
            return anywhere
        return near

    def _with(self, n: int) -> Bools:
        same = np.ones(len(self.covered), dtype=np.bool_)
        for topology in self.topologies:
            same &= topology.domain == topology.domain[n]
        return same

    def shift(self, c: int, n: int, k: int) -> None:
        role = self.role[c]
        if role == 0:
            self.both[n] += k
        elif role == 1:
            self.seekers[n] += k
        if role != 1:
            for topology, company in zip(self.topologies, self.company, strict=True):
                if topology.domain[n] >= 0:
                    company[topology.domain[n]] += k
            if self.covered[n]:
                self.total += k

    def place(self, c: int, n: int) -> int:
        return (n, len(self.covered) + n, -1)[self.role[c]]

    def excess(self) -> Ints:
        near_one = np.ones(len(self.covered), dtype=np.bool_)
        near_two = near_one.copy()
        for topology, company in zip(self.topologies, self.company, strict=True):
            near_one &= _inside(company >= 1, topology)
            near_two &= _inside(company >= 2, topology)
        alone = np.zeros_like(self.both) if self.total <= 1 else np.where(near_two, 0, self.both)
        return np.concatenate([alone, np.where(near_one, 0, self.seekers)])


class FollowSpread(Follower):
    """Counts and seekers by domain."""

    fragile = True

    def __init__(self, rule: Spread, before: Ints) -> None:
        super().__init__(before, np.union1d(rule.seekers, rule.counted).tolist())
        self.rule = rule
        self.domain = rule.topology.domain
        self.seekers = frozenset(rule.seekers.tolist())
        self.counted = frozenset(rule.counted.tolist())
        self.count = rule.held_counted.copy()
        self.bound = rule.held_seekers.copy()

    @property
    def least(self) -> int:
        """The smallest count of all domains."""
        return 0 if self.rule.floor_is_zero or not len(self.count) else int(self.count.min())

    def room_for(self, c: int) -> Bools:
        even = self.count + (c in self.counted) - self.least <= self.rule.max_skew
        if c in self.seekers:
            return _inside(even, self.rule.topology)
        return _spread_out(even | (self.bound == 0), self.domain)

    def shift(self, c: int, n: int, k: int) -> None:
        d = self.domain[n]
        if d >= 0:
            if c in self.counted:
                self.count[d] += k
            if c in self.seekers:
                self.bound[d] += k

    def place(self, c: int, n: int) -> int:
        return int(self.domain[n]) if c in self.seekers else -1

    def excess(self) -> Ints:
        over: Ints = np.where(self.bound > 0, np.maximum(0, self.count - self.least - self.rule.max_skew), 0)
        return over


class FollowOccupy(Follower):
    """Counts by domain."""

    fragile = True

    def __init__(self, rule: Occupy, before: Ints) -> None:
        super().__init__(before, rule.group.tolist())
        self.domain = rule.topology.domain
        self.at_least = rule.at_least
        self.count = rule.held.copy()

    def room_for(self, c: int) -> None:
        return None

    def shift(self, c: int, n: int, k: int) -> None:
        if self.domain[n] >= 0:
            self.count[self.domain[n]] += k

    def place(self, c: int, n: int) -> int:
        return -1

    def excess(self) -> Ints:
        return np.array([max(0, self.at_least - int((self.count > 0).sum()))], dtype=np.int64)


class FollowDistinct(Follower):
    """Own things by node, and users of each shared thing by node."""

    def __init__(self, rule: Distinct, before: Ints) -> None:
        super().__init__(before, np.flatnonzero((rule.own > 0) | (rule.bundle >= 0)).tolist())
        self.own = rule.own.tolist()
        self.things = {c: rule.bundles[rule.bundle[c]] for c in self.classes if rule.bundle[c] >= 0}
        self.room = np.maximum(0, rule.limit)
        self.users = rule.held.astype(np.int64)
        self.used = self.users.sum(axis=0)

    def room_for(self, c: int) -> Bools:
        new = self.own[c]
        if c in self.things:
            new = new + (self.users[self.things[c]] == 0).sum(axis=0)
        fits: Bools = self.used + new <= self.room
        return fits

    def shift(self, c: int, n: int, k: int) -> None:
        self.used[n] += self.own[c] * k
        if c in self.things:
            column = self.users[self.things[c], n]
            self.used[n] += int(((column + k > 0).astype(np.int64) - (column > 0)).sum())
            self.users[self.things[c], n] = column + k

    def place(self, c: int, n: int) -> int:
        return n

    def excess(self) -> Ints:
        over: Ints = np.maximum(0, self.used - self.room)
        return over


class FollowDevices(Follower):
    """Whole devices and shares by node, and which demands there is room for."""

    def __init__(self, rule: Devices, before: Ints) -> None:
        super().__init__(before, rule.asking.tolist())
        self.rule = rule
        demands, self.kind = np.unique(np.stack([rule.whole, rule.part]), axis=1, return_inverse=True)
        self.demands: list[tuple[int, int]] = [(int(whole), int(part)) for whole, part in demands.T]
        self.whole = rule.held_whole.copy()
        held = shares(rule, Placement.of([]))
        self.parts = [Counter(held.get(n, ())) for n in range(len(rule.count))]
        self.over = np.zeros_like(rule.count)
        self.fits = np.zeros((len(self.demands), len(rule.count)), dtype=np.bool_)
        for n in range(len(rule.count)):
            self._look_at(n)

    def _short(self, n: int, whole: int = 0, part: int = 0) -> int:
        parts = self.parts[n] + Counter([part] if part else [])
        bins, _ = pack(tuple(sorted(parts.elements(), reverse=True)), self.rule.size)
        return max(0, int(self.whole[n]) + whole + bins - int(self.rule.count[n]))

    def _look_at(self, n: int) -> None:
        self.over[n] = self._short(n)
        self.fits[:, n] = [not self._short(n, whole, part) for whole, part in self.demands]

    def room_for(self, c: int) -> Bools:
        fits: Bools = self.fits[self.kind[c]]
        return fits

    def shift(self, c: int, n: int, k: int) -> None:
        self.whole[n] += self.rule.whole[c] * k
        if self.rule.part[c]:
            self.parts[n][int(self.rule.part[c])] += k
        self._look_at(n)

    def place(self, c: int, n: int) -> int:
        return n

    def excess(self) -> Ints:
        return self.over


def _spread_out(good: Bools, domain: Ints) -> Bools:
    """``[n]`` nodes in a good domain, or in none."""
    if not len(good):
        return np.ones(len(domain), dtype=np.bool_)
    nodes: Bools = good[domain] | (domain < 0)
    return nodes


def _inside(good: Bools, topology: Topology) -> Bools:
    """``[n]`` nodes in a good domain."""
    if not len(good):
        return np.zeros(len(topology.domain), dtype=np.bool_)
    nodes: Bools = good[topology.domain] & (topology.domain >= 0)
    return nodes
