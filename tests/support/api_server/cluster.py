"""The cluster behind the server: controllers, scheduler and kubelets at work, in real time but in a hurry."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.api_server.disruption import sync_budgets
from tests.support.api_server.errors import ApiError, Object
from tests.support.api_server.eviction import is_ready
from tests.support.api_server.resources import PODS
from tests.support.api_server.scheduling import Scheduler, emptiest
from tests.support.api_server.store import Store, timestamp
from tests.support.api_server.workloads import sync_workloads


@dataclass(frozen=True)
class Pace:
    """How long things take, in seconds.

    Parameters
    ----------
    grace
        From the deletion of a pod until it is gone, whatever its own grace period.
    schedule, ready
        From a pod's creation until it is bound, from then until it is ready.
    tick
        How often the controllers look.
    """

    grace: float = 0.05
    schedule: float = 0.02
    ready: float = 0.05
    tick: float = 0.01


@dataclass
class Cluster:
    """A store whose objects live. Use it as a context manager: the controllers run inside.

    Parameters
    ----------
    never_ready
        Names of pods, or the beginnings of names, that never become ready.
    budgets_sleep
        Whether the disruption controller is out of order, so that the status of budgets grows stale.
    budget_lag
        Seconds between two looks of the disruption controller; in between, the status of budgets is what it was.
    flush
        Seconds after which pods that found no node are tried again although nothing has changed, as kube-scheduler does
        after five minutes.
    chance
        Decides in which order pending pods are tried, and makes everything take up to three times as long; without it,
        pods are tried by name, and all take the same time.
    """

    manifests: Iterable[Object]
    scheduler: Scheduler = emptiest
    pace: Pace = Pace()
    never_ready: set[str] = field(default_factory=set)
    budgets_sleep: bool = False
    budget_lag: float = 0.0
    flush: float = math.inf
    chance: random.Random | None = None
    store: Store = field(default_factory=Store)

    def __post_init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self._slowness: dict[tuple[str, str], float] = {}
        self._budgets_seen = 0.0
        self._stepped = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="cluster", daemon=True)
        self._seen = -1
        self._waiting = False
        self.failure: BaseException | None = None
        self.store.load(list(self.manifests))
        sync_budgets(self.store)

    def __enter__(self) -> Cluster:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def heal(self) -> None:
        """Let pods become ready that were never to."""
        self.never_ready.clear()
        self._seen = -1

    def settle(self, seconds: float = 10.0) -> None:
        """Wait until nothing changes any more."""
        deadline = time.monotonic() + seconds
        quiet_since, revision = time.monotonic(), self.store.revision
        while time.monotonic() < deadline:
            if revision != self.store.revision or self._waiting:
                quiet_since, revision = time.monotonic(), self.store.revision
            if time.monotonic() - quiet_since > 5 * self.pace.tick:
                return
            time.sleep(self.pace.tick)
        raise AssertionError("the cluster does not come to rest")

    def come_to_rest(self) -> None:
        """Step by step in this thread, instead of living: what happens is then a function of ``chance``.

        Everything must come without delay.
        """
        while self._seen != self.store.revision or self._waiting:
            self._seen = self.store.revision
            self._step()

    def _live(self) -> None:
        try:
            while not self._over.wait(self.pace.tick):
                flushed = time.monotonic() - self._stepped >= self.flush
                if flushed or self.store.revision != self._seen or self._waiting or self.budget_lag:
                    self._seen = self.store.revision
                    self._stepped = time.monotonic()
                    self._step()
        except BaseException as error:  # told to the test, which runs in another thread
            self.failure = error
            raise

    def _step(self) -> None:
        sync_workloads(self.store)
        self._waiting = False
        now = time.monotonic()
        pods = self.store.all(PODS)
        if self.chance is not None:
            self.chance.shuffle(pods)
        for pod in pods:
            try:
                self._advance(pod, now)
            except ApiError:  # somebody was faster: the pod is gone
                continue
        if not self.budgets_sleep and now - self._budgets_seen >= self.budget_lag:
            self._budgets_seen = now
            sync_budgets(self.store)

    def _advance(self, pod: Object, now: float) -> None:
        """Take a pod one step further if its time has come."""
        meta, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
        if meta.get("deletionTimestamp"):
            if meta.get("finalizers"):
                self._waiting = True
            elif self._due(meta["uid"], "deleted", now, self.pace.grace):
                self.store.remove(PODS, meta["namespace"], meta["name"])
        elif status.get("phase") in {"Succeeded", "Failed"} or spec.get("schedulingGates"):
            return
        elif not spec.get("nodeName"):
            if self._due(meta["uid"], "created", now, self.pace.schedule):
                self._schedule(pod)
        elif is_ready(pod) or self._is_stuck(meta["name"]):
            return
        elif self._due(meta["uid"], "bound", now, self.pace.ready):
            self.store.update(PODS, meta["namespace"], meta["name"], _become_ready)

    def _due(self, uid: str, stage: str, now: float, delay: float) -> bool:
        """Say whether so much time has gone by since a pod came to a stage."""
        if self.chance is not None:
            delay *= self._slowness.setdefault((uid, stage), self.chance.uniform(1, 3))
        due = now - self._since.setdefault((uid, stage), now) >= delay
        self._waiting |= not due
        return due

    def _is_stuck(self, name: str) -> bool:
        return any(name.startswith(start) for start in self.never_ready)

    def _schedule(self, pod: Object) -> None:
        with self.store.changed:
            current = self.store.get(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
            if current["metadata"]["uid"] != pod["metadata"]["uid"] or current["metadata"].get("deletionTimestamp"):
                return
            node = self.scheduler(self.store, current)
            if node is not None:
                self.store.update(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], lambda p: _bind(p, node))


def _bind(pod: Object, node: str) -> None:
    pod["spec"]["nodeName"] = node
    pod.setdefault("status", {})["conditions"] = [{"type": "PodScheduled", "status": "True"}]


def _become_ready(pod: Object) -> None:
    conditions = [c for c in pod["status"].get("conditions") or () if c["type"] not in {"Ready", "ContainersReady"}]
    pod["status"]["phase"] = "Running"
    pod["status"]["startTime"] = timestamp()
    pod["status"]["conditions"] = [*conditions, *({"type": t, "status": "True"} for t in ("Ready", "ContainersReady"))]
