"""A plan carried out wave by wave, from the beginning or from the state that a journal records."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stowplan.applying.cordons import Cordons
from stowplan.applying.events import EventWriter
from stowplan.applying.eviction import Evictor, eviction_version
from stowplan.applying.extender_client import tell_extender
from stowplan.applying.journal import ApplyJournal, check_header, now, plan_hash
from stowplan.applying.lease import ClusterLease, holder_of
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ClusterView
from stowplan.applying.options import ApplyOptions, Expired, Guard, Halt, Interrupted, Obsolete
from stowplan.applying.preconditions import PreconditionCheck
from stowplan.applying.records import DoneRecord, PlanRecord, StartRecord, StopRecord, WaveRecord
from stowplan.applying.tolerance import LandingTolerance
from stowplan.applying.wave import WaveRun
from stowplan.cluster.kubectl import ClusterError, Kubectl
from stowplan.models.errors import InputError
from stowplan.models.plan import MoveDocument, Plan, WaveDocument
from stowplan.models.stop import Stop
from stowplan.plugins_compat.framework.profile import Profile

LOOKS = 3
"""How often the cluster is looked at before drift is believed: a list can be older than what was just done."""
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""What Kubernetes lets pods, namespaces and workloads be called."""


@dataclass(frozen=True)
class Applied:
    """How a run ended.

    Parameters
    ----------
    stopped
        Why it ended before the plan did; empty if all waves are over, or those that were asked for.
    interrupted
        Whether a stop was requested.
    obsolete
        Whether it ended since the rest of the plan does not fit the cluster.
    resumable
        Whether the same plan can be taken up again: it has not expired, and no other has taken its place.
    """

    ledger: ApplyLedger
    journal: Path
    stopped: str
    interrupted: bool
    seconds: float
    obsolete: bool = False
    resumable: bool = True


def check_plan(plan: Plan) -> None:
    """Check that a plan can be carried out by evictions at all.

    Raises
    ------
    InputError
        If it evicts a pod that no controller replaces, or contains a name that no object can have.
    """
    for field, node in _nodes(plan):
        if not NAME.fullmatch(node):
            raise InputError(f"{node!r} is not the name of a node", field=field)
    for move in plan.moves:
        for field, name in _names(move):
            if not NAME.fullmatch(name):
                raise InputError(f"{name!r} is not the name of an object", obj=f"move {move.id}", field=field)
        if move.kind == "evict" and (move.owner is None or (not move.owner.uid and not move.same_name)):
            what = (
                "has no owner, so no controller would replace it"
                if move.owner is None
                else "has an owner without a uid"
            )
            raise InputError(what, obj=f"move {move.id} of pod {move.pod.key}", field="owner")


