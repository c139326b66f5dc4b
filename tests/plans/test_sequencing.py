"""Moves come into waves that hold in any order, with budgets, limits, parking and a proven number of waves."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stowplan.models.kubernetes import Pod
from stowplan.models.limits import LimitsDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plans.dry_run import DryRun
from stowplan.plans.move import Move
from stowplan.plans.sequencing import SequencingProblem, WaveSequence, sequence
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.clusters import HOSTNAME, ZONE, Manifest, claim, csi_node, labels, node, pod, snapshot, using, volume
from tests.support.restless import READY

PROFILE = default_profile(K36)


def running(name: str, at: str | None, **more: Any) -> Manifest:
    """Build a pod of a ReplicaSet named by what stands before the dash; it is ready if it has a node."""
    owner = more.pop("owner", f"ReplicaSet/{name.partition('-')[0]}")
    made = pod(name, at, labels={"app": name.partition("-")[0]}, owner=owner, **more)
    if at:
        made["status"]["conditions"] = READY
    return made


def budget(app: str, **spec: Any) -> Manifest:
    meta = {"name": f"pdb-{app}", "namespace": "default"}
    return {"metadata": meta, "spec": {"selector": labels(app=app), **spec}}


def ordered(cluster: Snapshot, limits: LimitsDocument | None = None, park: bool = True, **targets: str) -> WaveSequence:
    """Put moves in order; targets by pod name, with ``_`` for a dash."""
    pods = {p.name: p for p in cluster.pods}
    wanted = {name.replace("_", "-"): target for name, target in targets.items()}
    moves = [Move(pods[name], pods[name].node_name, target) for name, target in wanted.items()]

    def may_park(p: Pod) -> bool:
        return park

    return sequence(
        SequencingProblem(
            cluster,
            PROFILE,
            cluster.assignment,
            moves,
            Budgets(cluster),
            limits or LimitsDocument(),
            may_park=may_park,
        )
    )


def steps(found: WaveSequence) -> list[list[tuple[str, str, str]]]:
    return [sorted((s.pod.name, s.source, s.target) for s in wave) for wave in found.waves]


def test_what_has_room_goes_at_once() -> None:
    cluster = snapshot(nodes=[node("a"), node("b")], pods=[running("x-0", "a"), running("y-0", "a")])
    found = ordered(cluster, x_0="b", y_0="b")
    assert steps(found) == [[("x-0", "a", "b"), ("y-0", "a", "b")]]
    assert found.least_waves == 1


def test_room_that_is_left_serves_the_next_wave() -> None:
    cluster = snapshot(
        nodes=[node("a", cpu="2"), node("b", cpu="2"), node("c", cpu="2")],
        pods=[running("x-0", "a", cpu="2"), running("y-0", "b", cpu="2")],
    )
    found = ordered(cluster, x_0="b", y_0="c")
    assert steps(found) == [[("y-0", "b", "c")], [("x-0", "a", "b")]]
    assert found.least_waves == 2
    assert found.waves[0][0].why == "makes room on b for default/x-0"


def test_a_chain_needs_as_many_waves_as_it_has_links() -> None:
    names = ["a", "b", "c", "d", "e"]
    cluster = snapshot(
        nodes=[node(name, cpu="2") for name in names],
        pods=[running(f"p{i}-0", name, cpu="2") for i, name in enumerate(names[:-1])],
    )
    found = ordered(cluster, **{f"p{i}_0": names[i + 1] for i in range(4)})
    assert [len(wave) for wave in found.waves] == [1, 1, 1, 1]
    assert not found.stuck


# -- cycles ---------------------------------------------------------------------------------------------------


def swap(*more: Manifest) -> Snapshot:
    nodes = [node("a", cpu="2"), node("b", cpu="2"), *more]
    return snapshot(nodes=nodes, pods=[running("x-0", "a", cpu="2", priority=5), running("y-0", "b", cpu="2")])


def test_a_cycle_is_broken_by_parking_the_less_important_pod() -> None:
    found = ordered(swap(node("c", cpu="2")), x_0="b", y_0="a")
    assert steps(found) == [[("y-0", "b", "c")], [("x-0", "a", "b")], [("y-0", "c", "a")]]
    parked, onward = found.waves[0][0], found.waves[2][0]
    assert parked.parks
    assert not onward.parks
    assert onward.follows is parked
    assert "default/x-0 can take its room on b" in parked.why


@pytest.mark.parametrize(("more", "park"), [((), True), ((node("c", cpu="2"),), False)])
def test_a_cycle_that_cannot_be_broken_is_reported(more: tuple[Manifest, ...], park: bool) -> None:
    found = ordered(swap(*more), park=park, x_0="b", y_0="a")
    assert not found.waves
    assert {one.key: one.cycle for one in found.stuck} == {
        "default/x-0": ("default/x-0", "default/y-0"),
        "default/y-0": ("default/y-0", "default/x-0"),
    }
    assert "NodeResourcesFit refuses it on b: Insufficient cpu" in found.stuck[0].reason


def test_what_depends_on_a_stuck_move_is_left_out_and_the_rest_goes() -> None:
    nodes = [node("a", cpu="2"), node("b", cpu="2"), node("c", cpu="2"), node("d", cpu="1")]
    pods = [running("x-0", "a", cpu="2"), running("y-0", "b", cpu="2"), running("z-0", "c", cpu="2")]
    cluster = snapshot(nodes=nodes, pods=[*pods, running("free-0", "d", cpu="0")])
    found = ordered(cluster, x_0="b", y_0="a", z_0="a", free_0="b")
    assert steps(found) == [[("free-0", "d", "b")]]
    assert sorted(one.key for one in found.stuck) == ["default/x-0", "default/y-0", "default/z-0"]


# -- budgets and limits ---------------------------------------------------------------------------------------


def many(number: int, **more: Any) -> dict[str, Any]:
    return {
        "nodes": [node("a", cpu="64"), node("b", cpu="64")],
        "pods": [running(f"web-{i}", "a", **more) for i in range(number)],
    }


def test_a_budget_bounds_the_waves() -> None:
    cluster = snapshot(**many(7), pod_disruption_budgets=[budget("web", minAvailable=5)])
    found = ordered(cluster, **{f"web_{i}": "b" for i in range(7)})
    assert [len(wave) for wave in found.waves] == [2, 2, 2, 1]
    assert found.least_waves == 4
    assert "7 pods leave, 2 at a time" in found.least_because


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        (LimitsDocument(total=3), [3, 3, 1]),
        (LimitsDocument(per_owner="25%"), [2, 2, 2, 1]),
        (LimitsDocument(per_owner=4), [4, 3]),
        (LimitsDocument(per_node=5), [5, 2]),
        (LimitsDocument(per_namespace=6), [6, 1]),
        (LimitsDocument(), [7]),
    ],
)
def test_limits_bound_the_waves(limits: LimitsDocument, sizes: list[int]) -> None:
    found = ordered(snapshot(**many(7)), limits, **{f"web_{i}": "b" for i in range(7)})
    assert [len(wave) for wave in found.waves] == sizes
    assert found.least_waves == len(sizes)


def test_a_budget_that_allows_nothing_is_a_reason() -> None:
    cluster = snapshot(**many(2), pod_disruption_budgets=[budget("web", minAvailable=2)])
    found = ordered(cluster, web_0="b")
    assert [one.reason for one in found.stuck] == ["PodDisruptionBudget pdb-web: 429: the budget allows no disruption"]


def test_replaced_unhealthy_pods_let_more_go_later() -> None:
    objects = many(4)
    objects["pods"][0]["status"]["conditions"] = []
    cluster = snapshot(**objects, pod_disruption_budgets=[budget("web", minAvailable=3)])
    found = ordered(cluster, web_0="b", web_1="b")
    assert steps(found) == [[("web-0", "a", "b")], [("web-1", "a", "b")]]
    assert found.least_waves == 2


# -- filters while a wave is under way ------------------------------------------------------------------------


def apart(key: str) -> Manifest:
    term = {"topologyKey": key, "labelSelector": labels(app="web")}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_a_replacement_that_its_own_pod_shuns_waits_for_it_to_be_gone() -> None:
    zoned = {"labels": {ZONE: "z"}}
    cluster = snapshot(
        nodes=[node("a", **zoned), node("b", labels={ZONE: "z"})], pods=[running("web-0", "a", affinity=apart(ZONE))]
    )
    found = ordered(cluster, web_0="b")
    assert [[s.waits for s in wave] for wave in found.waves] == [[True]]


def test_so_does_one_whose_volume_only_one_pod_may_use() -> None:
    only_one = {"accessModes": ["ReadWriteOncePod"]}
    cluster = snapshot(
        nodes=[node("a"), node("b")],
        pods=[running("web-0", "a", volumes=using("c"))],
        persistent_volumes=[volume("v", **only_one)],
        persistent_volume_claims=[claim("c", volume="v", **only_one)],
    )
    assert ordered(cluster, web_0="b").waves[0][0].waits


def test_whom_another_pod_shuns_comes_when_it_has_left() -> None:
    nodes = [node(name) for name in "abc"]
    pods = [running("web-0", "a", affinity=apart(HOSTNAME)), running("web-1", "b", affinity=apart(HOSTNAME))]
    found = ordered(snapshot(nodes=nodes, pods=pods), web_0="b", web_1="c")
    assert steps(found) == [[("web-1", "b", "c")], [("web-0", "a", "b")]]


def spread(key: str = ZONE) -> list[Manifest]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": labels(app="web"),
        }
    ]


def zones(**of: str) -> list[Manifest]:
    return [node(name, labels={ZONE: zone}) for name, zone in of.items()]


def test_pods_that_balance_each_other_do_not_leave_together() -> None:
    """While both are under way, one zone may hold two more than the other."""
    rules = {"topologySpreadConstraints": spread()}
    cluster = snapshot(
        nodes=zones(a="z1", b="z1", c="z2", d="z2"),
        pods=[running("web-0", "a", **rules), running("web-1", "a", **rules), running("web-2", "c", **rules)],
    )
    found = ordered(cluster, web_0="d", web_2="b")
    assert [len(wave) for wave in found.waves] == [1, 1]
    assert found.waves[0][0].pod.name == "web-0"


def near(app: str) -> Manifest:
    term = {"topologyKey": ZONE, "labelSelector": labels(app=app)}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_company_that_is_on_its_way_is_no_company_yet() -> None:
    cluster = snapshot(
        nodes=zones(a="z1", b="z2"), pods=[running("db-0", "a"), running("web-0", "a", affinity=near("db"))]
    )
    found = ordered(cluster, web_0="b", db_0="b")
    assert steps(found) == [[("db-0", "a", "b")], [("web-0", "a", "b")]]


def test_pods_that_bring_the_same_volume_come_one_after_the_other() -> None:
    """One after the other each is asked with the volume on the node or not; both at once, neither would be asked."""
    shared = {"accessModes": ["ReadWriteMany"], "csi": {"driver": "csi.x", "volumeHandle": "h"}}
    cluster = snapshot(
        nodes=[node("a"), node("b")],
        pods=[running(f"web-{i}", "a", volumes=using("c")) for i in range(2)],
        persistent_volumes=[volume("v", **shared)],
        persistent_volume_claims=[claim("c", volume="v", accessModes=["ReadWriteMany"])],
        csi_nodes=[csi_node("b", csi_x=1)],
    )
    assert [len(wave) for wave in ordered(cluster, web_0="b", web_1="b").waves] == [1, 1]


# -- whose turn it is -----------------------------------------------------------------------------------------


def test_a_pod_that_waits_gets_its_node_in_the_wave_that_has_room() -> None:
    cluster = snapshot(
        nodes=[node("a", cpu="2"), node("b", cpu="2")],
        pods=[running("x-0", "a", cpu="2"), running("new-0", None, cpu="2")],
    )
    found = ordered(cluster, x_0="b", new_0="a")
    assert steps(found) == [[("x-0", "a", "b")], [("new-0", "", "a")]]
    assert found.waves[1][0].why == "pending"


def test_of_equally_urgent_moves_the_higher_priority_goes_first() -> None:
    pods = [running("low-0", "a"), running("high-0", "a", priority=100), running("mid-0", "a", priority=50)]
    cluster = snapshot(nodes=[node("a"), node("b")], pods=pods)
    found = ordered(cluster, LimitsDocument(total=1), low_0="b", mid_0="b", high_0="b")
    assert [wave[0].pod.name for wave in found.waves] == ["high-0", "mid-0", "low-0"]


def test_pods_that_are_alike_exchange_targets_where_that_helps() -> None:
    """Each would cross into the other's zone; exchanged, each stays in its own."""
    rules = {"topologySpreadConstraints": spread()}
    cluster = snapshot(
        nodes=zones(a="z1", b="z1", c="z2", d="z2"),
        pods=[running("web-0", "a", **rules), running("web-1", "c", **rules)],
    )
    found = ordered(cluster, web_0="d", web_1="b")
    assert steps(found) == [[("web-0", "a", "b"), ("web-1", "c", "d")]]


