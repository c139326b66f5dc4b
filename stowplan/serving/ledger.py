"""Who holds which token of a plan. Pure bookkeeping: no clock, no files, no network.

A token says that one replacement of an owner belongs on a node. The first pod that fits takes it, and holds it under
its uid from then on: it gets the same answer however often it asks. An extender is not told what became of a pod, so
what is known is what the scheduler asked last:

- the token's node was among the nodes in question: the scheduler takes it, and if it never asks about the pod again,
  the pod has landed there, and the token is used up;
- the node was not among them: if the pod is not asked about again for `TokenLedger.lease` seconds, it is gone or is
  elsewhere, and the token goes back.

Tokens of a wave are handed out once all of the waves before are held, until a wave is opened by request: from then on
the executor says which wave begins, since a token that is held does not say that its pod is ready, nor
that the room of the next wave is free.

What is handed out is written down as `LedgerRecord` first; a ledger is made again by replaying its records.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from stowplan.models.plan import TokenDocument
from stowplan.plans.replacements import group_of_token
from stowplan.serving.options import LEASE_SECONDS, PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Asker:
    """A pod that the scheduler asks about.

    Parameters
    ----------
    uid
        Its identity; ``namespace/name`` if the question has none.
    owner
        Uid of its controller, or empty.
    hashes
        What its template hash may be.
    created
        When it was created, in seconds since 1970; infinity if the question does not say.
    """

    uid: str
    namespace: str
    name: str
    owner: str = ""
    hashes: frozenset[str] = frozenset()
    created: float = math.inf


@dataclass(frozen=True, slots=True)
class Lease:
    """A token that a pod holds.

    Parameters
    ----------
    token
        Its number in the plan.
    granted, seen
        When the pod got it, and was last asked about; seconds since 1970.
    offered
        Whether the token's node was among those in question then.
    """

    uid: str
    pod: str
    token: int
    granted: float
    seen: float
    offered: bool


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """A change of the ledger, in the order of the changes.

    Parameters
    ----------
    change
        ``grant``, ``offer`` (the node of a lease came in sight or went out of it), ``release``, ``wave`` (opened),
        ``conduct`` (waves are opened by request from now on).
    why
        Of a release.
    """

    change: Literal["grant", "offer", "release", "wave", "conduct"]
    at: float
    uid: str = ""
    pod: str = ""
    token: int = -1
    offered: bool = False
    wave: int = 0
    why: str = ""


class TokenLedger:
    """The books of one plan.

    Parameters
    ----------
    lease
        Seconds without a request after which a pod whose node is not among the candidates loses its token.
    firm
        Numbers of the tokens whose pods may have no other node.
    patience
        Seconds after which such a pod, if its node is not in sight, loses its token although it is asked about, and
        gets no other; also how long a pod is held until the wave in which it has its turn.
    pending, placing
        Uids of the pods that have no node and are to get one, and the numbers of the tokens that are theirs.
    timeouts
        Seconds that each wave may take, by its number: as long after it was opened by request, its pods are steered
        although the plan has expired meanwhile, since they have been evicted.
    planned
        When the plan was made: pods without a token that are no newer had no node then, and get none by the plan.
    """

    def __init__(
        self,
        tokens: Sequence[TokenDocument],
        expires: float,
        lease: float = LEASE_SECONDS,
        firm: Collection[int] = (),
        patience: float = PATIENCE_SECONDS,
        pending: Collection[str] = (),
        placing: Collection[int] = (),
        timeouts: Mapping[int, float] = MappingProxyType({}),
        planned: float = -math.inf,
    ) -> None:
        self.tokens = tuple(tokens)
        self.expires = expires
        self.lease, self.patience = lease, patience
        self.firm = frozenset(firm)
        self.pending, self.placing = frozenset(pending), frozenset(placing)
        self.open = 1
        self.conducted = False
        self.timeouts = timeouts
        self.planned = planned
        self._opened = -math.inf
        self.leases: dict[str, Lease] = {}
        self._groups = [group_of_token(token) for token in self.tokens]
        self._holders: list[set[str]] = [set() for _ in self.tokens]
        self._tired: dict[str, str] = {}
        self._held_since: dict[str, float] = {}
        self._named: Mapping[tuple[str, str], list[int]] = defaultdict(list)
        self._owned: Mapping[tuple[str, str], list[int]] = defaultdict(list)
        for i, token in enumerate(self.tokens):
            if token.pod is not None:
                self._named[token.namespace, token.pod].append(i)
            else:
                self._owned[token.namespace, token.owner_uid].append(i)
        self._missing: dict[int, int] = defaultdict(int)
        for token in self.tokens:
            self._missing[token.wave] += token.count

    def ask(self, asker: Asker, nodes: Container[str], now: float) -> tuple[str | None, list[LedgerRecord]]:
        """Return the node a pod belongs on, if any, and what has to be written down before the answer is given."""
        if now >= self.expires and now >= self._opened + self.timeouts.get(self.open, 0.0):
            return None, []
        lease = self.leases.get(asker.uid)
        if lease is not None:
            return self._again(lease, nodes, now)
        if asker.uid in self._tired:
            return None, []
        records = self._advance(now)  # waves that only take pods away have no tokens
        choice = self._choose(asker, nodes)
        if choice is None:
            stale = self._reclaimable(asker, now)
            if stale is None:
                return None, records
            records.append(self._do(LedgerRecord("release", now, stale.uid, stale.pod, stale.token, why="handed on")))
            choice = stale.token
        target = self.tokens[choice].target
        pod = f"{asker.namespace}/{asker.name}"
        records.append(self._do(LedgerRecord("grant", now, asker.uid, pod, choice, target in nodes)))
        return target, records + self._advance(now)

    def turn(self, asker: Asker, now: float) -> int | None:
        """Return the wave in which a pending pod without a token has its turn, if it is not open yet.

        Until then the pod must go nowhere: what it takes is the room of others.
        """
        if now >= self.expires or asker.uid not in self.pending or asker.uid in self._tired:
            return None
        waves = [self.tokens[i].wave for i in self._matching(asker) if i in self.placing and self._free(i) > 0]
        if not waves or min(waves) <= self.open:
            return None
        since = self._held_since.setdefault(asker.uid, now)
        return min(waves) if now - since <= self.patience else None

    def kept_from(self, asker: Asker, now: float) -> set[str]:
        """Return the nodes that a pod without a token must not take, since the plan has their room for others.

        Those are the nodes of all tokens that are not used up, for a pod that waited for a node when the plan was made
        and that the plan leaves waiting: it is tried whenever a pod is evicted, as those are that the eviction is for.
        They are open to it again once no wave has been opened for as long as patience lasts.
        """
        if now >= self.expires or asker.created > self.planned or asker.uid in self._tired:
            return set()
        since = max(self._held_since.setdefault(asker.uid, now), self._opened)
        if now - since > self.patience:
            return set()
        held = {lease.token for lease in self.leases.values() if not self.landed(lease, now)}
        return {token.target for i, token in enumerate(self.tokens) if i in held or self._free(i) > 0}

    def is_firm(self, asker: Asker) -> bool:
        """Whether a pod that holds a token may have no other node."""
        return asker.uid in self.leases and self.leases[asker.uid].token in self.firm

    def open_wave(self, wave: int, now: float) -> list[LedgerRecord]:
        """Let tokens up to a wave be handed out, and no others until the next request."""
        records = [] if self.conducted else [self._do(LedgerRecord("conduct", now))]
        self._opened = now
        return [*records, *([self._do(LedgerRecord("wave", now, wave=wave))] if wave > self.open else [])]

    def sweep(self, now: float) -> list[LedgerRecord]:
        """Take back tokens of pods that no requests come for any more."""
        stale = [lease for lease in self.leases.values() if self._overdue(lease, now)]
        return [self._do(LedgerRecord("release", now, s.uid, s.pod, s.token, why="not asked about")) for s in stale]

    def replay(self, record: LedgerRecord) -> None:
        """Do again what was written down.

        Raises
        ------
        ValueError
            If it cannot follow on what is known.
        """
        known = record.uid in self.leases
        if record.change not in ("wave", "conduct") and known == (record.change == "grant"):
            raise ValueError(f"pod {record.pod or record.uid!r} {'has a token already' if known else 'has no token'}")
        if record.change == "grant" and not 0 <= record.token < len(self.tokens):
            raise ValueError(f"token {record.token} is not in the plan")
        if record.change == "grant" and self._free(record.token) <= 0:
            raise ValueError(f"token {record.token} is handed out more often than the plan has it")
        self._do(record)

    def touch(self, now: float) -> None:
        """Count the time without questions from now, as after a restart."""
        self.leases = {uid: replace(lease, seen=max(lease.seen, now)) for uid, lease in self.leases.items()}

    def landed(self, lease: Lease, now: float) -> bool:
        """Whether a lease is taken for used up."""
        return lease.offered and now - lease.seen > self.lease

    def counts(self, now: float) -> dict[tuple[int, str], int]:
        """Number of tokens by wave and state: ``free``, ``leased``, ``landed``."""
        found: dict[tuple[int, str], int] = defaultdict(int)
        for i, token in enumerate(self.tokens):
            found[token.wave, "free"] += self._free(i)
        for lease in self.leases.values():
            found[self.tokens[lease.token].wave, "landed" if self.landed(lease, now) else "leased"] += 1
        return dict(found)

    @property
    def _last(self) -> int:
        return max(self._missing, default=1)

    def _advance(self, now: float) -> list[LedgerRecord]:
        """Open the waves whose turn it is, unless the executor does."""
        records: list[LedgerRecord] = []
        while (
            not self.conducted
            and self.open < self._last
            and not any(self._missing[wave] for wave in range(1, self.open + 1))
        ):
            records.append(self._do(LedgerRecord("wave", now, wave=self.open + 1)))
        return records

    def _again(self, lease: Lease, nodes: Container[str], now: float) -> tuple[str | None, list[LedgerRecord]]:
        target = self.tokens[lease.token].target
        offered = target in nodes
        if not offered and lease.token in self.firm and now - lease.granted > self.patience:
            return None, [
                self._do(LedgerRecord("release", now, lease.uid, lease.pod, lease.token, why="out of patience"))
            ]
        if offered != lease.offered:
            return target, [self._do(LedgerRecord("offer", now, lease.uid, lease.pod, lease.token, offered))]
        self.leases[lease.uid] = replace(lease, seen=now)
        return target, []

    def _choose(self, asker: Asker, nodes: Container[str]) -> int | None:
        """Return the best free token: its node in sight, of an early wave, first in the plan.

        A pending pod takes one that is for pending pods, as long as there is any: the others belong to pods that are
        going to be evicted, and each wave is checked against where those are to go.
        """
        free = [i for i in self._matching(asker) if self._free(i) > 0]
        if asker.uid in self.pending and not self.placing.isdisjoint(free):
            free = [i for i in free if i in self.placing]
        is_open = [i for i in free if self.tokens[i].wave <= self.open]
        return min(is_open, key=lambda i: self._worth(i, asker, nodes), default=None)

    def _worth(self, token: int, asker: Asker, nodes: Container[str]) -> tuple[bool, bool, int, int]:
        found = self.tokens[token]
        for_others = token in self.placing and asker.uid not in self.pending
        return found.target not in nodes, for_others, found.wave, token

    def _matching(self, asker: Asker) -> Iterator[int]:
        named = self._named.get((asker.namespace, asker.name), ())
        owned = self._owned.get((asker.namespace, asker.owner), ()) if asker.owner else ()
        for i in (*named, *owned):
            if self._groups[i].admits(asker.namespace, asker.name, asker.owner, asker.hashes):
                yield i

    def _fitting(self, asker: Asker) -> Iterator[int]:
        return (i for i in self._matching(asker) if self.tokens[i].wave <= self.open)

    def _reclaimable(self, asker: Asker, now: float) -> Lease | None:
        """Return a lease that a new pod may take over: the latest of a former pod of its name, or an overdue one."""
        held = [self.leases[uid] for token in self._fitting(asker) for uid in sorted(self._holders[token])]
        pod = f"{asker.namespace}/{asker.name}"
        same = [lease for lease in held if lease.pod == pod]
        if same:
            return max(same, key=lambda lease: (self.tokens[lease.token].wave, lease.granted))
        return next((lease for lease in held if self._overdue(lease, now)), None)

    def _overdue(self, lease: Lease, now: float) -> bool:
        return not lease.offered and now - lease.seen > self.lease

    def _free(self, token: int) -> int:
        return self.tokens[token].count - len(self._holders[token])

    def _do(self, record: LedgerRecord) -> LedgerRecord:
        match record.change:
            case "grant":
                self.leases[record.uid] = Lease(
                    record.uid, record.pod, record.token, record.at, record.at, record.offered
                )
                self._holders[record.token].add(record.uid)
                self._missing[self.tokens[record.token].wave] -= 1
            case "offer":
                lease = self.leases[record.uid]
                self.leases[record.uid] = replace(lease, offered=record.offered, seen=record.at)
            case "release":
                token = self.leases.pop(record.uid).token
                self._holders[token].remove(record.uid)
                self._missing[self.tokens[token].wave] += 1
                if record.why == "out of patience":
                    self._tired[record.uid] = record.pod
            case "conduct":
                self.conducted = True
                self._opened = record.at
            case "wave":
                self.open = max(self.open, record.wave)
                if self.conducted:
                    self._opened = record.at
        return record


def replayed(ledger: TokenLedger, records: Iterable[LedgerRecord]) -> TokenLedger:
    """Replay records on a new ledger, and return it; see `TokenLedger.replay`."""
    for record in records:
        ledger.replay(record)
    return ledger
