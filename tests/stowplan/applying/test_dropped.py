"""A workload that changes while a plan is carried out costs its own moves; the plan only if the rest does not hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stowplan.applying.journal import read_journal
from stowplan.applying.records import DroppedRecord
from stowplan.models.objective import PRESETS
from stowplan.models.plan import Plan
from stowplan.models.settings import SettingsDocument
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import deployment, namespace, node, stateful_set
from tests.support.api_server.resources import DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS
from tests.support.api_server.store import Store
from tests.support.api_server.workloads import roll_out
from tests.support.applying import Scene, scene
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

pytestmark = needs_kubectl
WEB, DB = "shop/web-5d5b-aaaab", "shop/db-1"
DRAIN = SettingsDocument(objective=PRESETS["balance"], release="1.36", scheduler="default-scheduler", drain=("n1",))


def manifests() -> list[Object]:
    """Return three nodes; a server and a database are on the first, another of each elsewhere."""
    return [
        namespace("kube-system"),
        namespace("shop"),
        *(node(name) for name in ("n1", "n2", "n3")),
        *deployment("shop", "web", ["n1", "n2"]),
        *stateful_set("shop", "db", ["n2", "n1"]),
    ]


def one_after_the_other(objects: list[Object]) -> Plan:
    """Return a plan that drains n1: first the server, then the database."""
    m = Moving(objects)
    return plan([m.move(WEB, "n3")], [m.move(DB, "n3")], settings=DRAIN, cordon=("n1",))


def the_other_way(objects: list[Object]) -> Plan:
    m = Moving(objects)
    return plan([m.move(DB, "n3")], [m.move(WEB, "n3")], settings=DRAIN, cordon=("n1",))


def parked(objects: list[Object]) -> Plan:
    """Return a plan that takes the server to n3 by way of n2."""
    m = Moving(objects)
    first, second = m.move(WEB, "n2"), m.move(DB, "n3")
    onward = m.move(WEB, "n3", source="n2", follows=first.id)
    return plan([first], [second, onward], settings=DRAIN, cordon=("n1",))


def scale(name: str, replicas: int) -> Callable[[Store], object]:
    resource = REPLICA_SETS if name.startswith("web") else STATEFUL_SETS
    return lambda store: store.update(resource, "shop", name, lambda found: found["spec"].update(replicas=replicas))


def rolled_out(store: Store) -> None:
    roll_out(store, "shop", "web", "7f7f")


def deleted(store: Store) -> None:
    store.remove(DEPLOYMENTS, "shop", "web")
    store.remove(REPLICA_SETS, "shop", "web-5d5b")
    for pod in store.all(PODS, "shop"):
        if pod["metadata"]["name"].startswith("web"):
            store.delete(PODS, "shop", pod["metadata"]["name"], {})


def stages(shop: Scene, **options: Any) -> list[str]:
    result = shop.run(**options)
    assert result.stopped == ""
    assert result.ledger.done
    return [progress.stage for progress in result.ledger.progress.values()]


def why(shop: Scene) -> list[str]:
    return [record.why for record in read_journal(shop.journal) if isinstance(record, DroppedRecord)]


FEWER = "ReplicaSet web-5d5b wants 0 pods now, and has 0"


@pytest.mark.parametrize(
    ("change", "said"),
    [(scale("web-5d5b", 0), FEWER), (rolled_out, FEWER), (deleted, "ReplicaSet web-5d5b is gone")],
    ids=["scaled down", "rolled out", "deleted"],
)
def test_before_the_first_wave(home: Path, change: Callable[[Store], object], said: str) -> None:
    with scene(home, manifests(), one_after_the_other) as shop:
        change(shop.server.store)
        shop.server.cluster.settle()
        assert stages(shop) == ["dropped", "landed"]
        assert why(shop) == [said]
        assert f"{WEB} is left out: {said}" in shop.lines
        assert shop.accepted().total() == 1


def test_when_the_pod_is_evicted(home: Path) -> None:
    with scene(home, manifests(), one_after_the_other) as shop:
        shop.server.faults.on("evict", lambda request: rolled_out(shop.server.store), matching="web", after=True)
        began = time.monotonic()
        assert stages(shop, pending=30) == ["dropped", "landed"]
        assert why(shop) == [FEWER]
        assert time.monotonic() - began < 15


def test_what_follows_is_left_out_too(home: Path) -> None:
    with scene(home, manifests(), parked) as shop:
        scale("web-5d5b", 0)(shop.server.store)
        shop.server.cluster.settle()
        assert stages(shop) == ["dropped", "landed", "dropped"]
        assert why(shop) == [FEWER, "the move before it was left out"]


def test_a_stateful_set_that_is_scaled_down(home: Path) -> None:
    """Its pod keeps its name, and is waited for as long as the set wants it."""
    with scene(home, manifests(), the_other_way) as shop:
        fewer = scale("db", 1)
        shop.server.faults.on("evict", lambda request: fewer(shop.server.store), matching="db-1", after=True)
        assert stages(shop) == ["dropped", "landed"]
        assert why(shop) == ["StatefulSet db wants 1 pods now, and has 1"]


def test_a_stateful_set_that_is_rolled_out_while_its_pod_is_replaced(home: Path) -> None:
    """The pod that comes is none of the plan's, wherever it comes up: the server has no token for its template."""

    def another_template(found: Object) -> None:
        found["spec"]["template"]["metadata"]["labels"]["controller-revision-hash"] = "db-2"

    with scene(home, manifests(), the_other_way) as shop:
        change = partial(shop.server.store.update, STATEFUL_SETS, "shop", "db", another_template)
        shop.server.faults.on("evict", lambda request: change(), matching="db-1", after=True)
        assert stages(shop) == ["dropped", "landed"]
        assert why(shop) == ["StatefulSet db makes its pods from another template now (a rollout)"]


