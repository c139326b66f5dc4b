"""What goes wrong between us and the cluster, and inside it: the plan is carried out, or stops and says why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stowplan.applying.journal import read_journal
from stowplan.applying.records import AnswerRecord
from stowplan.models.objective import PRESETS
from stowplan.models.plan import Plan
from stowplan.models.settings import SettingsDocument
from tests.support.api_server import Cluster, Pace, Request, cut, emptiest, hang, refuse
from tests.support.api_server import cluster as living
from tests.support.api_server.errors import ApiError, Object, too_many_requests
from tests.support.api_server.manifests import budget, deployment, namespace, node
from tests.support.api_server.resources import BUDGETS, PODS
from tests.support.api_server.store import Store
from tests.support.applying import Scene, scene
from tests.support.applying import shop as shop_manifests
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

pytestmark = needs_kubectl
FIRST = "web-5d5b-aaaab"
RUNNING = [manifest for manifest in shop_manifests() if manifest["metadata"]["name"] != "new"]


def one_wave(manifests: list[Object]) -> Plan:
    """Return a plan of a web server and a database."""
    m = Moving(manifests)
    return plan([m.move("shop/web-5d5b-aaaab", "n3", budgets=("web",)), m.move("shop/db-0", "n3")])


@pytest.fixture(autouse=True)
def _by_kubectl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all runs be those of the real client: what it makes of faults is what this is about."""
    monkeypatch.setattr(Scene, "direct", property(lambda scene: scene.kubectl))


@pytest.fixture
def small(home: Path) -> Iterator[Scene]:
    with scene(home, RUNNING, one_wave) as found:
        yield found


def answers(shop: Scene, move: str) -> list[tuple[str, str]]:
    """Return what became of each attempt at a move."""
    records = read_journal(shop.journal)
    return [(r.outcome, r.message) for r in records if isinstance(r, AnswerRecord) and r.move == move]


class TestTheWay:
    """Faults after which the plan is carried out all the same: every pod once."""

    @pytest.mark.parametrize(
        ("fault", "after", "outcomes"),
        [
            (refuse(too_many_requests("later", 1)), False, ["later", "evicted"]),
            (refuse(ApiError(500, "InternalError", "etcd is sad")), False, ["later", "evicted"]),
            (refuse(ApiError(503, "ServiceUnavailable", "not now")), False, ["later", "evicted"]),
            (refuse(ApiError(504, "Timeout", "took too long")), True, ["later", "gone"]),
            (cut(), False, ["unknown", "evicted"]),
            (cut(), True, ["gone"]),
            (cut(0.5), True, ["gone"]),
        ],
        ids=["429", "500", "503", "timeout-but-done", "cut-before", "cut-after", "cut-in-the-middle"],
    )
    def test_evictions_that_fail(
        self, small: Scene, fault: Callable[[Request], None], after: bool, outcomes: list[str]
    ) -> None:
        small.server.faults.on("evict", fault, matching=FIRST, after=after)
        assert small.run().stopped == ""
        assert [outcome for outcome, _ in answers(small, "m0001")] == outcomes
        small.check_done()

    def test_a_server_that_hangs(self, small: Scene) -> None:
        small.server.faults.on("evict", hang(1.5), matching=FIRST)
        kubectl = replace(small.kubectl, timeout=0.7)
        assert small.run(kubectl=kubectl).stopped == ""
        assert answers(small, "m0001")[0][0] in {"unknown", "gone"}
        small.server.cluster.settle()
        assert small.standing() == small.wanted()
        assert len(small.terminated()) == 2

    @pytest.mark.parametrize("wish", ["list", "get"])
    def test_reads_that_fail(self, small: Scene, wish: str) -> None:
        small.server.faults.on(wish, cut(0.5), skip=1)
        small.server.faults.on(wish, refuse(ApiError(500, "InternalError", "etcd is sad")), matching="/pods", skip=4)
        assert small.run().stopped == ""
        small.check_done()

    def test_retry_after_is_kept(self, small: Scene) -> None:
        small.server.faults.on("evict", refuse(too_many_requests("later", 3)), matching=FIRST)
        small.run(pause_scale=0.5)
        asked = [r for r in read_journal(small.journal) if r.event == "intent" and r.move == "m0001"]
        assert len(asked) == 2
        assert "shop/web-5d5b-aaaab: refused for now: later; again in 1.5 s" in " ".join(small.lines)

    def test_a_budget_makes_pods_wait_for_each_other(self, home: Path) -> None:
        """Two pods of one wave under a budget of one: the second is refused until the first is replaced."""
        manifests = [
            namespace("kube-system"),
            *(node(name) for name in ("n1", "n2")),
            *deployment("shop", "web", ["n1", "n1"]),
            budget("shop", "web", "web", maxUnavailable=1),
        ]

        def make(objects: list[Object]) -> Plan:
            m = Moving(objects)
            return plan([m.move(pod, "n2", budgets=("web",)) for pod in sorted(m.pods)])

        with scene(home, manifests, make, pace=Pace(ready=2.5)) as shop:
            assert shop.run(pause_scale=0.2).stopped == ""
            outcomes = answers(shop, "m0002")
            assert outcomes[0][0] == "later"
            assert "The disruption budget web needs 1 healthy pods and has 1 currently" in outcomes[0][1]
            assert outcomes[-1][0] == "evicted"
            shop.check_done()

    def test_a_list_that_is_older_than_what_was_done(self, shop: Scene) -> None:
        """The first looks at the second wave show the cluster before the first one."""
        shop.run(stop_after=1)
        faults, old = shop.server.faults, Cluster(shop_manifests()).store
        faults.stale = old

        def refresh(request: Request) -> None:
            faults.stale = None

        faults.on("list", refresh, matching="/api/v1/pods", skip=1)
        assert shop.run().stopped == ""
        shop.check_done()