def test_nothing_to_move_is_no_wave() -> None:
    found = ordered(swap())
    assert (list(found.waves), list(found.stuck), found.least_waves) == ([], [], 0)


# -- a stop ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("looks", [0, 3, 10, 20, 40, 10_000])
def test_a_stop_leaves_the_waves_that_hold(looks: int) -> None:
    """However early the stop comes: what is in waves can be carried out, nobody stays parked, the rest is named."""
    pods = [running(f"{app}-{i}", "n1", cpu="500m") for app in "ab" for i in range(4)]
    pods += [running("x-1", "n2", cpu="3"), running("y-1", "n3", cpu="3")]
    cluster = snapshot(nodes=[node(f"n{i}") for i in range(1, 6)], pods=pods)
    targets = {"x-1": "n3", "y-1": "n2"} | {f"{app}-{i}": f"n{4 + i % 2}" for app in "ab" for i in range(4)}
    by_name = {p.name: p for p in cluster.pods}
    moves = [Move(by_name[name], by_name[name].node_name, target) for name, target in targets.items()]
    seen = 0

    def stopped() -> bool:
        nonlocal seen
        seen += 1
        return seen > looks

    limits = LimitsDocument(per_owner=1)
    budgets = Budgets(cluster)
    problem = SequencingProblem(cluster, PROFILE, cluster.assignment, moves, budgets, limits, stopped=stopped)
    found = sequence(problem)
    run = DryRun(cluster, PROFILE, budgets=budgets)
    for wave in found.waves:
        assert run.carry_out(wave, random.Random(1)) == []
    ended = {p.name: run.node_of[p.key] for p in cluster.pods}
    moved = {step.pod.name for wave in found.waves for step in wave}
    assert {name: ended[name] for name in moved} == {name: targets[name] for name in moved}
    assert {one.key for one in found.stuck} == {by_name[name].key for name in targets if name not in moved}
    if looks == 0:
        assert not found.waves
        assert {one.reason for one in found.stuck} == {"interrupted before it was put in order"}
    if looks == 10_000:
        assert not found.stuck