def test_a_pod_that_somebody_deleted_is_not_taken_for_scaled_down(home: Path) -> None:
    with scene(home, manifests(), one_after_the_other) as shop:
        shop.server.store.remove(PODS, "shop", WEB.partition("/")[2])
        shop.server.cluster.settle()
        assert f"pod {WEB} is gone" in shop.run().stopped
        assert not shop.server.evictions


@pytest.mark.parametrize("is_begun", [False, True], ids=["before the first wave", "in the first wave"])
def test_pods_as_old_as_the_plan_are_not_taken_for_replacements(home: Path, is_begun: bool) -> None:
    """A snapshot may hold pods that were made in the second of the plan: the set still wants fewer."""
    objects = manifests()

    def make(objects: list[Object]) -> Plan:
        made = (the_other_way if is_begun else one_after_the_other)(objects)
        return made.model_copy(update={"created_at": "2026-01-01T00:00:00Z"})

    for manifest in objects:
        manifest["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    fewer = scale("web-5d5b", 1)
    with scene(home, objects, make) as shop:
        if is_begun:
            shop.server.faults.on("evict", lambda request: fewer(shop.server.store), matching="db-1", after=True)
        else:
            fewer(shop.server.store)
            shop.server.store.remove(PODS, "shop", WEB.partition("/")[2])
        shop.server.cluster.settle()
        assert stages(shop) == (["landed", "dropped"] if is_begun else ["dropped", "landed"])
        assert why(shop) == ["ReplicaSet web-5d5b wants 1 pods now, and has 1"]


def test_a_dry_run_shows_what_is_left_out_and_would_not_stop(home: Path) -> None:
    with scene(home, manifests(), one_after_the_other) as shop:
        scale("web-5d5b", 0)(shop.server.store)
        shop.server.cluster.settle()
        done = shop.command("apply", "plan.json", "--unsteered")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "left out: ReplicaSet web-5d5b wants 0 pods now, and has 0" in " ".join(done.stdout.split())
        assert not shop.journal.exists()


def test_the_rest_must_be_worth_it(home: Path) -> None:
    """Two pods go to n3, which would be no loss together; one alone takes one node more."""
    pack = SettingsDocument(objective=PRESETS["pack"], release="1.36", scheduler="default-scheduler")

    def make(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move(WEB, "n3")], [m.move("shop/db-0", "n3")], settings=pack)

    objects = manifests()
    for manifest in objects:
        manifest["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    with scene(home, objects, make) as shop:
        scale("web-5d5b", 1)(shop.server.store)
        shop.server.cluster.settle()
        worse = f"without the moves of {WEB} the rest of the plan makes the placement worse"
        assert shop.run().stopped == f"the cluster has changed before wave 1: {worse}"
        assert not shop.server.evictions


# -- pods that do not become ready ----------------------------------------------------------------------------


def unready(pod: Object) -> None:
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]


def test_pods_that_were_not_ready_before_are_not_waited_for(home: Path) -> None:
    with scene(home, manifests(), one_after_the_other) as shop:
        shop.server.cluster.never_ready.add("web")
        shop.server.store.update(PODS, "shop", WEB.partition("/")[2], unready)
        stopped = shop.run(timeout=1, await_unready=True).stopped
        assert f"the replacement of {WEB} is not ready" in stopped
        assert stages(shop) == ["landed", "landed"]
        assert any("n3 is not ready; the pod that it replaces was not either" in line for line in shop.lines)
        shop.check_done()


def test_some_may_be_skipped(home: Path) -> None:
    with scene(home, manifests(), one_after_the_other) as shop:
        shop.server.cluster.never_ready |= {"web", "db"}
        stopped = shop.run(timeout=1, skip_unready=1, unready_limit=0.1).stopped
        assert f"wave 2 is not over after 1 s: the replacement of {DB} is not ready" in stopped
        assert any("on n3 is not ready; it is not waited for longer" in line for line in shop.lines)
        assert stages(shop, skip_unready=2, unready_limit=0.1) == ["landed", "landed"]
        shop.check_done()
