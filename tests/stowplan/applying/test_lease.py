"""Two runs in one cluster are kept apart by a Lease, which outlives neither its holder nor a lost connection."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from stowplan.applying.apply import apply
from stowplan.applying.dry_run import profile_of
from stowplan.applying.lease import NAME, ClusterLease, holder_of
from stowplan.cluster.kubectl import ClusterError
from stowplan.models.moments import stamp
from tests.support.api_server import Pace, Request, refuse
from tests.support.api_server.errors import ApiError, Object
from tests.support.api_server.resources import LEASES
from tests.support.applying import FAST, Scene, scene
from tests.support.direct import DirectKubectl
from tests.support.kubectl import needs_kubectl

SYSTEM = "kube-system"


@pytest.fixture
def slow(home: Path) -> Iterator[Scene]:
    """Set a scene whose first wave takes long enough for others to come."""
    with scene(home, pace=Pace(ready=1.5)) as found:
        yield found


def lease(shop: Scene, holder: str, **more: Any) -> ClusterLease:
    settings = {"namespace": SYSTEM, "duration": 1.0, "rest": time.sleep, "tell": shop.lines.append}
    kubectl = DirectKubectl(timeout=5, server=shop.server)
    return ClusterLease(kubectl, holder=holder, **{**settings, **more})  # type: ignore[arg-type]


@contextmanager
def held(shop: Scene, holder: str) -> Iterator[ClusterLease]:
    with lease(shop, holder) as one:
        one.hold("plan-x")
        yield one


def found(shop: Scene) -> Object:
    return shop.server.store.get(LEASES, SYSTEM, NAME)


def leave(shop: Scene, holder: str, seconds: int = 1) -> None:
    """Leave a lease behind as a killed run does."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3}
    spec["renewTime"] = stamp(datetime.now(UTC), "microseconds")
    about = {"name": NAME, "namespace": SYSTEM, "annotations": {"stowplan.io/plan": "plan-old"}}
    shop.server.store.create(LEASES, {"kind": "Lease", "metadata": about, "spec": spec})


def test_only_one_holds_it(shop: Scene) -> None:
    with held(shop, "a") as one:
        assert not one.lost
        kubernetes_validate.validate(found(shop), "1.36", strict=True)
        with pytest.raises(ClusterError, match="another run is under way: a, which carries out plan-x, holds the"):
            lease(shop, "b").hold("plan-y")
        assert found(shop)["spec"]["holderIdentity"] == "a"
    assert found(shop)["spec"]["holderIdentity"] == ""
    with held(shop, "b"):
        assert found(shop)["spec"]["holderIdentity"] == "b"
        assert found(shop)["spec"]["leaseTransitions"] == 2