def _nodes(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the nodes that commands name, with their fields."""
    yield from (("cordon", node) for node in plan.cordon)
    yield from ((f"waves[{i}].cordon", node) for i, wave in enumerate(plan.waves) for node in wave.cordon)


def _names(move: MoveDocument) -> Iterator[tuple[str, str]]:
    """Yield what becomes a part of a command or of a path, with its field."""
    yield "pod.namespace", move.pod.namespace
    yield "pod.name", move.pod.name
    if move.owner is not None:
        yield "owner.name", move.owner.name
        yield "owner.kind", move.owner.kind.lower()


def cluster_uid(kubectl: Kubectl) -> str:
    """Return what tells a cluster from others: the uid of its namespace ``kube-system``; empty if it is hidden."""
    try:
        data = kubectl.find("namespace", "kube-system")
    except ClusterError:
        return ""
    return str(json.loads(data)["metadata"].get("uid", "")) if data is not None else ""


def apply(
    plan: Plan,
    kubectl: Kubectl,
    journal: Path,
    profile: Profile,
    options: ApplyOptions,
    *,
    stop: Stop | None = None,
    tell: Callable[[str], None] = lambda line: None,
    lease: ClusterLease | None = None,
) -> Applied:
    """Carry a plan out, or go on with it.

    Parameters
    ----------
    profile
        Of the scheduler that places the replacements; its filters are asked before each wave.
    tell
        Takes lines about what happens.
    lease
        Keeps other runs away beyond this plan; if it is not given, one of the plan's own does, as ``options`` say.

    Raises
    ------
    InputError
        If the plan cannot be carried out, or the journal is not its own.
    ClusterError
        If the cluster cannot be reached at the beginning.
    """
    check_plan(plan)
    began = time.monotonic()
    cluster = cluster_uid(kubectl)
    version = eviction_version(kubectl)
    stop = stop or Stop()
    own = run_lease(kubectl, journal, options, stop, tell) if lease is None else nullcontext(lease)
    with ApplyJournal(journal) as book, own as held:
        check_header(book.records, plan, cluster, journal)
        ledger = ApplyLedger(plan, book.append)
        ledger.fold(book.records)
        if not book.records:
            ledger.write(PlanRecord(at=now(), plan=plan.id, plan_hash=plan_hash(plan), cluster=cluster))
        if options.events:
            ledger.announce = EventWriter(kubectl, ledger, tell).announce
        run = _Run(
            plan,
            kubectl,
            ledger,
            PreconditionCheck(plan, ledger, kubectl, profile),
            Evictor(kubectl, ledger, version, options.pause_scale),
            Cordons(kubectl, ledger, tell),
            options,
            Guard(plan, stop, held),
            tell,
        )
        why, interrupted, obsolete = ledger.superseded, False, False
        resumable = not why
        if not ledger.done and not why:
            try:
                if held is not None:
                    held.hold(plan.id)
                run.carry_out()
            except (Halt, ClusterError, InputError) as error:
                why, interrupted, obsolete = str(error), isinstance(error, Interrupted), isinstance(error, Obsolete)
                resumable = not isinstance(error, Expired)
                ledger.write(StopRecord(at=now(), why=why))
        return Applied(ledger, journal, why, interrupted, time.monotonic() - began, obsolete, resumable)


def run_lease(
    kubectl: Kubectl, journal: Path, options: ApplyOptions, stop: Stop, tell: Callable[[str], None]
) -> AbstractContextManager[ClusterLease | None]:
    """Return the Lease of a run, which is not taken yet; ``None`` inside if the options do without."""

    def rest(seconds: float) -> None:
        if stop.wait(seconds):
            raise Interrupted("interrupted")

    if not options.lease:
        return nullcontext()
    holder = holder_of(journal)
    return ClusterLease(kubectl, options.lease_namespace, holder, options.lease_seconds, rest, tell)


@dataclass
class _Run:
    plan: Plan
    kubectl: Kubectl
    ledger: ApplyLedger
    precondition_check: PreconditionCheck
    evictor: Evictor
    cordons: Cordons
    options: ApplyOptions
    guard: Guard
    tell: Callable[[str], None]

    @cached_property
    def tolerance(self) -> LandingTolerance:
        """Decides whether the rest of the plan is still good enough."""
        return LandingTolerance(self.precondition_check, self.ledger, steered=self.options.serve is not None)

    def carry_out(self) -> None:
        """Carry the waves out; however it ends, nodes do not stay cordoned for a wave, by an earlier run either."""
        self.ledger.write(StartRecord(at=now(), process=os.getpid()))
        try:
            over = self._carry_out_waves()
        except BaseException as error:
            problems = [problem for problem in self.cordons.open() if problem not in str(error)]
            if problems and isinstance(error, Halt | ClusterError | InputError):
                raise type(error)(f"{error}; {'; '.join(problems)}") from None
            raise
        self._open()
        if over:
            self.ledger.write(DoneRecord(at=now()))

    def _carry_out_waves(self) -> bool:
        """Carry the waves out that are left; say whether none is left then."""
        for wave in self.plan.waves:
            if wave.number in self.ledger.ended:
                self._open(wave.number)
            else:
                self._carry_out(wave)
                self.tell(f"wave {wave.number} of {len(self.plan.waves)} is over")
            self._check_refused(wave)
            if self.options.stop_after is not None and wave.number >= self.options.stop_after:
                return False
        return True

    def _carry_out(self, wave: WaveDocument) -> None:
        self._begin(wave)
        self.cordons.close_for_good()
        self.cordons.close(wave)
        if self.options.serve is not None:
            tell_extender(self.options.serve, self.plan, wave.number, self.options.tls)
        args = (self.ledger, self.kubectl, self.evictor, self.options, self.guard, self.tell, self.tolerance)
        WaveRun(wave, *args).carry_out()
        self._open(wave.number)

    def _open(self, wave: int | None = None) -> None:
        if problems := self.cordons.open(wave):
            raise Halt("; ".join(problems))

    def _begin(self, wave: WaveDocument) -> None:
        """Check that the wave can still be carried out, and write down what was there before it."""
        view, problems = self._expect(wave)
        if problems and (lines := self.precondition_check.leave_out(view, wave)):
            for line in lines:
                self.tell(line)
            view, problems = self._expect(wave)
        problems = problems or self.tolerance.admit_placed(view, wave.number, self.options.elsewhere, self.tell)
        if not problems and self.ledger.has_dropped and not self.tolerance.is_worthwhile():
            problems = [f"without {self._left_out()} the rest of the plan makes the placement worse"]
        if problems:
            more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
            raise Obsolete(f"the cluster has changed before wave {wave.number}: {'; '.join(problems[:5])}{more}")
        if wave.number not in self.ledger.known:
            owners = {move.owner.uid for move in wave.moves if move.owner is not None and move.owner.uid}
            pods = {owner: view.of_owner(owner) for owner in sorted(owners)}
            known = {owner: tuple(sorted(pod.metadata.uid for pod in found)) for owner, found in pods.items()}
            unready = tuple(sorted(_unready(wave, self.ledger, view)))
            waiting = tuple(sorted(p.metadata.uid for found in pods.values() for p in found if not p.node_name))
            self.ledger.write(WaveRecord(at=now(), wave=wave.number, known=known, unready=unready, waiting=waiting))

    def _left_out(self) -> str:
        dropped = [move.pod.key for move in self.plan.moves if self.ledger.stage(move) == "dropped"]
        return "the moves of " + ", ".join(dropped[:5]) + (", …" if len(dropped) > 5 else "")

    def _expect(self, wave: WaveDocument) -> tuple[ClusterView, list[str]]:
        """Look at the cluster; look again if it is not as expected, or could not be seen."""
        for left in reversed(range(LOOKS)):
            self.guard.may_begin()
            try:
                view, problems = self.precondition_check.look(wave)
            except ClusterError as error:
                if not left:
                    raise
                self.tell(str(error))
            else:
                if not problems or not left:
                    return view, problems
            self.guard.rest(self.options.poll)
        raise AssertionError("the last look returns or raises")

    def _check_refused(self, wave: WaveDocument) -> None:
        refused = [move for move in wave.moves if self.ledger.stage(move) == "refused"]
        if refused and wave.number < len(self.plan.waves):
            answer = self.ledger.progress[refused[0].id].answer
            because = f" ({answer.message})" if answer is not None else ""
            names = ", ".join(move.pod.key for move in refused[:5]) + (", …" if len(refused) > 5 else "")
            raise Obsolete(
                f"refused for good in wave {wave.number}: {names}{because}; what follows may need their room"
            )


def _unready(wave: WaveDocument, ledger: ApplyLedger, view: ClusterView) -> Iterator[str]:
    """Yield the uids of the pods of a wave that have a node and are not ready."""
    for move in wave.moves:
        pod = view.pods.get(f"{move.pod.namespace}/{ledger.name(move)}")
        if move.kind != "place" and pod is not None and not pod.ready and ledger.stage(move) == "waiting":
            yield pod.metadata.uid
