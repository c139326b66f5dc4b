"""Nodes are cordoned as long as the plan says, whatever happens in between."""

from __future__ import annotations

import copy
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.applying.journal import ApplyJournal, read_journal
from stowplan.applying.options import Guard, Halt
from stowplan.applying.records import DoneRecord, Record, StopRecord
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from tests.support.api_server import refuse
from tests.support.api_server.errors import ApiError, Object
from tests.support.api_server.resources import NODES
from tests.support.applying import Scene, scene
from tests.support.applying import shop as shop_manifests
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

pytestmark = needs_kubectl
MANIFESTS = [manifest for manifest in shop_manifests() if manifest["metadata"]["name"] != "new"]


def make(manifests: list[Object]) -> Plan:
    """Return a plan of two waves: n1 is to be cordoned for good, n2 while the first wave lasts."""
    m = Moving(manifests)
    made = plan([m.move("shop/db-0", "n3")], [m.move("shop/web-5d5b-aaaab", "n2")], cordon=("n1",))
    first, second = made.waves
    return made.model_copy(update={"waves": (first.model_copy(update={"cordon": ("n2",)}), second)})


@pytest.fixture
def shop(home: Path) -> Iterator[Scene]:
    with scene(home, MANIFESTS, make) as found:
        yield found


def cordoned(shop: Scene) -> set[str]:
    return {node["metadata"]["name"] for node in shop.server.store.all(NODES) if node["spec"].get("unschedulable")}


def history(shop: Scene) -> list[tuple[str, bool]]:
    """Return each change of a cordon."""
    now = dict.fromkeys(("n1", "n2", "n3"), False)
    story = []
    for _, _, resource, node in shop.server.store.events:
        name, closed = node["metadata"]["name"], bool(node.get("spec", {}).get("unschedulable"))
        if resource == "nodes" and now[name] != closed:
            now[name] = closed
            story.append((name, closed))
    return story


def test_one_for_good_and_one_for_a_wave(shop: Scene) -> None:
    assert shop.run().stopped == ""
    assert history(shop) == [("n1", True), ("n2", True), ("n2", False)]
    shop.check_done()


def test_what_somebody_else_has_cordoned_stays_so(shop: Scene) -> None:
    shop.server.store.update(NODES, "", "n2", lambda node: node["spec"].update(unschedulable=True))
    result = shop.run(stop_after=1)
    assert result.stopped == "the cluster has changed before wave 1: node n2 is cordoned"  # wave 2 needs it
    assert cordoned(shop) == {"n2"}


def test_a_cordon_does_not_stop_pods_that_tolerate_it(home: Path) -> None:
    """As operators of a cluster do, which tolerate everything: kube-scheduler lets them come to a cordoned node."""
    manifests = [*MANIFESTS]
    for i, found in enumerate(manifests):
        if found["kind"] in {"Pod", "ReplicaSet", "StatefulSet"}:
            manifests[i] = found = copy.deepcopy(found)
            spec = found["spec"] if found["kind"] == "Pod" else found["spec"]["template"]["spec"]
            spec["tolerations"] = [{"operator": "Exists"}]
    with scene(home, manifests, make) as shop:
        shop.server.store.update(NODES, "", "n2", lambda node: node["spec"].update(unschedulable=True))
        assert shop.run().stopped == ""
        assert cordoned(shop) == {"n1", "n2"}
        shop.check_done()


def test_a_wave_that_does_not_end_leaves_no_cordon(shop: Scene) -> None:
    shop.server.cluster.never_ready.add("db-0")
    assert "is not over after 1 s" in shop.run(timeout=1).stopped
    assert cordoned(shop) == {"n1"}
    shop.server.cluster.heal()
    assert shop.run().ledger.done
    assert history(shop)[1:] == [("n2", True), ("n2", False)] * 2


def test_a_node_that_cannot_be_opened_is_opened_by_the_next_run(shop: Scene) -> None:
    sad = refuse(ApiError(500, "InternalError", "etcd is sad"))
    shop.server.faults.on("patch", sad, matching="nodes/n2", skip=1, times=2)
    assert shop.run(kubectl=shop.kubectl).stopped == "uncordon n2: etcd is sad"
    assert cordoned(shop) == {"n1", "n2"}
    assert shop.run().ledger.done
    assert cordoned(shop) == {"n1"}
    shop.check_done()


@pytest.mark.parametrize("skip", [0, 1, 2])
def test_a_run_that_is_killed_at_a_cordon(shop: Scene, skip: int) -> None:
    process = shop.start("apply", "plan.json", "--yes", "--unsteered", "-q", "--poll", "0.1")
    shop.server.faults.on("patch", lambda request: process.kill(), matching="nodes/", skip=skip, after=skip == 1)
    process.communicate(timeout=60)
    assert process.returncode == -9
    assert shop.run().ledger.done
    assert cordoned(shop) == {"n1"}
    shop.check_done()


def kill_at(shop: Scene, node: str) -> None:
    """Begin, and be killed just after a node was cordoned."""
    process = shop.start("apply", "plan.json", "--yes", "--unsteered", "-q", "--poll", "0.1")
    shop.server.faults.on("patch", lambda request: process.kill(), matching=f"nodes/{node}", after=True)
    process.communicate(timeout=60)
    assert process.returncode == -9
    assert cordoned(shop) == {"n1", "n2"}


def test_a_run_that_stops_at_its_first_look_opens_what_an_earlier_one_cordoned(
    shop: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(shop, "n2")
    monkeypatch.setattr(Guard, "may_begin", lambda guard: stop_as("the plan expired"))
    assert shop.run().stopped == "the plan expired"
    assert cordoned(shop) == {"n1"}


def stop_as(why: str) -> None:
    raise Halt(why)


def test_a_run_that_finds_the_cluster_changed_opens_what_an_earlier_one_cordoned(shop: Scene) -> None:
    kill_at(shop, "n2")
    shop.server.store.update(NODES, "", "n3", lambda node: node["spec"].update(unschedulable=True))
    assert shop.run().stopped == "the cluster has changed before wave 1: node n3 is cordoned"
    assert cordoned(shop) == {"n1", "n3"}


def test_a_journal_that_cannot_be_written_any_more_leaves_no_cordon(
    shop: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ApplyJournal.append

    def append(book: ApplyJournal, record: Record) -> None:
        if cordoned(shop) >= {"n2"}:
            raise InputError("cannot be written: No space left on device", str(book.path))
        whole(book, record)

    monkeypatch.setattr(ApplyJournal, "append", append)
    stopped = shop.run().stopped
    assert stopped.endswith("No space left on device")
    assert cordoned(shop) == {"n1"}


def test_a_record_that_cannot_be_written_whole_is_taken_back(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ApplyJournal(home / "book") as book:
        book.append(DoneRecord(at="then"))
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(InputError, match="No space left"):
                book.append(StopRecord(at="later", why="x"))
        book.append(DoneRecord(at="now"))
    assert [record.at for record in read_journal(home / "book")] == ["then", "now"]


def full(file: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_dry_run_says_so(shop: Scene) -> None:
    told = shop.command("apply", "plan.json").stdout
    assert "Would cordon n1, for good\nWould cordon n2, while wave 1 lasts\n" in told
    assert not cordoned(shop)
