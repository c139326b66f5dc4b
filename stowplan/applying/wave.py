"""One wave: evict its pods, wait until they are gone and their replacements are ready, look where those are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from stowplan.applying.dropped import not_wanted, of_owner, rolled_out
from stowplan.applying.eviction import Evictor
from stowplan.applying.journal import now
from stowplan.applying.landing import Match, match
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ObservedObject, seen_pods
from stowplan.applying.options import ApplyOptions, Expired, Guard, Halt, Obsolete
from stowplan.applying.records import DroppedRecord, LandedRecord, WaveEndRecord
from stowplan.applying.tolerance import LandingTolerance, StrayPod, landed_elsewhere
from stowplan.cluster.kubectl import ClusterError, Kubectl
from stowplan.models.plan import MoveDocument, WaveDocument
from stowplan.plans.creations import is_to_be_created, manifest_of

TELL_AFTER = 5.0
"""Seconds after which it is said again for which pods a wave waits, and why."""

HELD = 330.0
"""Seconds that a pod which a server held until its wave may have no node: if nothing else happens in the cluster,
kube-scheduler tries what it found no node for again after five minutes."""

SURE = 2
"""How often a replacement must be seen on another node than planned before it counts as landed there."""


@dataclass
class WaveRun:
    """A wave under way, begun by this process or by one before it.

    Parameters
    ----------
    guard
        Asked before every step.
    tell
        Takes lines about what happens.
    tolerance
        Decides whether pods may stay on other nodes than planned, beyond those that the options allow.
    """

    wave: WaveDocument
    ledger: ApplyLedger
    kubectl: Kubectl
    evictor: Evictor
    options: ApplyOptions
    guard: Guard
    tell: Callable[[str], None]
    tolerance: LandingTolerance
    _due: dict[str, float] = field(default_factory=dict)
    _waits: dict[str, float] = field(default_factory=dict)
    _unready: dict[str, float] = field(default_factory=dict)
    _sightings: Counter[tuple[str, str]] = field(default_factory=Counter)
    _astray: dict[str, StrayPod] = field(default_factory=dict)
    _reasons: dict[str, str] = field(default_factory=dict)
    _present: set[str] = field(default_factory=set)
    _pods: list[ObservedObject] = field(default_factory=list)
    _unbound: bool = False
    _unsure: bool = False
    _holds: bool = False
    _failure: str = ""
    _obsolete: str = ""

    def carry_out(self) -> None:
        """Bring the wave to its end.

        Raises
        ------
        Halt
            If it has to stop before; what is under way in the cluster then goes on by itself.
        """
        timeout = self.options.timeout if self.options.timeout is not None else self.wave.barrier.timeout_seconds
        deadline = time.monotonic() + timeout
        told = time.monotonic()
        if any(self.ledger.progress[move.id].intent or self.ledger.settled(move) for move in self.wave.moves):
            self._observe()  # what stopped a run before comes before more evictions
        while True:
            expired = self._evict()
            if self._observe():
                if self._obsolete and not self._under_way():
                    raise Obsolete(self._obsolete)
                if self._over():
                    break
                if expired and not self._under_way():
                    raise Expired(expired)
            if time.monotonic() >= deadline:
                raise Halt(f"wave {self.wave.number} is not over after {timeout:g} s: {self._unsettled()}")
            if time.monotonic() - told >= TELL_AFTER * self.options.pause_scale:
                told = time.monotonic()
                self.tell(f"wave {self.wave.number} waits: {self._unsettled()}")
            self.guard.may_go_on()
            self.guard.rest(self._pause(deadline))
        self.ledger.write(WaveEndRecord(at=now(), wave=self.wave.number))

    def _evict(self) -> str:
        """Evict what is due; say why no more if the plan has expired meanwhile: what is under way is then awaited."""
        if self._obsolete or self._holds:
            return ""
        for move in self.wave.moves:
            if move.kind == "place" or self.ledger.stage(move) not in {"waiting", "asked"}:
                continue
            if self._due.get(move.id, 0.0) > time.monotonic():
                continue
            self.guard.may_go_on()
            if expired := self.guard.expired:
                return expired
            pause = self.evictor.evict(move)
            if pause is not None:
                self._due[move.id] = time.monotonic() + pause
            self._tell_eviction(move, pause)
        return ""

    def _tell_eviction(self, move: MoveDocument, pause: float | None) -> None:
        answer = self.ledger.progress[move.id].answer
        words = {"evicted": "evicted", "gone": "gone", "later": "refused for now", "unknown": "no answer"}
        word = words.get(answer.outcome, "refused for good") if answer is not None else "not reached"
        message = f": {answer.message}" if answer is not None and answer.message else ""
        again = "" if pause is None else f"; again in {pause:.3g} s"
        self.tell(f"wave {self.wave.number}: {move.pod.namespace}/{self.ledger.name(move)}: {word}{message}{again}")

    def _observe(self) -> bool:
        """Look at the cluster and write down what has landed; say whether it could be seen."""
        pods: list[ObservedObject] = []
        try:
            for namespace in sorted({move.pod.namespace for move in self.wave.moves}):
                pods += seen_pods(self.kubectl.get(["pods"], namespace=namespace).data)
        except ClusterError as error:
            self._failure = str(error)
            self.tell(f"wave {self.wave.number}: {error}")
            return False
        self._failure = ""
        self._present = {pod.uid for pod in pods}
        self._astray = {}
        self._unsure = False
        self._reasons = {}
        self._pods = pods
        known = self.ledger.known.get(self.wave.number, {})
        found = match(self.wave.moves, self.ledger, known, pods)
        self._unbound = any(not matched.bound and matched.move.kind == "evict" for matched in found)
        for matched in found:
            self._check_landings(matched)
        self._check_strays()
        return True

    def _check_landings(self, matched: Match) -> None:
        move, pod = matched.move, matched.pod
        if pod is None or not matched.bound:
            self._wait(matched)
            return
        self._waits.pop(move.id, None)
        if why := rolled_out(move, pod.template):
            self._drop(move, why)
            return
        if not matched.planned:
            self._sightings[(move.id, pod.uid)] += 1
            if self._sightings[(move.id, pod.uid)] < SURE:
                self._unsure = True
                return
            self._astray[move.id] = StrayPod(move, pod.key, pod.node)
        content = {"pod": pod.metadata.name, "uid": pod.uid, "node": pod.node, "planned": matched.planned}
        where = f"on {pod.node}" if matched.planned else f"on {pod.node}, not as planned"
        if pod.ready or not self.wave.barrier.ready:
            self.ledger.write(LandedRecord.model_validate({"at": now(), "move": move.id, **content}))
            self.tell(f"wave {self.wave.number}: {pod.key} ready {where}")
            return
        because = f": {pod.unready_because}" if pod.unready_because else ""
        self._reasons[move.id] = f"pod {pod.key}{of_owner(move)} on {pod.node} is not ready{because}"
        if unready := self._need_not_be_ready(move, pod):
            self.ledger.write(
                LandedRecord.model_validate({"at": now(), "move": move.id, "unready": unready, **content})
            )
            no_wait = (
                "the pod that it replaces was not either" if unready == "before" else "it is not waited for longer"
            )
            self.tell(f"wave {self.wave.number}: {pod.key} {where} is not ready{because}; {no_wait}")

    def _need_not_be_ready(self, move: MoveDocument, pod: ObservedObject) -> str:
        """Say why a pod is not waited for until it is ready, as `LandedRecord` does; empty if it is."""
        if not self.options.await_unready and self.ledger.may_stay_unready(move):
            return "before"
        since = self._unready.setdefault(pod.uid, time.monotonic())
        over = time.monotonic() - since >= self.options.unready_limit
        return "skipped" if over and self.ledger.skipped < self.options.skip_unready else ""

    def _drop(self, move: MoveDocument, why: str) -> None:
        """Leave a move out whose workload has changed; the wave does not wait for it."""
        self.ledger.write(DroppedRecord(at=now(), move=move.id, why=why))
        self.tell(f"wave {self.wave.number}: {move.pod.key} is left out: {why}")

    def _check_strays(self) -> None:
        """Stop if too many pods are elsewhere, ready or not, and the rest of the plan is worse for it.

        Pods of several owners may have exchanged their nodes, so as long as one of the evicted pods has no replacement
        on a node, nothing more is evicted, and nothing is decided.
        """
        found = self._astray | {stray.move.id: stray for stray in landed_elsewhere(self.ledger)}
        strays = [found[name] for name in sorted(found)]
        self._holds = self._unsure
        if self._obsolete or len(strays) <= self.options.elsewhere:
            return
        if self._unbound:
            self._holds = True
            return
        refusal = self.tolerance.admit(strays, lambda line: self.tell(f"wave {self.wave.number}: {line}"))
        if not refusal:
            return
        limit = f"{self.options.elsewhere} may" if self.options.elsewhere else "none may"
        count = "1 pod" if len(strays) == 1 else f"{len(strays)} pods"
        names = "; ".join(map(str, strays[:5])) + ("; …" if len(strays) > 5 else "")
        self._obsolete = f"{count} came up on another node than planned, {limit}{refusal}: {names}"
        if not self.options.awaits_evicted:
            raise Obsolete(self._obsolete)

    def _wait(self, matched: Match) -> None:
        """Stop if a pod is unscheduled, or missing, for too long."""
        move, pod = matched.move, matched.pod
        if move.kind != "place" and self.ledger.uid(move) in self._present:
            return  # the old pod may have to be gone first, to free its name or what only one of the two can have
        if pod is None and is_to_be_created(move):
            self._reasons[move.id] = f"create {manifest_of(move)} now"
            if not self._sightings[(move.id, "created")]:
                self.tell(f"wave {self.wave.number} places {move.pod.key}: {self._reasons[move.id]}")
            self._sightings[(move.id, "created")] += 1
            return
        if pod is None and (why := self._not_wanted(move)):
            self._drop(move, why)
            return
        if pod is None and move.same_name:
            return  # it may come when others before it are ready; the time for the wave is its limit
        said = f": {pod.waits_for}" if pod is not None and pod.waits_for else ""
        self._reasons[move.id] = f"pod {pod.key}{of_owner(move)} is unscheduled{said}" if pod is not None else ""
        limit = self.options.pending
        if move.kind == "place" and pod is not None and self.options.serve is not None:
            limit = max(limit, HELD * self.options.pause_scale)
        since = self._waits.setdefault(move.id, time.monotonic())
        if time.monotonic() - since < limit:
            return
        for_so_long = f"for {limit:g} s"
        if pod is not None:
            raise Obsolete(f"pod {pod.key}{of_owner(move)} is unscheduled {for_so_long}{said}")
        if move.kind == "place" and not self.ledger.is_taken_over(move):
            raise Obsolete(f"pod {move.pod.key}{of_owner(move)} is gone")
        raise Obsolete(f"no replacement of pod {move.pod.key}{of_owner(move)} {for_so_long}")

    def _not_wanted(self, move: MoveDocument) -> str:
        """Say why no pod comes for a move, if that was seen twice; empty if one may."""
        owner = move.owner.uid if move.owner is not None else ""
        live = sum(pod.owner == owner and not pod.leaving and not pod.finished for pod in self._pods)
        why = not_wanted(self.kubectl, move, live)
        self._sightings[(move.id, "not wanted")] += bool(why)
        return why if self._sightings[(move.id, "not wanted")] >= SURE else ""

    def _over(self) -> bool:
        return all(self.ledger.settled(move) for move in self.wave.moves) and not self._lingering()

    def _lingering(self) -> list[MoveDocument]:
        """Return moves whose old pods are still there, if that matters."""
        if not self.wave.barrier.gone:
            return []
        moved = [m for m in self.wave.moves if m.kind != "place" and self.ledger.stage(m) != "refused"]
        return [move for move in moved if self.ledger.uid(move) in self._present]

    def _under_way(self) -> bool:
        """Whether a pod that was evicted is not gone yet, or its replacement is not where it belongs."""
        lingering = {move.id for move in self._lingering()}
        evicted = [m for m in self.wave.moves if m.kind != "place" and self.ledger.stage(m) not in {"waiting", "asked"}]
        return any(not self.ledger.settled(move) or move.id in lingering for move in evicted)

    def _unsettled(self) -> str:
        """Say what is still open, and why."""
        parts: list[str] = []
        for move in self.wave.moves:
            answer = self.ledger.progress[move.id].answer
            if self.ledger.settled(move):
                continue
            stage = self.ledger.stage(move)
            because = f" ({self._reasons[move.id]})" if self._reasons.get(move.id) else ""
            if stage == "leaving":
                parts.append(f"the replacement of {move.pod.key} is not ready{because}")
            elif move.kind == "place":
                parts.append(f"{move.pod.key} is not ready on {move.target}{because}")
            else:
                parts.append(f"{move.pod.key} is not evicted" + (f" ({answer.message})" if answer else ""))
        parts += [f"{move.pod.key} is not gone" for move in self._lingering() if self.ledger.settled(move)]
        if self._failure:
            parts.append(self._failure)
        return "; ".join(parts[:5]) + ("; …" if len(parts) > 5 else "")

    def _pause(self, deadline: float) -> float:
        """Return how long to wait before the next look or attempt."""
        present = time.monotonic()
        due = [at - present for move, at in self._due.items() if self.ledger.progress[move].stage == "asked"]
        return max(0.0, min([self.options.poll, deadline - present, *due]))