class TestSomebodyElse:
    def test_a_pod_that_somebody_else_deletes_first_is_not_evicted(self, small: Scene) -> None:
        def delete(request: Request) -> None:
            small.server.store.delete(PODS, "shop", FIRST, {})

        small.server.faults.on("get", delete, matching=FIRST)
        assert small.run().stopped == ""
        assert answers(small, "m0001") == [("gone", "another client deleted the pod")]
        assert small.accepted().total() == 1
        small.server.cluster.settle()
        assert small.standing() == small.wanted()

    def test_a_pod_that_is_replaced_between_look_and_eviction(self, small: Scene) -> None:
        """The uid keeps the new pod of the old name safe."""

        def replace(request: Request) -> None:
            if not any(pod["metadata"].get("deletionTimestamp") for pod in small.server.store.all(PODS)):
                small.server.store.remove(PODS, "shop", "db-0")
                small.server.cluster.settle()

        small.server.faults.on("evict", replace, matching="db-0")
        small.run()
        assert answers(small, "m0002")[0][0] == "gone"
        assert "Precondition failed" in answers(small, "m0002")[0][1]
        assert small.server.store.get(PODS, "shop", "db-0")["metadata"]["uid"] not in small.terminated()


class TestStopRules:
    def test_two_budgets_are_refused_for_good(self, shop: Scene) -> None:
        shop.server.store.load([budget("shop", "web2", "web", maxUnavailable=2)])
        shop.server.cluster.settle()
        result = shop.run()
        assert result.stopped.startswith("refused for good in wave 1: shop/web-5d5b-aaaab (This pod has more than one")
        assert {name: p.stage for name, p in result.ledger.progress.items()}["m0002"] == "landed"
        assert shop.accepted().total() == 1

    def test_forbidden(self, shop: Scene) -> None:
        no = ApiError(403, "Forbidden", 'pods "x" is forbidden: cannot create resource "pods/eviction"')
        shop.server.faults.on("evict", refuse(no), times=9)
        result = shop.run()
        assert "refused for good in wave 1: shop/web-5d5b-aaaab, shop/db-0" in result.stopped
        assert not shop.terminated()

    def test_replacements_elsewhere(self, home: Path) -> None:
        def make(objects: list[Object]) -> Plan:
            m = Moving(objects)
            pack = SettingsDocument(objective=PRESETS["pack"], release="1.36", scheduler="default-scheduler")
            return plan([m.move("shop/web-5d5b-aaaab", "n2")], [m.move("shop/db-0", "n2")], settings=pack)

        with scene(home, RUNNING, make, lambda plan: emptiest) as shop:
            result = shop.run()
            assert result.stopped.startswith("1 pod came up on another node than planned, none may, and the rest")
            assert result.stopped.endswith(" of ReplicaSet web-5d5b is on n3, planned for n2")
            assert shop.accepted().total() == 1

    def test_some_may_be_elsewhere(self, home: Path) -> None:
        def away(store: object, pod: Object) -> str:
            return "n2"

        def make(objects: list[Object]) -> Plan:
            m = Moving(objects)
            return plan([m.move("shop/web-5d5b-aaaab", "n3")], [m.move("shop/db-0", "n2")])

        with scene(home, RUNNING, make, lambda plan: away) as shop:
            result = shop.run(elsewhere=1)
            assert [p.stage for p in result.ledger.progress.values()] == ["elsewhere", "landed"]
            assert result.ledger.done

    def test_a_replacement_without_a_node(self, home: Path) -> None:
        with scene(home, RUNNING, one_wave, lambda plan: lambda store, pod: None) as shop:
            stopped = shop.run(pending=0.3).stopped
            owned = r"pod shop/(web-5d5b-\w+ of ReplicaSet web-5d5b|db-0 of StatefulSet db)"
            assert re.fullmatch(rf"{owned} is unscheduled for 0.3 s", stopped)

    def test_a_controller_that_makes_no_replacement(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def make(objects: list[Object]) -> Plan:
            return plan([Moving(objects).move("shop/web-5d5b-aaaab", "n3")])

        with scene(home, RUNNING, make) as shop:
            monkeypatch.setattr(living, "sync_workloads", lambda store: None)
            stopped = shop.run(pending=0.3).stopped
            assert stopped == "no replacement of pod shop/web-5d5b-aaaab of ReplicaSet web-5d5b for 0.3 s"

    def test_a_replacement_that_has_to_wait_for_the_old_pod(self, home: Path) -> None:
        """Two pods that exclude each other: as long as the old one is there, nobody expects the new one to stand."""

        def when_gone(store: Store, pod: Object) -> str | None:
            return None if any(p["metadata"].get("deletionTimestamp") for p in store.all(PODS)) else "n3"

        def make(objects: list[Object]) -> Plan:
            return plan([Moving(objects).move("shop/web-5d5b-aaaab", "n3")])

        with scene(home, make=make, scheduler=lambda plan: when_gone, pace=Pace(grace=1.0)) as shop:
            assert shop.run(pending=0.4).stopped == ""

    def test_a_replacement_that_does_not_become_ready(self, small: Scene) -> None:
        small.server.cluster.never_ready.add("web")
        result = small.run(timeout=1)
        assert re.fullmatch(
            r"wave 1 is not over after 1 s: the replacement of shop/web-5d5b-aaaab is not ready "
            r"\(pod shop/web-5d5b-\w+ of ReplicaSet web-5d5b on n\d is not ready\)",
            result.stopped,
        )
        small.server.cluster.heal()
        assert small.run().ledger.done
        small.check_done()

    def test_a_budget_that_never_allows_it(self, small: Scene) -> None:
        small.server.store.update(BUDGETS, "shop", "web", lambda found: found["spec"].update(maxUnavailable=0))
        small.server.cluster.settle()
        result = small.run(timeout=1)
        assert "shop/web-5d5b-aaaab is not evicted (Cannot evict pod" in result.stopped

    def test_a_disruption_controller_that_sleeps(self, small: Scene) -> None:
        small.server.cluster.budgets_sleep = True
        small.server.store.update(BUDGETS, "shop", "web", lambda found: found["spec"].update(maxUnavailable=2))
        result = small.run()
        assert "PodDisruptionBudget shop/web: its status is older than its spec" in result.stopped
        assert not small.server.evictions

    def test_a_cluster_that_cannot_be_reached_any_more(self, small: Scene) -> None:
        sad = refuse(ApiError(500, "InternalError", "etcd is sad"))
        small.server.faults.on("any", sad, matching="/pods", skip=1, times=10_000)
        result = small.run(timeout=1, pause_scale=1)
        assert result.stopped.startswith("wave 1 is not over after 1 s: shop/web-5d5b-aaaab is not evicted; ")
        assert result.stopped.endswith("get pods: etcd is sad")
        assert not small.accepted()
