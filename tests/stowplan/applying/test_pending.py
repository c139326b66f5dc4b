"""Pods that wait for a node and get it in another order than planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowplan.applying.apply import Applied
from stowplan.models.plan import Plan
from tests.support.api_server import ByMap, Pace
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import bare_pod, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import PODS
from tests.support.applying import scene
from tests.support.extender import serving
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

pytestmark = needs_kubectl


def manifests() -> list[Object]:
    """Return three nodes, and a Deployment whose three pods wait."""
    pods = deployment("shop", "big", ["", "", ""])
    return [namespace("kube-system"), namespace("shop"), *(node(name) for name in ("n1", "n2", "n3")), *pods]


def make(objects: list[Object]) -> Plan:
    """Return a plan with a node for each of them, in two waves."""
    m = Moving(objects)
    names = sorted(m.pods)
    return plan([m.move(names[0], "n1"), m.move(names[1], "n2")], [m.move(names[2], "n3")])


def test_pending_pods_of_one_owner_may_swap_their_nodes(home: Path) -> None:
    turned = ByMap({"big-5d5b-aaaab": ["n2"], "big-5d5b-aaaac": ["n3"], "big-5d5b-aaaad": ["n1"]})
    with scene(home, manifests(), make, lambda plan: turned) as shop:
        assert shop.run().stopped == ""
        nodes = {p["metadata"]["name"][-1]: p["spec"].get("nodeName") for p in shop.server.store.all(PODS)}
        assert nodes == {"b": "n2", "c": "n3", "d": "n1"}
        assert not shop.server.evictions


def stages(result: Applied) -> list[str]:
    return [progress.stage for progress in result.ledger.progress.values()]


def test_a_pending_pod_on_no_planned_node_costs_its_own_move(home: Path) -> None:
    """It is where kube-scheduler took it; the rest of the plan holds, and another pod gets its node."""
    astray = ByMap({"big-5d5b-aaaab": ["n2"], "big-5d5b-aaaac": ["n2"], "big-5d5b-aaaad": ["n1"]})
    with scene(home, manifests(), make, lambda plan: astray) as shop:
        result = shop.run()
        assert (result.stopped, stages(result)) == ("", ["landed", "landed", "elsewhere"])
        assert any("is on n2, planned for n3; it waited for a node, and the rest" in line for line in shop.lines)


def with_database() -> list[Object]:
    """Return the same with a database on n1, and one pod that waits."""
    pods = [*deployment("shop", "big", [""]), *stateful_set("shop", "db", ["n1"], "3")]
    return [namespace("kube-system"), namespace("shop"), *(node(name) for name in ("n1", "n2", "n3")), *pods]


def to_the_second(objects: list[Object]) -> Plan:
    """Return a plan that takes the database to n2, then brings the pod to n3."""
    m = Moving(objects)
    return plan([m.move("shop/db-0", "n2")], [m.move("shop/big-5d5b-aaaab", "n3")])


@pytest.mark.parametrize("serve", [False, True])
def test_a_pod_that_was_placed_before_its_wave_does_not_stop_the_plan(home: Path, serve: bool) -> None:
    """Nothing held it, so it is on n1, which the database leaves: one pod a node, as planned, and then as good."""
    chosen = ByMap({"big-5d5b": ["n1"], "db-0": ["n2"]})
    with scene(home, with_database(), to_the_second, lambda plan: chosen) as shop, serving(shop.plan, home) as first:
        shop.server.cluster.settle()
        result = shop.run(serve=first.url if serve else None)
        assert (result.stopped, stages(result)) == ("", ["landed", "elsewhere"])
        (line,) = (line for line in shop.lines if "so it goes on" in line or "the rest of the plan holds" in line)
        assert line.startswith("shop/big-5d5b-aaaab of ReplicaSet big-5d5b is on n1, planned for n3")
        assert shop.accepted().total() == 1


def test_a_pod_that_took_the_room_of_the_rest_stops_the_plan(home: Path) -> None:
    """On n2, it leaves no room for the database; a dry run says the same of the plan."""
    chosen = ByMap({"big-5d5b": ["n2"], "db-0": ["n2"]})
    objects = [*with_database(), bare_pod("shop", "small", "n2", cpu="1")]
    with scene(home, objects, to_the_second, lambda plan: chosen) as shop:
        shop.server.cluster.settle()
        result = shop.run()
        assert result.obsolete
        assert result.stopped.startswith("the cluster has changed before wave 1: pod shop/db-0: ")
        assert not shop.server.evictions


def test_a_pod_that_makes_the_rest_worse_stops_the_plan(home: Path) -> None:
    """The database would go to the node where the pod is, and balance the nodes less than before."""
    chosen = ByMap({"big-5d5b": ["n2"], "db-0": ["n2"]})
    with scene(home, with_database(), to_the_second, lambda plan: chosen) as shop:
        shop.server.cluster.settle()
        result = shop.run()
        assert result.stopped == (
            "the cluster has changed before wave 1: pod shop/big-5d5b-aaaab is on n2, planned from no node, "
            "and the rest of the plan is worse for it"
        )
        assert not shop.server.evictions
        assert shop.run(elsewhere=1).stopped == ""


def test_a_pod_that_the_plan_left_waiting_may_have_taken_the_place_before_the_run(home: Path) -> None:
    """Two pods wait, and n1 has room for one: the other one has got it, and the named one waits in its stead."""

    def made(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move("shop/big-5d5b-aaaab", "n1")], [m.move("shop/db-0", "n3")])

    objects = [
        *(namespace(name) for name in ("kube-system", "shop")),
        *(node(name) for name in ("n1", "n2", "n3")),
        *deployment("shop", "big", ["", ""], "3"),
        *stateful_set("shop", "db", ["n2"], "3"),
    ]
    chosen = ByMap({"big-5d5b-aaaac": ["n1"], "big-5d5b-aaaab": ["n0"], "db-0": ["n3"]})
    with scene(home, objects, made, lambda plan: chosen) as shop:
        shop.server.cluster.settle()
        result = shop.run()
        assert (result.stopped, stages(result)) == ("", ["landed", "landed"])
        landed = result.ledger.progress["m0001"].landed
        assert landed is not None
        assert landed.pod == "big-5d5b-aaaac"


def mixed() -> list[Object]:
    """Return three nodes, and a Deployment with a pod on n1 and one that waits."""
    pods = deployment("shop", "big", ["n1", ""])
    return [namespace("kube-system"), namespace("shop"), *(node(name) for name in ("n1", "n2", "n3")), *pods]


@pytest.mark.parametrize("waves", [1, 2])
def test_a_replacement_waits_in_the_stead_of_a_pod_that_took_its_place(home: Path, waves: int) -> None:
    """What waits gets the place of the evicted pod, whose replacement gets the other, in that wave or a later one."""

    def made(objects: list[Object]) -> Plan:
        m = Moving(objects)
        moves = [m.move("shop/big-5d5b-aaaab", "n2"), m.move("shop/big-5d5b-aaaac", "n3")]
        return plan(moves) if waves == 1 else plan(moves[:1], moves[1:])

    chosen = {"big-5d5b-aaaac": ["n2"], "big-5d5b": ["n3"]}
    pace = Pace(schedule=1.5)
    with scene(home, mixed(), made, lambda plan: ByMap(chosen), pace=pace) as shop:
        first = shop.run(stop_after=1)
        assert (first.stopped, stages(first)[0]) == ("", "landed")
        assert stages(shop.run()) == ["landed", "landed"]


def test_such_a_wave_can_be_taken_up_again(home: Path) -> None:
    """The run stops while the replacement is not ready on the node that was left: the same command goes on."""

    def made(objects: list[Object]) -> Plan:
        m = Moving(objects)
        return plan([m.move("shop/big-5d5b-aaaab", "n2"), m.move("shop/big-5d5b-aaaac", "n3")])

    chosen = {"big-5d5b-aaaac": ["n2"], "big-5d5b": ["n3"]}
    with scene(home, mixed(), made, lambda plan: ByMap(chosen)) as shop:
        shop.server.cluster.never_ready.add("big-5d5b")
        stopped = shop.run(timeout=3, skip_unready=1, unready_limit=0.5)
        assert (stages(stopped).count("landed"), "is not over after 3 s" in stopped.stopped) == (1, True)
        shop.server.cluster.heal()
        assert shop.run().stopped == ""
