"""A plan is carried out in a living cluster by the real kubectl."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from stowplan.applying import options
from stowplan.applying.journal import read_journal
from stowplan.models.errors import InputError, StowplanError
from stowplan.models.plan import Plan
from stowplan.models.stop import Stop
from tests.support.api_server import Pace
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import bare_pod, budget, daemon_set, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import NODES, PODS
from tests.support.api_server.workloads import roll_out
from tests.support.applying import FAST, Scene, scene
from tests.support.applying import shop as shop_manifests
from tests.support.applying import shop_plan as make_shop_plan
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import move, plan

pytestmark = needs_kubectl


def stages(scene: Scene, **options: float) -> dict[str, str]:
    """Run, and return the stage of each move."""
    result = scene.run(**options)
    return {name: progress.stage for name, progress in result.ledger.progress.items()}


def test_a_plan_is_carried_out_wave_by_wave(shop: Scene) -> None:
    result = shop.run()
    assert result.stopped == ""
    assert {progress.stage for progress in result.ledger.progress.values()} == {"landed"}
    shop.check_done()
    events = [record.event for record in read_journal(shop.journal)]
    assert [event for event in events if event.startswith("wave")] == ["wave", "wave-end", "wave", "wave-end"]
    assert events[-1] == "done"


def test_no_wave_begins_before_the_last_one_is_over(home: Path) -> None:
    """The second wave's first eviction comes after the first wave's replacements were ready and its pods gone."""
    with scene(home, pace=Pace(grace=0.5, ready=0.4)) as shop:
        assert shop.run().stopped == ""
        shop.check_done()
        first, second = (tuple(m.pod.uid for m in wave.moves if m.source) for wave in shop.plan.waves)
        story = [
            (kind, found["metadata"]["uid"], "deletionTimestamp" in found["metadata"])
            for _, kind, name, found in shop.server.store.events
            if name == "pods"
        ]
        gone = [story.index(("DELETED", uid, True)) for uid in first]
        begun = next(i for i, (_, uid, leaving) in enumerate(story) if uid == second[0] and leaving)
        assert max(gone) < begun


def test_what_is_done_is_not_done_again(shop: Scene) -> None:
    shop.run()
    asked = len(shop.server.evictions)
    result = shop.run()
    assert result.ledger.done
    assert len(shop.server.evictions) == asked
    shop.check_done()


def test_it_stops_after_a_wave_and_goes_on(shop: Scene) -> None:
    result = shop.run(stop_after=1)
    assert result.stopped == ""
    assert result.ledger.ended == {1}
    assert result.ledger.uid(shop.plan.waves[1].moves[1]) == result.ledger.progress["m0002"].landed.uid
    assert shop.run(stop_after=1).ledger.ended == {1}
    assert shop.run().ledger.done
    shop.check_done()


def test_pods_of_one_owner_are_interchangeable(home: Path) -> None:
    """Two replicas go to two nodes, and the scheduler hands the tokens out in the other order."""
    manifests = [
        namespace("kube-system"),
        *(node(f"n{i}") for i in range(1, 5)),
        *deployment("shop", "web", ["n1"] * 4),
    ]

    def make(objects: list[Object]) -> Plan:
        m = Moving(objects)
        pods = sorted(m.pods)
        return plan([m.move(pods[0], "n2"), m.move(pods[1], "n3"), m.move(pods[2], "n4")])

    with scene(home, manifests, make) as shop:
        tokens = shop.server.cluster.scheduler
        tokens.tokens.reverse()
        assert set(stages(shop).values()) == {"landed"}
        shop.check_done()


def test_a_pod_that_loses_its_node_is_not_waited_for(home: Path) -> None:
    manifests = [namespace("kube-system"), node("n1", cpu="1"), *deployment("shop", "web", ["n1"])]
    with scene(home, manifests, lambda o: plan([Moving(o).move("shop/web-5d5b-aaaab", None)])) as shop:
        shop.server.store.update(NODES, "", "n1", lambda found: found["spec"].update(unschedulable=True))
        assert stages(shop) == {"m0001": "leaving"}
        assert shop.standing() == {("web-5d5b", ""): 1}


def test_uids_that_a_plan_lacks_are_looked_up_and_kept(home: Path) -> None:
    def make(objects: list[Object]) -> Plan:
        made = make_shop_plan(objects)
        content = made.model_dump()
        for wave in content["waves"]:
            for m in wave["moves"]:
                m["pod"]["uid"] = ""
        return type(made).model_validate(content)

    with scene(home, make=make) as shop:
        assert set(stages(shop).values()) == {"landed"}
        shop.check_done()


def test_what_nobody_makes_again_is_not_evicted(home: Path) -> None:
    manifests = [namespace("kube-system"), node("n1"), node("n2"), bare_pod("shop", "lone", "n1")]
    with (
        scene(home, manifests, lambda o: plan([Moving(o).move("shop/lone", "n2")])) as shop,
        pytest.raises(InputError, match="move m0001 of pod shop/lone: owner: has no owner"),
    ):
        shop.run()


def test_a_stateful_set_and_daemons_in_the_way(home: Path) -> None:
    """In order, the second pod of a StatefulSet comes back only when the first is ready."""
    nodes = ["n1", "n2", "n3"]
    manifests = [
        namespace("kube-system"),
        *(node(name) for name in nodes),
        *stateful_set("shop", "db", ["n1", "n1"]),
        *daemon_set("shop", "log", nodes),
    ]

    def make(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move("shop/db-0", "n2"), m.move("shop/db-1", "n3")])

    with scene(home, manifests, make) as shop:
        assert set(stages(shop).values()) == {"landed"}
        shop.check_done()


class TestDrift:
    """What has changed since the plan was made stops it before anything else is done."""

    @pytest.mark.parametrize(
        ("kind", "said"),
        [
            ("gone", "pod shop/web-5d5b-aaaab is gone"),
            ("another", "pod shop/db-0 is another pod of the same name"),
            ("cordoned", "node n3 is cordoned"),
            ("elsewhere", "pod shop/db-1 is on n2, planned from n1"),
            ("budget", "PodDisruptionBudget shop/other is gone"),
        ],
    )
    def test_drift(self, home: Path, kind: str, said: str) -> None:
        def make(objects: list[Object]) -> Plan:
            if kind == "elsewhere":
                return plan([Moving(objects).move("shop/db-1", "n3", source="n1")])
            if kind == "budget":
                return plan([Moving(objects).move("shop/db-1", "n3", budgets=("other",))])
            return make_shop_plan(objects)

        with scene(home, make=make) as shop:
            if kind == "gone":
                shop.server.store.remove(PODS, "shop", "web-5d5b-aaaab")
            if kind == "another":
                shop.server.store.remove(PODS, "shop", "db-0")
                shop.server.cluster.settle()
            if kind == "cordoned":
                shop.server.store.update(NODES, "", "n3", lambda found: found["spec"].update(unschedulable=True))
            result = shop.run()
            assert result.stopped.startswith("the cluster has changed before wave 1: ")
            assert said in result.stopped
            assert not shop.server.evictions

    def test_room_that_somebody_else_has_taken(self, shop: Scene) -> None:
        """The scheduler's filters are asked before the wave, not after its pods are gone."""
        shop.server.store.load([bare_pod("kube-system", "large", "n3", cpu="3500m")])
        stopped = shop.run().stopped
        assert stopped.startswith("the cluster has changed before wave 1: pod shop/")
        assert "NodeResourcesFit refuses it on n3: Insufficient cpu" in stopped
        assert not shop.server.evictions

    def test_an_expired_plan_begins_nothing(self, home: Path) -> None:
        with scene(home, make=lambda o: make_shop_plan(o, expires_at="2026-01-01T00:00:00Z")) as shop:
            assert shop.run().stopped == "the plan expired at 2026-01-01T00:00:00Z; make a new one"
            assert not shop.server.evictions

    def test_a_plan_that_expires_within_a_wave_awaits_what_is_under_way(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Clock:
                return cls(9000 if shop.server.evictions else 2026, 11, 21, tzinfo=tz)

        with scene(home, pace=Pace(ready=1.0)) as shop:  # nothing has landed at the first look after the eviction
            monkeypatch.setattr(options, "datetime", Clock)
            result = shop.run()
            assert result.stopped == f"the plan expired at {shop.plan.expires_at}; make a new one"
            assert len(shop.server.evictions) == 1
            assert [result.ledger.stage(move) for move in shop.plan.waves[0].moves] == ["landed", "waiting"]

    def test_a_rollout_between_two_waves(self, shop: Scene) -> None:
        shop.run(stop_after=1)
        roll_out(shop.server.store, "shop", "web", "7f7f")
        shop.server.cluster.settle()
        asked = len(shop.server.evictions)
        worse = "without the moves of shop/web-5d5b-aaaac the rest of the plan makes the placement worse"
        assert shop.run().stopped == f"the cluster has changed before wave 2: {worse}"
        assert len(shop.server.evictions) == asked


class TestCommand:
    """The command as a user meets it."""

    def test_without_yes_nothing_is_changed(self, shop: Scene) -> None:
        done = shop.command("apply", "plan.json", "--server-dry-run")
        assert done.returncode == 0, done.stderr
        assert "5 moves in 2 waves." in done.stdout
        assert "Nothing was changed; --yes applies the plan." in done.stdout
        assert [asked.dry_run for asked in shop.server.evictions] == [True, True]
        assert not shop.terminated()
        assert not shop.journal.exists()

    def test_a_dry_run_tells_what_would_stop_it(self, shop: Scene) -> None:
        shop.server.store.remove(PODS, "shop", "web-5d5b-aaaab")
        done = shop.command("apply", "plan.json", "-o", "json")
        assert done.returncode == 1
        found = json.loads(done.stdout)
        assert found["dryRun"]
        assert found["stopped"] == ["pod shop/web-5d5b-aaaab is gone"]

    def test_a_dry_run_asks_the_server(self, shop: Scene) -> None:
        shop.server.store.load([budget("shop", "web2", "web", maxUnavailable=2)])
        done = shop.command("apply", "plan.json", "--server-dry-run")
        assert done.returncode == 1
        assert "not started: This pod has more than one PodDisruptionBudget" in done.stdout
        assert not shop.terminated()

    def test_a_plan_to_be_steered_is_not_carried_out_unsteered_by_mistake(self, shop: Scene) -> None:
        done = shop.command("apply", "plan.json", "--yes")
        assert done.returncode == 1
        assert "--serve: is missing: the plan was made to be steered" in done.stderr
        assert not shop.server.evictions
        assert not shop.journal.exists()
        assert "warning: --serve is missing" in shop.command("apply", "plan.json").stderr

    def test_with_yes_it_is_carried_out(self, shop: Scene) -> None:
        done = shop.command(
            "apply", "plan.json", "--yes", "--unsteered", "--poll", "0.05", "-o", "json", "--journal", "j"
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["complete"]
        assert [m["stage"] for m in found["moves"]] == ["landed"] * 5
        assert "wave 2 of 2 is over" in done.stderr
        assert (shop.home / "j").exists()
        shop.check_done()
        assert "landed,web-5d5b-" in shop.command("apply", "plan.json", "--journal", "j", "-o", "csv").stdout

    def test_ctrl_c_leaves_a_journal_to_go_on_from(self, shop: Scene) -> None:
        process = shop.start("apply", "plan.json", "--yes", "--unsteered", "--poll", "0.05")
        shop.server.faults.on("evict", lambda request: process.send_signal(signal.SIGINT), after=True)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130, err
        assert "Stopped: interrupted" in out
        assert err.endswith("stowplan: interrupted\n")
        assert shop.accepted().total() == 1
        assert [r.event for r in read_journal(shop.journal)][-3:] == ["intent", "answer", "stop"]
        assert shop.run().ledger.done
        shop.check_done()


def test_a_stop_signal_is_heeded_while_waiting(shop: Scene) -> None:
    stop = Stop()
    shop.server.cluster.never_ready.add("web")
    shop.server.faults.on("list", lambda request: stop.set(), matching="namespaces/shop/pods", skip=2)
    result = shop.run(stop=stop, poll=1.0)
    assert result.interrupted
    shop.server.cluster.heal()
    assert shop.run(FAST).ledger.done
    shop.check_done()


def test_a_plan_without_a_kubectl(shop: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StowplanError, match="kubectl is not installed or not in PATH"):
        shop.run(kubectl=shop.kubectl)


def test_moves_of_an_owner_without_uid_are_refused(home: Path) -> None:
    made = plan([move("shop/web-a", "n1", "n2")]).model_dump()
    made["waves"][0]["moves"][0]["owner"]["uid"] = ""
    bad = type(plan([move("shop/web-a", "n1", "n2")])).model_validate(made)
    with scene(home, shop_manifests(), lambda o: bad) as shop, pytest.raises(InputError, match="owner without a uid"):
        shop.run()


@pytest.mark.parametrize(("field", "name"), [("name", "--token=x"), ("name", "../secrets/x"), ("namespace", "a/b")])
def test_names_that_no_pod_can_have(home: Path, field: str, name: str) -> None:
    made = plan([move("shop/web-a", "n1", "n2")]).model_dump()
    made["waves"][0]["moves"][0]["pod"][field] = name
    bad = Plan.model_validate(made)
    with (
        scene(home, shop_manifests(), lambda o: bad) as shop,
        pytest.raises(InputError, match="is not the name of an object"),
    ):
        shop.run()
    assert not shop.server.requests


def test_two_people_with_two_journals(shop: Scene) -> None:
    """They get in each other's way, and no pod is evicted twice."""
    other = Scene(shop.server, shop.plan.model_copy(update={"id": "other"}), shop.home)
    with ThreadPoolExecutor(2) as both:
        results = [both.submit(scene.run) for scene in (shop, other)]
        ends = [result.result().stopped for result in results]
    assert all(end == "" or "the cluster has changed" in end for end in ends)
    shop.server.cluster.settle()
    gone = shop.terminated()
    assert len(gone) == len(set(gone)) <= 4
    assert set(shop.accepted()) == set(gone)


def test_a_plan_that_was_made_with_a_configuration_needs_it(home: Path) -> None:
    def make(objects: list[Object]) -> Plan:
        made = make_shop_plan(objects)
        return made.model_copy(update={"settings": made.settings.model_copy(update={"config": "scheduler.yaml"})})

    with scene(home, make=make) as shop:
        done = shop.command("apply", "plan.json")
        assert done.stderr.endswith(
            "stowplan: plan.json: settings.config: was made with scheduler.yaml; give it with --config\n"
        )
        kind = "KubeSchedulerConfiguration"
        config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": kind}
        (home / "scheduler.yaml").write_text(json.dumps(config))
        assert shop.command("apply", "plan.json", "--config", "scheduler.yaml").returncode == 0