def test_of_many_that_come_at_once_one_gets_it(shop: Scene) -> None:
    inside: list[str] = []
    refused: list[str] = []
    start = threading.Barrier(6)

    def run(name: str) -> None:
        start.wait()
        try:
            with held(shop, name):
                inside.append(name)
                time.sleep(1.5)  # longer than it lasts without being renewed
        except ClusterError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=run, args=(f"run-{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(inside) == 1
    assert len(refused) == 5


def test_it_is_renewed_as_long_as_it_is_held(shop: Scene) -> None:
    with held(shop, "a") as one:
        first = found(shop)["spec"]
        time.sleep(1.6)
        assert not one.lost
        assert found(shop)["spec"]["renewTime"] > first["renewTime"]
        assert found(shop)["spec"]["acquireTime"] == first["acquireTime"]


def test_a_dead_holder_is_waited_for_as_long_as_its_lease_lasts(shop: Scene) -> None:
    leave(shop, "dead")
    began = time.monotonic()
    with held(shop, "b"):
        assert 1.0 <= time.monotonic() - began < 3
        assert found(shop)["spec"]["leaseTransitions"] == 4
    told = "the lease kube-system/stowplan-apply is held by dead, which carries out plan-old: waiting whether it is"
    assert shop.lines[0].startswith(told)
    assert shop.lines[1] == "the lease of dead is over"


def test_a_clock_that_is_wrong_gives_nobody_the_lease(shop: Scene) -> None:
    """A renewal that is hours old by our clock is none that we have seen grow old."""
    leave(shop, "alive")
    for stale in ("2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:01.000000Z"):
        shop.server.store.update(LEASES, SYSTEM, NAME, lambda o, t=stale: o["spec"].update(renewTime=t))
        if stale.endswith("00.000000Z"):
            other = lease(shop, "b")
            assert not other._try()
    with pytest.raises(ClusterError, match="another run is under way: alive"):
        other._try()


def test_a_lost_answer_loses_no_lease(shop: Scene) -> None:
    """A renewal that was made, and whose answer was cut, makes the next one a conflict; the Lease is still ours."""
    with held(shop, "a") as one:
        one._found = {**one._found, "metadata": {**one._found["metadata"], "resourceVersion": "7"}}
        time.sleep(1.2)
        assert not one.lost


@needs_kubectl
class TestRuns:
    """The same with whole runs."""

    def test_two_journals_do_not_run_at_once(self, slow: Scene) -> None:
        """The same plan from two places: the second stops, and evicts nothing."""
        slow.server.cluster.pace = Pace(ready=9)  # longer than until the next renewal
        first = slow.start("apply", "plan.json", "--yes", "--unsteered", "--poll", "0.25", "-q")
        deadline = time.monotonic() + 60
        while not slow.server.evictions and time.monotonic() < deadline:
            time.sleep(0.05)
        elsewhere = slow.home / "elsewhere"
        elsewhere.mkdir()
        options = replace(FAST, lease=True, lease_seconds=30.0)
        second = apply(slow.plan, slow.kubectl, elsewhere / "own.journal", profile_of(slow.plan, None), options)
        out, err = first.communicate(timeout=120)
        assert second.stopped.startswith("another run is under way: ")
        records = [json.loads(line) for line in (elsewhere / "own.journal").read_text().splitlines()]
        assert [record["event"] for record in records] == ["plan", "stop"]
        assert first.returncode == 0, out + err
        slow.check_done()

    def test_a_killed_run_resumes_at_once(self, shop: Scene) -> None:
        leave(shop, holder_of(shop.journal), seconds=60)
        began = time.monotonic()
        assert shop.run(lease=True).stopped == ""
        assert time.monotonic() - began < 30
        assert not [line for line in shop.lines if "waiting" in line]
        assert found(shop)["spec"]["holderIdentity"] == ""

    def test_a_run_whose_lease_is_taken_stops(self, slow: Scene) -> None:
        def steal(request: Request) -> None:
            slow.server.store.update(LEASES, SYSTEM, NAME, lambda o: o["spec"].update(holderIdentity="thief"))

        slow.server.faults.on("evict", steal)
        slow.server.cluster.pace = Pace(ready=4)  # longer than until the next renewal, on a busy machine too
        result = slow.run(lease=True, lease_seconds=8.0)
        assert result.stopped == "the lease kube-system/stowplan-apply was taken by thief"
        assert {e.name for e in slow.server.evictions} <= {"web-5d5b-aaaab", "db-0"}
        assert found(slow)["spec"]["holderIdentity"] == "thief"

    def test_a_run_that_cannot_renew_stops_before_others_may_begin(self, slow: Scene) -> None:
        broken = refuse(ApiError(503, "ServiceUnavailable", "not now"))
        slow.server.faults.on("update", broken, matching=NAME, times=1000)
        slow.server.cluster.pace = Pace(ready=4)  # longer than until the lease is lost
        result = slow.run(lease=True, lease_seconds=4.0)
        assert "the lease kube-system/stowplan-apply could not be renewed for " in result.stopped
        assert "not now" in result.stopped

    def test_without_the_right_the_way_out_is_named(self, shop: Scene) -> None:
        shop.server.faults.on("get", refuse(ApiError(403, "Forbidden", "leases is forbidden")), matching="/leases/")
        result = shop.run(kubectl=shop.kubectl, lease=True)
        assert result.stopped == (
            "get /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/stowplan-apply: leases is forbidden; "
            "--lease-namespace names another namespace, and --no-lease does without"
        )
        assert shop.run(lease=False).stopped == ""

    @pytest.mark.parametrize("asked", [(), ("--server-dry-run",)])
    def test_a_run_of_another_is_told_before_anything_is_asked(self, shop: Scene, asked: tuple[str, ...]) -> None:
        leave(shop, "elsewhere/1", seconds=30)
        done = shop.command("apply", "plan.json", "--unsteered", "-q", *asked)
        said = (
            "another run is under way, or was killed: elsewhere/1, which carries out plan-old, holds the lease "
            "kube-system/stowplan-apply"
        )
        told = said + ("; no evictions are sent as dry runs" if asked else "")
        assert done.returncode == 1, done.stderr
        assert [line for line in done.stdout.splitlines() if "Would stop" in line] == [f"Would stop: {told}"]
        assert not shop.server.evictions
        assert found(shop)["spec"]["holderIdentity"] == "elsewhere/1"
        document = json.loads(shop.command("apply", "plan.json", "--unsteered", "-q", "-o", "json", *asked).stdout)
        assert document["stopped"] == [told]

    def test_own_leases_free_ones_and_none_stop_no_preview(self, shop: Scene) -> None:
        check = ("apply", "plan.json", "--unsteered", "-q")
        assert shop.command(*check).returncode == 0
        leave(shop, holder_of(shop.journal), seconds=60)
        assert shop.command(*check).returncode == 0
        shop.server.store.update(LEASES, SYSTEM, NAME, lambda o: o["spec"].update(holderIdentity=""))
        assert shop.command(*check).returncode == 0
        shop.server.store.update(LEASES, SYSTEM, NAME, lambda o: o["spec"].update(holderIdentity="other"))
        asked = shop.command(*check, "--no-lease", "--server-dry-run")
        assert asked.returncode == 0, asked.stdout
        assert shop.server.evictions
        shop.server.faults.on("get", refuse(ApiError(403, "Forbidden", "no right")), matching="/leases/")
        done = shop.command(*check)
        assert (done.returncode, "no right; --lease-namespace names another" in done.stdout) == (1, True)

    def test_the_name_of_a_namespace_is_one(self, shop: Scene) -> None:
        done = shop.command("apply", "plan.json", "--yes", "--unsteered", "--lease-namespace", "../x")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "stowplan: --lease-namespace: '../x' is not the name of a namespace\n"
