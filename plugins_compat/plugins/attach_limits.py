"""Base of filters that limit how many different volumes a node attaches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import NO_LIMIT, Attachments, Distinct, Origin, Rule
from stowplan.plugins_compat.framework.counts import Multiset
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.plugins.volumes import claims_of, not_found, not_owned

Attachment = tuple[str, str]
"""What limits the volume (a CSI driver, or a cloud), and what names it there."""

TOO_MANY = "node(s) exceed max volume count"


class AttachLimits(Plugin):
    """A filter that counts the different volumes on a node; as rules it is a `Distinct` for each limit.

    Nodes may differ in what they see of a pod: those of one *sort* see the same.
    """

    one_reason_a_code = True
    reach = "node"
    full_nodes_refuse: ClassVar[bool]
    """Whether a node beyond its limit refuses even a pod whose volumes it has already."""

    def sorts(self) -> Sequence[Hashable]:
        """``[n]`` what the answer of `attachments` depends on."""
        raise NotImplementedError

    def attachments(self, signature: Signature, sort: Hashable) -> Iterable[Attachment]:
        """Yield what a pod of a signature attaches to a node of a sort."""
        raise NotImplementedError

    def limits(self, limited: str) -> Ints:
        """``[n]`` how many volumes of a driver or cloud fit, `NO_LIMIT` where none is stated."""
        raise NotImplementedError

    # -- the framework's face ---------------------------------------------------------------------------------

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod attaches nothing to any sort of node, and every claim of it is there."""
        return not self.minds(cycle.signature)

    def minds(self, signature: Signature) -> bool:
        """Whether a pod attaches something to some sort of node, or brings a claim that is not its own."""
        attaches = any(self._attachments(signature, sort) for sort in self._members)
        return attaches or bool(self._unusable(signature))

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes where the pod's volumes do not fit; a volume that is there already is free."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        if self._missing(cycle.signature):
            codes[:] = Code.UNRESOLVABLE if self.release.missing_claim_is_unresolvable else Code.ERROR
            return codes
        if self._unusable(cycle.signature):
            codes[:] = Code.ERROR
            return codes
        for sort, members in self._members.items():
            wanted = self._attachments(cycle.signature, sort)
            if not wanted:
                continue
            mine = np.flatnonzero(members[nodes])
            for limited in {limited for limited, _ in wanted}:
                codes[mine[self._over(limited, wanted, nodes[mine])]] = Code.UNSCHEDULABLE
            if usurped := self._foreign_multiset().holders:
                # Upstream counts the volumes of all pods there, and fails on a claim that is not its pod's own.
                failing = np.isin(nodes[mine], [node for there in usurped.values() for node in there])
                codes[mine[failing & self._counts(nodes[mine])]] = Code.ERROR
        return codes

    def _over(self, limited: str, wanted: Sequence[Attachment], nodes: Ints) -> Bools:
        """``[nodes]`` where these volumes would exceed the limit."""
        multiset = self._multiset()
        there = np.zeros(self.state.size, dtype=np.int64)
        mine = [attachment for attachment in wanted if attachment[0] == limited]
        for attachment in mine:
            there[list(multiset.holders[attachment])] += 1
        new = len(mine) - there[nodes]
        over: Bools = multiset.distinct[limited][nodes] + new > self._limits(limited)[nodes]
        return over if self.full_nodes_refuse else over & (new > 0)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        if reason := self._unusable(cycle.signature):
            return (reason,)
        here = np.array([node], dtype=np.int64)
        if self.filter(cycle, here)[0] != Code.ERROR:
            return (TOO_MANY,)
        neighbors = (occupant.signature for occupant in self.state.pod_index.on(node))
        return next(((reason,) for signature in neighbors if (reason := self._foreign(signature))), (TOO_MANY,))

    def _unusable(self, signature: Signature) -> str:
        """Say which of the pod's own claims cannot be used; empty if all can."""
        key = self._missing(signature)
        return f"looking up PVC {key}: {not_found(key)}" if key else self._foreign(signature)

    def _foreign(self, signature: Signature) -> str:
        return (
            self.state.memo(("claim of another pod", signature), lambda: not_owned(self.state.snapshot, signature))
            if signature.ephemeral
            else ""
        )

    def _foreign_multiset(self) -> Multiset[str]:
        """Return what pods bring to nodes in claims that are not their own."""
        return self.state.multiset(
            "claims of other pods",
            lambda signature, node: (reason,) if (reason := self._foreign(signature)) else (),
            lambda reason: None,
        )

    def _counts(self, nodes: Ints) -> Bools:
        """``[nodes]`` where upstream looks at the volumes of the pods that are there."""
        return np.ones(len(nodes), dtype=np.bool_)

    def _missing(self, signature: Signature) -> str:
        return next((key for key, claim in claims_of(self.state.snapshot, signature) if claim is None), "")

    def attaching(self, signature: Signature) -> Iterator[tuple[Bools, Ints, Ints]]:
        """Yield, for each limit that a pod's volumes meet, what it makes of every node.

        Returns
        -------
        Iterator of (``[n]`` where the limit holds, ``[n]`` new volumes, ``[n]`` volumes that could still be attached)
        """
        for sort, members in self._members.items():
            wanted = self._attachments(signature, sort)
            for limited in dict.fromkeys(limited for limited, _ in wanted):
                mine = [attachment for attachment in wanted if attachment[0] == limited]
                there = np.zeros(self.state.size, dtype=np.int64)
                for attachment in mine:
                    there[list(self._multiset().holders[attachment])] += 1
                limits = self._limits(limited)
                room = limits - self._multiset().distinct[limited]
                yield members & (limits < NO_LIMIT), len(mine) - there, room

    # -- the optimizer's face ---------------------------------------------------------------------------------

    def rules(self, view: View) -> Iterable[Rule]:
        """One `Distinct` for each limit and sort of node."""
        for sort, members in self._members.items():
            users: Counter[Attachment] = Counter()
            for signature, count in zip(view.signatures, view.counts.tolist(), strict=True):
                for attachment in self._attachments(signature, sort):
                    users[attachment] += count
            for limited in sorted({limited for limited, _ in users}):
                limits = np.where(members, self._limits(limited), NO_LIMIT)
                if (limits < NO_LIMIT).any():
                    yield self._distinct(view, limited, sort, limits, users)

    def _distinct(self, view: View, limited: str, sort: Hashable, limits: Ints, users: Counter[Attachment]) -> Rule:
        """Return the rule of one limit; what a single pod uses and no fixed one needs no name, only a number."""
        held = {
            thing: [node for node in nodes if limits[node] < NO_LIMIT]
            for thing, nodes in self._multiset().holders.items()
            if thing[0] == limited
        }
        shared = sorted(t for t, count in users.items() if t[0] == limited and (count > 1 or held.get(t)))
        index = {thing: i for i, thing in enumerate(shared)}
        own, bundle = [], []
        bundles: dict[tuple[int, ...], int] = {}
        for signature in view.signatures:
            things = [thing for thing in self._attachments(signature, sort) if thing[0] == limited]
            own.append(sum(thing not in index for thing in things))
            mine = tuple(sorted(index[thing] for thing in things if thing in index))
            bundle.append(bundles.setdefault(mine, len(bundles)) if mine else -1)
        used_by_fixed = np.zeros((len(shared), self.state.size), dtype=np.bool_)
        left = limits.copy()
        for thing, nodes in held.items():
            if thing in index:
                used_by_fixed[index[thing], nodes] = True
            else:
                left[nodes] -= 1
        return Distinct(
            Origin(self.name, limited),
            np.array(own, dtype=np.int64),
            np.array(bundle, dtype=np.int64),
            tuple(np.array(mine, dtype=np.int64) for mine in bundles),
            left,
            used_by_fixed,
        )

    def misses_claims(self, signature: Signature) -> bool:
        """Whether the filter refuses a signature everywhere, since a claim of it does not exist."""
        return bool(self._missing(signature))

    def attachments_on(self, kinds: Sequence[Signature]) -> Attachments | None:
        """Return what the filter reads of pods of some signatures, or ``None`` if claims of other pods fail it."""
        if any(map(self._foreign, kinds)) or self._foreign_multiset().holders:
            return None
        sorts = {sort: i for i, sort in enumerate(self._members)}
        wanted = [[self._attachments(kind, sort) for kind in kinds] for sort in sorts]
        things = {thing: i for i, thing in enumerate(sorted({t for row in wanted for some in row for t in some}))}
        limited = {name: i for i, name in enumerate(dict.fromkeys(name for name, _ in things))}
        held = np.zeros((len(things), self.state.size), dtype=np.int64)
        for thing, i in things.items():
            for node, pods in self._multiset().holders[thing].items():
                held[i, node] = pods
        shape = len(limited), self.state.size
        return Attachments(
            np.array([sorts[sort] for sort in self._sorts], dtype=np.int64),
            [[tuple(things[thing] for thing in some) for some in row] for row in wanted],
            np.array([limited[name] for name, _ in things], dtype=np.int64),
            held,
            np.array([self._multiset().distinct[name] for name in limited], dtype=np.int64).reshape(shape),
            np.array([self._limits(name) for name in limited], dtype=np.int64).reshape(shape),
            self.full_nodes_refuse,
        )

    # -- what both share --------------------------------------------------------------------------------------

    @cached_property
    def _sorts(self) -> Sequence[Hashable]:
        return self.state.memo((self.name, "sorts"), self.sorts)

    @cached_property
    def _members(self) -> dict[Hashable, Bools]:
        """``[n]`` the nodes of each sort."""
        members: defaultdict[Hashable, Bools] = defaultdict(lambda: np.zeros(self.state.size, dtype=np.bool_))
        for node, sort in enumerate(self._sorts):
            members[sort][node] = True
        return dict(members)

    def _multiset(self) -> Multiset[Attachment]:
        return self.state.multiset(self.name, self._brought, lambda attachment: attachment[0])

    def _brought(self, signature: Signature, node: int) -> tuple[Attachment, ...]:
        return self._attachments(signature, self._sorts[node])

    def _attachments(self, signature: Signature, sort: Hashable) -> tuple[Attachment, ...]:
        return self.state.memo(
            (self.name, signature, sort), lambda: tuple(sorted(set(self.attachments(signature, sort))))
        )

    def _limits(self, limited: str) -> Ints:
        return self.state.memo((self.name, "limits", limited), lambda: self.limits(limited))
