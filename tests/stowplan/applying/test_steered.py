"""All parts together: a plan is applied while ``stowplan serve`` steers a scheduler that decides as kube-scheduler."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import yaml

from stowplan.applying.extender_client import tell_extender
from stowplan.emitters.emission import EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.models.objective import PRESETS
from stowplan.models.plan import Plan
from stowplan.models.settings import SettingsDocument
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K36
from tests.support.api_server import ByMap
from tests.support.api_server.errors import ApiError, Object
from tests.support.api_server.faults import refuse
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.manifests import bare_pod, deployment, namespace
from tests.support.api_server.manifests import node as make_node
from tests.support.api_server.resources import NODES, PODS, REPLICA_SETS
from tests.support.api_server.store import Store
from tests.support.applying import scene
from tests.support.applying import shop as shop_manifests
from tests.support.extender import serving
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

pytestmark = needs_kubectl
MANIFESTS = [manifest for manifest in shop_manifests() if manifest["metadata"]["name"] != "new"]


def make(objects: list[Object]) -> Plan:
    """Return a plan that kube-scheduler would not follow: it prefers the empty node."""
    m = Moving(objects)
    return plan([m.move("shop/web-5d5b-aaaab", "n2")], [m.move("shop/db-0", "n2"), m.move("shop/web-5d5b-aaaac", "n3")])


def steered(made: Plan, url: str) -> Profile:
    """Return the profile that ``emit --to extender`` writes for a plan."""
    (file,) = emit_extender(made, EmitOptions(url=url)).files
    return make_profiles(yaml.safe_load(file.content), K36, "first")["default-scheduler"]


PACK = SettingsDocument(objective=PRESETS["pack"], release="1.36", scheduler="default-scheduler")


def packing(objects: list[Object]) -> Plan:
    """Return a plan that leaves the third node empty, which kube-scheduler prefers."""
    m = Moving(objects)
    return plan([m.move("shop/web-5d5b-aaaab", "n2")], [m.move("shop/db-0", "n2")], settings=PACK)


def test_pods_elsewhere_stop_the_plan_where_the_rest_is_worse_for_it(home: Path) -> None:
    with scene(home, MANIFESTS, packing, lambda plan: ByFramework(default_profile(K36, "first"))) as shop:
        stopped = shop.run().stopped
        found = re.fullmatch(
            r"1 pod came up on another node than planned, none may, and the rest of the plan is worse for it: "
            r"shop/web-5d5b-\w+ of ReplicaSet web-5d5b is on n3, planned for n2",
            stopped,
        )
        assert found, stopped
        assert shop.run(elsewhere=1, stop_after=1).stopped == ""


def test_a_run_that_is_resumed_after_a_stop_looks_before_it_evicts_more(home: Path) -> None:
    """One of two pods could go, and its replacement is elsewhere: the other one stays from then on."""

    def both(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move(f"shop/web-5d5b-{name}", "n2") for name in ("aaaab", "aaaac")], settings=PACK)

    with scene(home, MANIFESTS, both, lambda plan: ByMap({"web-5d5b": ["n3"]})) as shop:
        later = refuse(ApiError(429, "TooManyRequests", "not now"))
        shop.server.faults.on("evict", later, matching="aaaac", times=1_000)
        for _ in range(2):
            assert "came up on another node than planned" in shop.run().stopped
            assert shop.accepted().total() == 1
            shop.server.faults.clear()


def test_pods_elsewhere_are_accepted_where_the_rest_is_as_good(home: Path) -> None:
    """n3 is as empty as n4; the plan balances, so either will do, and a restarted run thinks so too."""

    def make(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move("shop/web-5d5b-aaaab", "n4")], [m.move("shop/db-0", "n4")])

    manifests = [*MANIFESTS, make_node("n4")]
    chosen = {"web-5d5b": ["n3"], "db-0": ["n4"]}
    with scene(home, manifests, make, lambda plan: ByMap(chosen)) as shop:
        assert shop.run(stop_after=1).stopped == ""
        assert any("is on n3, planned for n4; the rest of the plan is as good" in line for line in shop.lines)
        result = shop.run()
        assert result.stopped == ""
        assert [p.stage for p in result.ledger.progress.values()] == ["elsewhere", "landed"]
        assert set(shop.accepted().values()) == {1}


def test_the_cordons_of_a_wave_do_not_count_against_what_comes_after_it(home: Path) -> None:
    """n3 is as empty as n4, and the pod of the next wave belongs on the node that is cordoned as yet."""

    def make(objects: list[Object]) -> Plan:
        m = Moving(objects)
        made = plan([m.move("shop/web-5d5b-aaaab", "n4")], [m.move("shop/db-0", "n5")])
        first, second = made.waves
        return made.model_copy(update={"waves": (first.model_copy(update={"cordon": ("n5",)}), second)})

    manifests = [*MANIFESTS, make_node("n4"), make_node("n5")]
    with scene(home, manifests, make, lambda plan: ByMap({"web-5d5b": ["n3"], "db-0": ["n5"]})) as shop:
        assert shop.run().stopped == ""
        assert [p.stage for p in shop.run().ledger.progress.values()] == ["elsewhere", "landed"]


def test_owners_that_exchange_their_nodes_are_judged_together(home: Path) -> None:
    """The first replacement alone would be worse where it is; with the second in its place, the two are as good."""

    def make(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move("shop/web-5d5b-aaaab", "n3"), m.move("shop/db-0", "n2")], [m.move("shop/db-1", "n1")])

    def schedule(store: Store, pod: Object) -> str | None:
        if pod["metadata"]["name"] == "db-1":
            return "n1"
        if pod["metadata"]["name"] != "db-0":
            return "n2"
        return "n3" if opened.is_set() else None

    def open_up() -> None:
        opened.set()  # and a node that changes lets all be tried again
        shop.server.store.update(NODES, "", "n1", lambda found: found["metadata"].update(labels={}))

    opened = threading.Event()
    with scene(home, MANIFESTS, make, lambda plan: schedule) as shop:
        threading.Timer(2.0, open_up).start()
        assert shop.run().stopped == ""
        assert [p.stage for p in shop.run().ledger.progress.values()] == ["elsewhere", "elsewhere", "landed"]


def test_steered_pods_land_as_planned(home: Path) -> None:
    with (
        serving(make(MANIFESTS), home) as extender,
        scene(home, MANIFESTS, make, lambda plan: ByFramework(steered(plan, extender.url))) as shop,
    ):
        assert shop.run(serve=extender.url).stopped == ""
        shop.check_done()


def test_pods_that_are_held_until_their_wave_are_waited_for_until_the_scheduler_tries_them_again(home: Path) -> None:
    """Nothing changes in the cluster when the second wave begins, so kube-scheduler does so after some time."""
    pods = deployment("shop", "big", ["", ""])
    manifests = [*(make_node(name) for name in ("n1", "n2")), namespace("kube-system"), namespace("shop"), *pods]

    def made(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move("shop/big-5d5b-aaaab", "n1")], [m.move("shop/big-5d5b-aaaac", "n2")])

    def schedule(made: Plan) -> ByFramework:
        tell_extender(extender.url, made, 1)  # from here on, waves are opened by request
        return ByFramework(steered(made, extender.url))

    with serving(made(manifests), home) as extender, scene(home, manifests, made, schedule) as shop:
        shop.server.cluster.settle()
        shop.server.cluster.flush = 9.0
        result = shop.run(serve=extender.url, pending=1.0)
        assert (result.stopped, [p.stage for p in result.ledger.progress.values()]) == ("", ["landed", "landed"])


def test_nothing_is_begun_with_the_extender_of_another_plan(home: Path) -> None:
    other = make(MANIFESTS).model_copy(update={"created_at": "2026-11-20T10:00:00+00:00"})
    with serving(other, home) as extender, scene(home, MANIFESTS, make) as shop:
        stopped = shop.run(serve=extender.url).stopped
        assert stopped.startswith(
            f"{extender.url} does not open wave 1: HTTP 409 plan plan-7f3a of 2026-11-20T10:00:00+0"
        )
        assert not shop.server.evictions


def test_nothing_is_begun_without_the_extender(home: Path) -> None:
    with scene(home, MANIFESTS, make) as shop:
        stopped = shop.run(serve="http://127.0.0.1:1/v1").stopped
        assert stopped.startswith("http://127.0.0.1:1/v1 does not answer, so nothing steers the replacements: ")
        assert not shop.server.evictions


# -- pods elsewhere although a server steers ------------------------------------------------------------------


def to_fourth(objects: list[Object]) -> Plan:
    """Return a plan that brings a server to n4, then a database."""
    m = Moving(objects)
    return plan([m.move("shop/web-5d5b-aaaab", "n4")], [m.move("shop/db-0", "n3")])


def taken(store: Store) -> None:
    """Let somebody else take all the room of n4."""
    store.load([bare_pod("shop", "big", "n4", cpu="4")])


FOUR = [*MANIFESTS, make_node("n4")]
ELSEWHERE = {"web-5d5b": ["n3"], "db-0": ["n3"]}


def test_a_pod_elsewhere_is_accepted_where_its_node_cannot_take_it(home: Path) -> None:
    """The server had the right node, which somebody else took: the rest is as good as it can be."""
    with scene(home, FOUR, to_fourth, lambda plan: ByMap(ELSEWHERE)) as shop, serving(shop.plan, home) as first:
        shop.server.faults.on("evict", lambda request: taken(shop.server.store), matching="web", after=True)
        result = shop.run(serve=first.url)
        assert result.stopped == ""
        assert [p.stage for p in result.ledger.progress.values()] == ["elsewhere", "landed"]
        assert set(shop.accepted().values()) == {1}


def test_of_a_pod_that_was_not_steered_it_is_said(home: Path) -> None:
    """The rest is worse with the pod there, although its node has room: the scheduler did not ask the server."""
    with scene(home, FOUR, to_fourth, lambda plan: ByMap(ELSEWHERE)) as shop, serving(shop.plan, home) as first:
        stopped = shop.run(serve=first.url).stopped
        found = re.fullmatch(
            r"1 pod came up on another node than planned, none may, and the rest of the plan is worse for it, although "
            r"n4 has room for shop/web-5d5b-\w+ \(is the scheduler's extender asked\?\): "
            r"shop/web-5d5b-\w+ of ReplicaSet web-5d5b is on n3, planned for n4",
            stopped,
        )
        assert found, stopped
        assert shop.accepted().total() == 1


def test_a_pod_that_was_not_steered_does_not_stop_what_is_as_good(home: Path) -> None:
    """The server was down while the pod was scheduled: n3 is as empty as n4, and the rest loses nothing."""

    def make(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move("shop/web-5d5b-aaaab", "n4")], [m.move("shop/db-0", "n4")])

    chosen = {"web-5d5b": ["n3"], "db-0": ["n4"]}
    with scene(home, FOUR, make, lambda plan: ByMap(chosen)) as shop, serving(shop.plan, home) as first:
        result = shop.run(serve=first.url, stop_after=1)
        assert result.stopped == ""
        (line,) = (line for line in shop.lines if "so it goes on" in line)
        assert re.search(r"planned for n4, although n4 has room for shop/web-5d5b-\w+ \(is the scheduler's", line), line


def test_what_was_accepted_stays_so_when_the_cluster_changes_again(home: Path) -> None:
    """The room is free again when the plan is taken up after a stop for another reason."""
    with scene(home, FOUR, to_fourth, lambda plan: ByMap(ELSEWHERE)) as shop, serving(shop.plan, home) as first:
        shop.server.cluster.never_ready.add("web")
        shop.server.faults.on("evict", lambda request: taken(shop.server.store), matching="web", after=True)
        assert "is not ready" in shop.run(serve=first.url, timeout=3).stopped
        shop.server.store.remove(PODS, "shop", "big")
        shop.server.cluster.heal()
        assert shop.run(serve=first.url).stopped == ""


def test_the_place_of_a_move_that_was_left_out_is_as_good(home: Path) -> None:
    """The server keeps n4 for the workload, which is scaled down; its next replacement comes there and not to n5."""

    def make(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move("shop/web-5d5b-aaaab", "n4")], [m.move("shop/web-5d5b-aaaac", "n5")])

    def fewer(store: Store) -> None:
        store.update(REPLICA_SETS, "shop", "web-5d5b", lambda found: found["spec"].update(replicas=2))

    free = [manifest for manifest in FOUR if manifest["kind"] != "PodDisruptionBudget"]
    manifests = [*free, make_node("n5"), bare_pod("shop", "small", "n4", cpu="1")]
    chosen = {"web-5d5b": ["n4"]}
    with scene(home, manifests, make, lambda plan: ByMap(chosen)) as shop, serving(shop.plan, home) as first:
        shop.server.faults.on("evict", lambda request: fewer(shop.server.store), matching="aaaab", after=True)
        result = shop.run(serve=first.url)
        assert result.stopped == ""
        assert [p.stage for p in result.ledger.progress.values()] == ["dropped", "elsewhere"]
