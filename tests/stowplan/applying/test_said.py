"""What is said while a wave waits, and after a stop: for whom and why, and whether the same command goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.models.plan import Plan
from tests.support.api_server.errors import Object
from tests.support.api_server.resources import BUDGETS, PODS
from tests.support.api_server.store import Store
from tests.support.applying import Scene, scene
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

pytestmark = needs_kubectl
NO_ROOM = "0/3 nodes are available: 3 Insufficient cpu."
PULLING = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling x"}}}
WAITS = "wave 1 waits: "
REPLACEMENT = r"the replacement of shop/web-5d5b-aaaab is not ready \(pod shop/web-5d5b-\w+ of ReplicaSet web-5d5b "


def one_server(objects: list[Object], **more: str) -> Plan:
    return plan([Moving(objects).move("shop/web-5d5b-aaaab", "n3", budgets=("web",))], **more)


@pytest.fixture
def small(home: Path) -> Iterator[Scene]:
    """Return a scene in which it is soon said what a wave waits for."""
    with scene(home, make=one_server) as found:
        yield found


def waits(shop: Scene) -> list[str]:
    """Return what was said of a wave that waits."""
    return [line.removeprefix(WAITS) for line in shop.lines if line.startswith(WAITS)]


def test_the_schedulers_message_is_said(home: Path) -> None:
    def full(store: Store, pod: Object) -> None:
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_ROOM}
        if not pod.get("status", {}).get("conditions"):
            name = pod["metadata"]["name"]
            store.update(PODS, "shop", name, lambda found: found.setdefault("status", {}).update(conditions=[said]))

    with scene(home, make=one_server, scheduler=lambda plan: full) as shop:
        shop.run(timeout=2)
        assert re.fullmatch(rf"{REPLACEMENT}is unscheduled: {re.escape(NO_ROOM)}\)", waits(shop)[-1])


def test_what_a_container_waits_for_is_said(small: Scene) -> None:
    small.server.cluster.never_ready.add("web")

    def pull(found: Object) -> None:
        found["status"]["containerStatuses"] = [PULLING]

    def all_pull() -> None:
        for pod in small.server.store.all(PODS, "shop"):
            if pod["spec"].get("nodeName") == "n3":
                small.server.store.update(PODS, "shop", pod["metadata"]["name"], pull)

    small.server.faults.on("any", lambda request: all_pull(), matching="/pods", skip=6, times=50)
    small.run(timeout=4)
    said = rf"{REPLACEMENT}on n3 is not ready: container main: ImagePullBackOff: Back-off pulling x\)"
    assert re.fullmatch(said, waits(small)[-1])


def test_the_answer_to_an_eviction_is_said(small: Scene) -> None:
    small.server.store.update(BUDGETS, "shop", "web", lambda found: found["spec"].update(maxUnavailable=0))
    small.server.cluster.settle()
    small.run(timeout=2)
    assert waits(small)[-1].startswith("shop/web-5d5b-aaaab is not evicted (Cannot evict pod as it would violate")


APPLY = ("apply", "plan.json", "--yes", "--unsteered", "--poll", "0.1", "--no-lease", "--no-events")
AGAIN, ANEW = "Run the same command again to resume; the journal is", "The plan has to be made anew from a new snapshot"


def test_the_same_command_is_offered_where_it_goes_on(home: Path) -> None:
    with scene(home, make=one_server) as shop:
        shop.server.cluster.never_ready.add("web")
        stopped = shop.command(*APPLY, "--timeout", "1")
        assert stopped.returncode == 1
        assert AGAIN in stopped.stdout
        assert ANEW not in stopped.stdout
        shop.server.cluster.heal()
        assert shop.command(*APPLY).returncode == 0


def test_a_new_plan_is_asked_for_where_the_rest_does_not_hold(home: Path) -> None:
    with scene(home, make=one_server) as shop:
        shop.server.store.remove(PODS, "shop", "web-5d5b-aaaab")
        stopped = shop.command(*APPLY)
        assert stopped.returncode == 1
        assert "pod shop/web-5d5b-aaaab is gone" in stopped.stdout
        assert ANEW in stopped.stdout
        assert AGAIN not in stopped.stdout


def test_nothing_is_offered_for_a_plan_that_has_expired(home: Path) -> None:
    with scene(home, make=lambda objects: one_server(objects, expires_at="2026-11-21T10:00:01Z")) as shop:
        stopped = shop.command(*APPLY)
        assert stopped.returncode == 1
        assert "make a new one" in stopped.stdout
        assert AGAIN not in stopped.stdout
        assert ANEW not in stopped.stdout
