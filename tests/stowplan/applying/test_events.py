"""Every move is told as Events of its pods, and every eviction says which plan and move it is of."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest

from tests.support.api_server import ByMap, hang, refuse
from tests.support.api_server.errors import ApiError, Object
from tests.support.api_server.resources import EVENTS
from tests.support.applying import Scene, scene
from tests.support.kubectl import Client, needs_kubectl

pytestmark = needs_kubectl


@pytest.fixture
def told(home: Path) -> Iterator[Scene]:
    with scene(home) as found:
        yield found


def events(shop: Scene) -> list[Object]:
    return shop.server.store.all(EVENTS, "shop")


def test_every_move_has_events(told: Scene) -> None:
    assert told.run(events=True).stopped == ""
    found = events(told)
    for event in found:
        kubernetes_validate.validate(event, "1.36", strict=True)
        assert event["metadata"]["namespace"] == event["regarding"]["namespace"]
    seen = sorted((e["note"].split(", ")[1].split(":")[0], e["reason"]) for e in found)
    assert seen == sorted(
        [(f"move {m.id}", "Evicted") for m in told.plan.moves if m.kind != "place"]
        + [(f"move {m.id}", "Landed") for m in told.plan.moves]
    )
    first = next(e for e in found if e["regarding"]["name"] == "web-5d5b-aaaab")
    assert first["note"] == f"plan {told.plan.id}, move m0001: moved from n1 to n3"
    assert first["regarding"]["uid"] == told.plan.moves[0].pod.uid
    assert (first["type"], first["action"], first["reportingController"]) == ("Normal", "Evicting", "stowplan.io/apply")
    assert {e["type"] for e in found} == {"Normal"}


def test_kubectl_shows_them(told: Scene) -> None:
    assert told.run(events=True).stopped == ""
    shown = Client(told.server, told.home).run("get", "events.events.k8s.io", "-n", "shop").stdout
    assert len(shown.splitlines()) == len(events(told)) + 1


def test_a_run_that_resumes_writes_none_twice(told: Scene) -> None:
    assert told.run(events=True, stop_after=1).stopped == ""
    before = len(events(told))
    assert told.run(events=True).ledger.done
    ids = [event["metadata"]["name"] for event in events(told)]
    assert len(ids) == len(set(ids)) > before > 0


def test_a_refused_eviction_is_a_warning(told: Scene) -> None:
    why = "webhook says " + "x" * 2000
    told.server.faults.on("evict", refuse(ApiError(403, "Forbidden", why)), matching="web-5d5b-aaaab")
    told.run(events=True)
    (event,) = [event for event in events(told) if event["reason"] == "EvictionRefused"]
    assert event["type"] == "Warning"
    assert "move m0001: not moved from n1 to n3: webhook says x" in event["note"]
    assert len(event["note"]) == 1024


def test_a_pod_elsewhere_is_a_warning(home: Path) -> None:
    with scene(home, scheduler=lambda plan: ByMap({})) as shop:
        shop.run(events=True, elsewhere=10)
        reasons = {event["reason"]: event for event in events(shop)}
        assert reasons["LandedElsewhere"]["type"] == "Warning"
        assert " as planned" in reasons["LandedElsewhere"]["note"]


def test_events_cost_a_plan_nothing(told: Scene) -> None:
    """Without the right to write them, one line says so."""
    told.server.faults.on("create", refuse(ApiError(403, "Forbidden", "no right")), matching="/events", times=99)
    assert told.run(events=True).stopped == ""
    told.check_done()
    assert len([line for line in told.lines if "no right; no more Events are written" in line]) == 1


def test_a_server_that_hangs_is_not_waited_for(told: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stowplan.applying.events.PATIENCE", 0.5)
    told.server.faults.on("create", hang(20), matching="/events", times=99)
    began = time.monotonic()
    assert told.run(events=True).stopped == ""
    assert time.monotonic() - began < 15
    assert len([line for line in told.lines if "no more Events are written" in line]) == 1


def test_evictions_say_what_they_are_of(told: Scene) -> None:
    assert told.command("apply", "plan.json", "--server-dry-run", "--unsteered").returncode == 0
    assert told.run().stopped == ""
    bodies = [request.body for request in told.server.requests if request.wish == "evict"]
    assert len(bodies) > 4
    for body in bodies:
        assert body is not None
        kubernetes_validate.validate(body, "1.36", strict=True)
        about = body["metadata"]["annotations"]
        move = next(m for m in told.plan.moves if m.id == about["stowplan.io/move"])
        assert about["stowplan.io/plan"] == told.plan.id
        assert move.follows or move.pod.name == body["metadata"]["name"]


def test_they_can_be_left_out(told: Scene) -> None:
    done = told.command("apply", "plan.json", "--yes", "--unsteered", "--no-events", "--no-lease", "--poll", "0.25")
    assert done.returncode == 0, done.stderr
    assert not events(told)
    assert not [request for request in told.server.requests if "lease" in request.path]
    told.check_done()
