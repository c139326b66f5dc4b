"""One run at a time in a cluster: a Lease that a run takes, renews, and gives back.

Times are handled as ``k8s.io/client-go/tools/leaderelection`` handles them: clocks of two machines are never compared.
A lease of another holder is over when it was not renewed for its whole duration, as seen from here; a run that could
not renew its own stops well before that.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from stowplan.cluster.kubectl import ClusterError, Kubectl, Refusal
from stowplan.models.moments import stamp
from stowplan.models.plan import PLAN_ANNOTATION

NAME = "stowplan-apply"
"""Name of the Lease: one for a cluster, whatever the plan."""
RENEWALS = 4
"""Renewals in the time that a lease lasts."""
LOST_AFTER = 2 / 3
"""Share of that time after which a lease that could not be renewed counts as lost."""


def holder_of(journal: Path) -> str:
    """Return who carries a plan out with a journal, on this host: a run that goes on after a kill is the same.

    Only one process at a time has the journal open, so two of the same identity never run at once.
    """
    place = hashlib.sha256(str(journal.resolve()).encode()).hexdigest()[:16]
    return f"{socket.gethostname()}/{place}"


@contextmanager
def _other_ways_told() -> Iterator[None]:
    """Say what else can be done where a lease may not be seen or taken."""
    try:
        yield
    except Refusal as error:
        if error.reason in {"Forbidden", "NotFound"}:  # a namespace, or a kind, that is not there
            hint = "; --lease-namespace names another namespace, and --no-lease does without"
            raise ClusterError(error.message + hint, error.what) from None
        raise


@dataclass
class ClusterLease:
    """The Lease of a cluster. Use it as a context manager: what `hold` takes inside is given back at the end.

    Parameters
    ----------
    kubectl
        Asked for little, by a thread of its own; `lost` does not wait for its answers.
    namespace
        Where the Lease is; runs that are to be kept apart name the same.
    holder
        Who takes it.
    duration
        Seconds for which it is held without being renewed.
    rest
        Sleeps for so many seconds; raises to give up waiting.
    tell
        Takes lines about what is waited for.
    """

    kubectl: Kubectl
    namespace: str
    holder: str
    duration: float
    rest: Callable[[float], None]
    tell: Callable[[str], None]
    _plan: str = field(default="", init=False)
    _found: dict[str, Any] = field(default_factory=dict, init=False)
    _renewed: float = field(default=0.0, init=False)
    _taken_by: str = field(default="", init=False)
    _failure: str = field(default="", init=False)
    _over: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.kubectl = replace(self.kubectl, timeout=min(self.kubectl.timeout, self.duration / RENEWALS))
        self._thread = threading.Thread(target=self._renew_until_over, name="lease", daemon=True)

    @property
    def lost(self) -> str:
        """Why nothing may be done any more under this lease; empty as long as it is held."""
        if self._taken_by:
            return f"the lease {self.where} was taken by {self._taken_by}"
        age = time.monotonic() - self._renewed
        if age < self.duration * LOST_AFTER:
            return ""
        because = f": {self._failure}" if self._failure else ""
        return f"the lease {self.where} could not be renewed for {age:.3g} s{because}"

    def other_run(self) -> str:
        """Return who else holds the lease, with its plan; empty if no other run does. Nothing is taken.

        One look does not tell a run that goes on from one that was killed.

        Raises
        ------
        ClusterError
            If it cannot be read.
        """
        with _other_ways_told():
            found = self._read()
        holder = (found.get("spec") or {}).get("holderIdentity") or ""
        return self._run_of(found) if holder and holder != self.holder else ""

    def hold(self, plan: str) -> None:
        """Take the lease for a plan; where it is held already, only the plan changes, with the next renewal.

        Raises
        ------
        ClusterError
            If another run holds it, or it can be neither read nor written.
        """
        self._plan = plan
        if self._thread.ident is None:
            with _other_ways_told():
                while not self._try():
                    self.rest(self.duration / RENEWALS / 2)
            self._thread.start()

    def __enter__(self) -> ClusterLease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.ident is None:
            return
        self._over.set()
        self._thread.join(self.duration)
        if not self.lost:
            try:
                self._write(self._content(""))
            except ClusterError as failure:
                self.tell(f"the lease {self.where} is not given back, and ends by itself: {failure}")

    @property
    def where(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{NAME}"

    @property
    def _folder(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    def _try(self) -> bool:
        """Take the lease if it is free, or over; say whether it is ours."""
        before, since = self._found, self._renewed
        self._found = self._read()
        spec = self._found.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder and holder != self.holder:
            of = self._run_of(self._found)
            if not before:
                self._renewed = time.monotonic()
                self.tell(f"the lease {self.where} is held by {of}: waiting whether it is renewed")
                return False
            if (before.get("spec") or {}) != spec:
                raise ClusterError(f"another run is under way: {of}, holds the lease {self.where}")
            if time.monotonic() - since < (spec.get("leaseDurationSeconds") or self.duration):
                return False
            self.tell(f"the lease of {holder} is over")
        try:
            self._write(self._content(self.holder))
        except Refusal as error:
            if error.reason in {"Conflict", "AlreadyExists"}:  # another run was faster
                self._found = {}
                return False
            raise
        return True

    def _run_of(self, found: dict[str, Any]) -> str:
        plan = (found["metadata"].get("annotations") or {}).get(PLAN_ANNOTATION) or "another plan"
        return f"{found['spec']['holderIdentity']}, which carries out {plan}"

    def _content(self, holder: str) -> dict[str, Any]:
        """Return the Lease as it is to be."""
        spec = self._found.get("spec") or {}
        present = stamp(datetime.now(UTC), "microseconds")
        same = spec.get("holderIdentity") == holder
        turns = int(spec.get("leaseTransitions") or 0) + (not same and bool(holder))
        meta: dict[str, Any] = {"name": NAME, "namespace": self.namespace, "annotations": {PLAN_ANNOTATION: self._plan}}
        if self._found:
            meta["resourceVersion"] = self._found["metadata"]["resourceVersion"]
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": meta,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, round(self.duration)),
                "acquireTime": spec.get("acquireTime", present) if same else present,
                "renewTime": present,
                "leaseTransitions": turns,
            },
        }

    def _write(self, content: dict[str, Any]) -> None:
        """Write the Lease, if no other client has since it was read."""
        asked = time.monotonic()
        what = f"{'take' if content['spec']['holderIdentity'] else 'give back'} the lease {self.where}"
        if self._found:
            answer = self.kubectl.put(f"{self._folder}/{NAME}", content, what)
        else:
            answer = self.kubectl.post(self._folder, content, what)
        self._found, self._renewed, self._failure = json.loads(answer), asked, ""

    def _read(self) -> dict[str, Any]:
        """Return the Lease; empty if there is none."""
        try:
            found: dict[str, Any] = json.loads(self.kubectl.raw(f"{self._folder}/{NAME}"))
        except Refusal as error:
            if error.reason == "NotFound":
                return {}
            raise
        return found

    def _renew_until_over(self) -> None:
        pause = self.duration / RENEWALS
        while not self._over.wait(pause if not self._failure else pause / 2):
            try:
                self._renew()
            except (ClusterError, ValueError, KeyError) as error:
                self._failure = str(error)
            if self._taken_by:
                return

    def _renew(self) -> None:
        try:
            self._write(self._content(self.holder))
        except Refusal as error:
            if error.reason not in {"Conflict", "NotFound"}:
                raise
            # An answer of ours may have been lost; then the Lease is newer, and still ours.
            self._found = self._read()
            holder = (self._found.get("spec") or {}).get("holderIdentity") or ""
            if self._found and holder != self.holder:
                self._taken_by = holder or "no one, and is free"
                return
            self._write(self._content(self.holder))
