"""DefaultPreemption: facts beside the recordings, and invariants of the dry run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.pod import PodStatus
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import examine, failure, schedule_one
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import Code, PostFilterResult
from stowplan.plugins_compat.plugins.node_ports import host_ports
from stowplan.plugins_compat.plugins.node_resources_fit import NodeResourcesFit
from stowplan.plugins_compat.plugins.victim_order import by_importance
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K24, K36, Release
from stowplan.plugins_compat.simulate import Simulation, simulate
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import BOUND, HOSTNAME, ZONE, Manifest, labels, node, pod, snapshot
from tests.support.random_clusters import random_cluster

BOTH = pytest.mark.parametrize("release", [K24, K36], ids=lambda release: release.name)


def made(cluster: Snapshot, release: Release = K36, **config: Any) -> Framework:
    """Return a framework with bound pods in place and pending nominations known; ties go to the first."""
    content = {
        "apiVersion": f"kubescheduler.config.k8s.io/{release.config_versions[-1]}",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [config],
    }
    state = ClusterState(cluster, release)
    state.fill(p for p in cluster.pods if p.node_name)
    state.nominator.nominate_pending([p for p in cluster.pods if not p.node_name], cluster.node_index)
    return Framework(next(iter(make_profiles(content, release, "first").values())), state)


def preempt(cluster: Snapshot, release: Release = K36, name: str = "new", **config: Any) -> PostFilterResult:
    """Run PostFilter for a pod that fits nowhere."""
    framework = made(cluster, release, **config)
    scored = examine(framework, next(p for p in cluster.pods if p.name == name))
    assert scored.node is None
    return framework.run_post_filters(scored.diagnosis.cycle, scored.diagnosis)


def names(result: PostFilterResult) -> list[str]:
    return [victim.name for victim in result.victims]


def started(manifest: Manifest, minute: int, **status: Any) -> Manifest:
    manifest["status"] |= {"startTime": f"2026-01-01T00:{minute:02}:00Z", **status}
    return manifest


def new(cpu: str = "4", priority: int = 100, **more: Any) -> Manifest:
    return pod("new", cpu=cpu, priority=priority, **more)


def budget(allowed: int, selector: Manifest | None, disrupted: tuple[str, ...] = ()) -> Manifest:
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")}
    return {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": selector}, "status": status}


def said(cluster: Snapshot, release: Release) -> str:
    framework = made(cluster, release)
    return schedule_one(framework, next(p for p in cluster.pods if p.name == "new")).message


# -- eligibility and messages -------------------------------------------------------------------------------------


def test_what_the_event_says_by_release() -> None:
    nodes = [node("a"), node("b"), node("c", unschedulable=True)]
    bound = [pod("x", "a", cpu="3", priority=100), pod("y", "b", cpu="3", priority=0), pod("z", "b", priority=100)]
    cluster = snapshot(nodes=nodes, pods=[*bound, new()])
    reasons = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
    preemption = (
        "preemption: 0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    assert said(cluster, K24) == f"{reasons} {preemption}"
    assert said(cluster, K36) == f"{reasons} no new claims to deallocate, {preemption}"


@BOTH
def test_a_pod_that_must_not_preempt(release: Release) -> None:
    cluster = snapshot(nodes=[node("a")], pods=[pod("x", "a", priority=0), new(preemptionPolicy="Never")])
    assert preempt(cluster, release).status.reasons[-1] == "preemption: not eligible due to preemptionPolicy=Never."


@BOTH
def test_equal_priority_is_no_victim(release: Release) -> None:
    cluster = snapshot(nodes=[node("a")], pods=[pod("x", "a", priority=100), new()])
    assert preempt(cluster, release).nominated is None


@pytest.mark.parametrize(
    ("release", "conditions", "waits"),
    [
        (K24, [], True),
        (K36, [], False),
        (K36, [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}], True),
        (K36, [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}], False),
    ],
)
def test_it_waits_for_its_victims_to_end(release: Release, conditions: list[Manifest], waits: bool) -> None:
    leaving = pod("x", "a", priority=0, deletionTimestamp="2026-01-01T00:00:00Z")
    leaving["status"]["conditions"] = conditions
    waiting = new()
    waiting["status"]["nominatedNodeName"] = "a"
    result = preempt(snapshot(nodes=[node("a"), node("b", cpu="2")], pods=[leaving, waiting]), release)
    assert (result.nominated is None) is waits
    if waits:
        assert result.status.reasons[-1] == "preemption: not eligible due to a terminating pod on the nominated node."
        assert not result.clears


def test_a_nominated_node_that_became_hopeless_is_not_waited_for() -> None:
    leaving = pod("x", "a", priority=0, deletionTimestamp="2026-01-01T00:00:00Z")
    waiting = new()
    waiting["status"]["nominatedNodeName"] = "a"
    nodes = [node("a", unschedulable=True), node("b")]
    result = preempt(snapshot(nodes=nodes, pods=[leaving, pod("y", "b", priority=0), waiting]), K24)
    assert names(result) == ["y"]


def test_nodes_outside_a_node_set_are_tried_by_old_releases_only() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    pinned = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    bound = [pod("x", "a", priority=100), pod("y", "b", priority=0)]
    cluster = snapshot(nodes=[node("a"), node("b")], pods=[*bound, new(affinity=pinned)])
    assert preempt(cluster, K24).status.reasons[-1] == (
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 node(s) didn't match Pod's node affinity/selector."
    )
    assert preempt(cluster, K36).status.reasons[-1] == (
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_a_request_above_the_node_is_hopeless_for_new_releases() -> None:
    cluster = snapshot(nodes=[node("a", cpu="2")], pods=[pod("x", "a", priority=0), new()])
    assert preempt(cluster, K24).status.reasons[-1].endswith("1 Insufficient cpu.")
    assert preempt(cluster, K36).status.reasons[-1].endswith("1 Preemption is not helpful for scheduling.")


# -- victims ------------------------------------------------------------------------------------------------------


@BOTH
def test_the_more_important_are_reprieved_first(release: Release) -> None:
    bound = [
        started(pod("old", "a", cpu="1", priority=1), 1),
        started(pod("young", "a", cpu="1", priority=1), 2),
        started(pod("high", "a", cpu="1", priority=5), 9),
        started(pod("big", "a", cpu="500m", priority=0), 0),
    ]
    cluster = snapshot(nodes=[node("a", cpu="4")], pods=[*bound, new("2")])
    # high and old come back; then neither young nor anybody else has room
    assert names(preempt(cluster, release)) == ["young", "big"]


def test_protected_pods_are_reprieved_before_others_and_the_order_of_victims_differs() -> None:
    bound = [started(pod(f"p{i}", "a", cpu="1", priority=1, labels={"app": "p"}), i) for i in range(2)]
    bound += [pod("q", "a", cpu="1", priority=5), pod("r", "a", cpu="1", priority=3)]
    cluster = snapshot(
        nodes=[node("a")], pods=[*bound, new("3500m")], pod_disruption_budgets=[budget(1, labels(app="p"))]
    )
    # one eviction is allowed; the second pod of the budget violates it
    assert names(preempt(cluster, K24)) == ["p1", "q", "r", "p0"]
    assert names(preempt(cluster, K36)) == ["q", "r", "p0", "p1"]


@pytest.mark.parametrize(
    ("made_budget", "protects"),
    [
        (budget(0, labels(app="p")), True),
        (budget(1, labels(app="p")), False),
        (budget(0, labels(app="p"), ("safe",)), False),
        (budget(0, {}), False),
        (budget(0, None), False),
    ],
)
@BOTH
def test_a_budget_that_is_used_up_sends_the_preemptor_elsewhere(
    release: Release, made_budget: Manifest, protects: bool
) -> None:
    bound = [pod("safe", "a", cpu="4", priority=0, labels={"app": "p"}), pod("other", "b", cpu="4", priority=50)]
    cluster = snapshot(nodes=[node("a"), node("b")], pods=[*bound, new()], pod_disruption_budgets=[made_budget])
    assert names(preempt(cluster, release)) == (["other"] if protects else ["safe"])


# -- the choice of the node ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [
        ([("4", 9, 0)], [("4", 8, 0)], "b"),  # the lower highest priority
        ([("2", 8, 0), ("2", 8, 0)], [("2", 8, 0), ("2", 7, 0)], "b"),  # the lower sum
        ([("2", -5, 0), ("2", -5, 0)], [("4", -5, 0)], "b"),  # more victims are no better for being negative
        ([("4", 8, 1)], [("4", 8, 2)], "b"),  # the later start
        ([("2", 8, 1), ("2", 7, 9)], [("2", 8, 2), ("2", 7, 0)], "b"),  # of the most important victims alone
        ([("4", 8, 1)], [("4", 8, 1)], "a"),  # a tie
    ],
)
@BOTH
def test_what_decides_between_nodes(
    release: Release, first: list[tuple[str, int, int]], second: list[tuple[str, int, int]], chosen: str
) -> None:
    bound = [
        started(pod(f"{on}{i}", on, cpu=cpu, priority=priority), minute)
        for on, pods in (("a", first), ("b", second))
        for i, (cpu, priority, minute) in enumerate(pods)
    ]
    cluster = snapshot(nodes=[node("a"), node("b")], pods=[*bound, new()])
    nominated = preempt(cluster, release).nominated
    assert nominated is not None
    assert cluster.nodes[nominated].name == chosen


def test_a_pod_without_a_start_time_started_last() -> None:
    bound = [started(pod("x", "a", cpu="4", priority=0), 5), pod("y", "b", cpu="4", priority=0)]
    cluster = snapshot(nodes=[node("a"), node("b")], pods=[*bound, new()])
    assert names(preempt(cluster)) == ["y"]


def test_only_so_many_nodes_are_tried() -> None:
    bound = [pod(f"x{i}", f"n{i}", cpu="4", priority=9 - i) for i in range(6)]
    cluster = snapshot(nodes=[node(f"n{i}") for i in range(6)], pods=[*bound, new()])

    def chosen(percentage: int, absolute: int) -> list[str]:
        args = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
        return names(preempt(cluster, pluginConfig=[{"name": "DefaultPreemption", "args": args}]))

    assert chosen(10, 100) == ["x5"]
    assert chosen(50, 0) == ["x2"]
    assert chosen(50, 4) == ["x3"]
    assert chosen(0, 1) == ["x0"]


def test_the_search_goes_on_while_every_candidate_violates_a_budget() -> None:
    bound = [pod(f"x{i}", f"n{i}", cpu="4", priority=0, labels={"app": "p"} if i < 4 else {}) for i in range(6)]
    cluster = snapshot(
        nodes=[node(f"n{i}") for i in range(6)],
        pods=[*bound, new()],
        pod_disruption_budgets=[budget(0, labels(app="p"))],
    )
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 2}
    assert names(preempt(cluster, pluginConfig=[{"name": "DefaultPreemption", "args": args}])) == ["x4"]


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"minCandidateNodesPercentage": 101}, "args.minCandidateNodesPercentage"),
        ({"minCandidateNodesAbsolute": -1}, "args.minCandidateNodesAbsolute"),
        ({"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}, "args"),
        ({"minCandidates": 1}, "args.minCandidates"),
    ],
)
def test_arguments_out_of_range(args: Manifest, field: str) -> None:
    with pytest.raises(InputError) as caught:
        made(snapshot(nodes=[node("a")]), pluginConfig=[{"name": "DefaultPreemption", "args": args}])
    assert caught.value.field == f"profiles[0].pluginConfig[DefaultPreemption].{field}"


# -- nominated pods -----------------------------------------------------------------------------------------------


def nominated(name: str, at: str, priority: int, **more: Any) -> Manifest:
    manifest = pod(name, priority=priority, **more)
    manifest["status"]["nominatedNodeName"] = at
    return manifest


@pytest.mark.parametrize(("priority", "fits"), [(99, True), (100, False), (101, False)])
@BOTH
def test_room_is_kept_for_a_nominated_pod_that_is_as_important(release: Release, priority: int, fits: bool) -> None:
    cluster = snapshot(nodes=[node("a")], pods=[nominated("other", "a", priority, cpu="3"), new("2")])
    scored = examine(made(cluster, release), cluster.pods[1])
    assert (scored.node == 0) is fits
    if not fits:
        assert failure(scored.diagnosis) == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_nominated_pod_is_not_in_its_own_way_and_its_node_comes_first() -> None:
    cluster = snapshot(nodes=[node("a", cpu="9"), node("b")], pods=[nominated("new", "b", 100, cpu="3")])
    scored = examine(made(cluster), cluster.pods[0])
    assert scored.node == 1
    assert not scored.scores


def test_new_releases_skip_affinity_for_nominated_pods_that_nobody_asked_about() -> None:
    shy = {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": labels(x="y"), "topologyKey": HOSTNAME}]
    }
    other = nominated("other", "a", 100, affinity={"podAntiAffinity": shy})
    cluster = snapshot(nodes=[node("a")], pods=[other, new("1", labels={"x": "y"})])
    assert examine(made(cluster, K24), cluster.pods[1]).node is None
    assert examine(made(cluster, K36), cluster.pods[1]).node == 0


def test_less_important_nominations_are_dropped_and_the_pod_loses_its_own_when_placed() -> None:
    bound = [pod("x", "a", cpu="4", priority=0)]
    cluster = snapshot(nodes=[node("a")], pods=[*bound, nominated("other", "a", 50, cpu="1"), new()])
    framework = made(cluster)
    decision = schedule_one(framework, cluster.pods[2])
    assert decision.node == 0
    assert [victim.name for victim in decision.victims] == ["x"]
    assert not framework.state.nominator


# -- the dry run --------------------------------------------------------------------------------------------------


def test_company_that_leaves_makes_room() -> None:
    shy = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": labels(x="y"), "topologyKey": ZONE}]}
    zones = [node(name, labels={ZONE: zone}) for name, zone in (("a", "1"), ("b", "2"), ("c", "2"))]
    bound = [pod("x", "a", labels={"x": "y"}, priority=1)]
    bound += [pod("z", name, labels={"x": "y"}, priority=1, namespace=f"n{name}") for name in "bc"]
    term = shy["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["namespaceSelector"] = {}
    spaces = [{"metadata": {"name": name}} for name in ("default", "nb", "nc")]
    cluster = snapshot(nodes=zones, pods=[*bound, new("1", affinity={"podAntiAffinity": shy})], namespaces=spaces)
    # in zone 2 a pod on the other node would stay in the way
    for release in (K24, K36):
        assert names(preempt(cluster, release)) == ["x"]


def test_a_terminating_pod_is_not_counted_but_its_leaving_is() -> None:
    """Upstream's first count of a spread passes over terminating pods; its later changes do not."""
    constraint = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
    constraint["labelSelector"] = labels(x="y")
    mine = {"labels": {"x": "y"}}
    bound = [
        pod("a1", "a", cpu="1", priority=200, **mine),
        pod("a2", "a", cpu="1", priority=0, deletionTimestamp="2026-01-01T00:00:00Z", **mine),
        pod("full", "b", cpu="4", priority=200),
    ]
    cluster = snapshot(
        nodes=[node("a"), node("b")], pods=[*bound, new("1", topologySpreadConstraints=[constraint], **mine)]
    )
    for release in (K24, K36):
        assert names(preempt(cluster, release)) == ["a2"]


def random_crowd(choices: Choices) -> Snapshot:
    """Build a cluster with pods of many priorities, some of them owned or protected, and pods that want in."""
    number = choices.integer(2, 8)
    bound = []
    for n in range(number):
        for i in range(choices.integer(2, 6)):
            spec = {
                "cpu": f"{choices.integer(1, 6) * 250}m",
                "memory": f"{choices.integer(1, 4) * 512}Mi",
                "priority": choices.one([0, -5, 5, 10]),
                "labels": {"app": choices.one("abc")},
            }
            owner = {"owner": "ReplicaSet/r"} if choices.chance(0.7) else {}
            bound.append(started(pod(f"p{n}-{i}", f"n{n}", **spec, **owner), choices.integer(0, 59)))
    waiting = [
        pod(f"w{i}", cpu=f"{choices.integer(6, 16) * 250}m", priority=choices.one([0, 6, 20]))
        for i in range(choices.integer(1, 6))
    ]
    budgets = [budget(choices.integer(0, 2), labels(app=app)) for app in "ab"]
    nodes = [node(f"n{n}", cpu=str(choices.integer(3, 5))) for n in range(number)]
    return snapshot(nodes=nodes, pods=bound + waiting, pod_disruption_budgets=budgets)


@BOTH
@cases(10, at_least={"victims": 10}, cluster=drawn(random_crowd))
def test_all_at_once_is_the_same_as_one_by_one(cluster: Snapshot, release: Release) -> None:
    waiting = [p for p in cluster.pods if not p.node_name]

    def run() -> list[Any]:
        framework = made(cluster, release)
        found = []
        for p in waiting:
            decision = schedule_one(framework, p)
            found.append((p.name, decision.node, decision.message, [v.name for v in decision.victims]))
        return found

    together = run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodeResourcesFit, "reads", "pods")
        assert run() == together
    count("victims", sum(len(victims) for *_, victims in together))


def with_priorities(choices: Choices, priorities: list[int], *, pods: int) -> Snapshot:
    """Build a random cluster of bound pods with any of these priorities."""
    cluster = random_cluster(choices, nodes=4, pods=pods, broken=True)
    chosen = (replace(p, spec=replace(p.spec, priority=choices.one(priorities))) for p in cluster.pods)
    return replace(cluster, pods=tuple(chosen))


@BOTH
@cases(13, at_least={"refused first": 10}, cluster=drawn(with_priorities, [1, 1000], pods=9))
def test_a_dry_run_leaves_the_cluster_as_it_was(cluster: Snapshot, release: Release) -> None:
    framework = made(cluster, release)
    state = framework.state
    for p in cluster.pods:
        scored = examine(framework, p)
        before = (state.requested.copy(), state.nonzero.copy(), {s: dict(n) for s, n in state.placed.items() if n})
        framework.run_post_filters(scored.diagnosis.cycle, scored.diagnosis)
        assert np.array_equal(state.requested, before[0])
        assert np.array_equal(state.nonzero, before[1])
        assert {s: dict(n) for s, n in state.placed.items() if n} == before[2]
        count("refused first", scored.node is None)


# -- simulation ---------------------------------------------------------------------------------------------------


def run(cluster: Snapshot, release: Release = K36, **more: Any) -> Simulation:
    participation = {p.key: p.node_name for p in cluster.pods if p.node_name}
    queue = [p for p in cluster.pods if not p.node_name]
    return simulate(cluster, default_profile(release), queue, participation, **more)


@BOTH
def test_victims_with_a_controller_come_back_and_others_are_gone(release: Release) -> None:
    bound = [
        pod("owned", "a", cpu="2", priority=5, owner="ReplicaSet/r"),
        pod("bare", "a", cpu="2", priority=0),
        pod("small", "b", cpu="3", priority=200),
    ]
    cluster = snapshot(nodes=[node("a"), node("b", cpu="5")], pods=[*bound, new()])
    result = run(cluster, release)
    assert result.assignment == {"default/small": "b", "default/new": "a", "default/owned": "b"}
    assert [(p.victim.name, p.preemptor.name, p.node) for p in result.preemptions] == [
        ("owned", "new", "a"),
        ("bare", "new", "a"),
    ]
    assert result.outcomes["default/bare"].message == "preempted by default/new; no controller replaces it"
    assert result.outcomes["default/owned"].preempted_by is not None
    assert (result.scheduled, len(result.outcomes), result.complete) == (2, 3, True)


def test_a_victim_may_preempt_in_turn() -> None:
    bound = [
        pod("middle", "a", cpu="4", priority=50, owner="ReplicaSet/r"),
        pod("low", "b", cpu="4", priority=0, owner="ReplicaSet/r"),
    ]
    keep = {"nodeSelector": {HOSTNAME: "a"}}
    result = run(snapshot(nodes=[node("a"), node("b")], pods=[*bound, new(**keep)]))
    assert result.assignment == {"default/new": "a", "default/middle": "b"}
    assert [d.pod.name for d in result.decisions] == ["new", "middle", "low"]
    assert result.outcomes["default/low"].node is None


def test_without_preemption_nobody_leaves() -> None:
    cluster = snapshot(nodes=[node("a")], pods=[pod("x", "a", priority=0), new()])
    off = {"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}
    framework = made(cluster, **off)
    assert not framework.post_filters
    for decision in (schedule_one(framework, cluster.pods[1]), run(cluster, preempts=False).decisions[0]):
        assert decision.node is None
        assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."


@BOTH
@cases(15, at_least={"preempted": 20}, cluster=drawn(random_crowd))
def test_no_pod_is_lost_from_the_books(cluster: Snapshot, release: Release) -> None:
    result = run(cluster, release)
    decided = set(result.outcomes)
    victims = {preemption.victim.key for preemption in result.preemptions}
    participation = {p.key for p in cluster.pods if p.node_name}
    assert decided == {p.key for p in cluster.pods if not p.node_name} | victims
    assert set(result.assignment) == (participation - victims) | {
        k for k, d in result.outcomes.items() if d.node is not None
    }
    count("preempted", len(victims))


def _fits(cluster: Snapshot, release: Release, participation: list[Pod], incoming: Pod, at: int) -> bool:
    """Ask the filters afresh, on a cluster with just these pods."""
    state = ClusterState(cluster, release)
    state.fill(participation)
    framework = Framework(default_profile(release, "first"), state)
    return bool(len(framework.run_filters(framework.cycle(incoming), np.array([at])).feasible))


def _victims(cluster: Snapshot, release: Release, incoming: Pod, at: int) -> list[Pod] | None:
    participation = [p for p in cluster.pods if p.node_name and not p.finished]
    here = [p for p in participation if p.node_name == cluster.nodes[at].name and p.priority < incoming.priority]
    kept = [p for p in participation if p not in here]
    if not here or not _fits(cluster, release, kept, incoming, at):
        return None
    victims = []
    for p in sorted(here, key=lambda p: -p.priority):
        if _fits(cluster, release, [*kept, p], incoming, at):
            kept.append(p)
        else:
            victims.append(p)
    return victims


def _miscounted(one: Pod, others: list[Pod], cluster: Snapshot, release: Release) -> bool:
    """Whether a pod holds a port or a claim for one pod that another, on its node or anywhere, holds already."""
    ports = {port[:2] for port in host_ports(one, release)}
    here = [p for p in others if p.node_name == one.node_name]
    return any(port[:2] in ports for p in here for port in host_ports(p, release)) or any(
        _exclusive(one, cluster) & _exclusive(p, cluster) for p in others
    )


def _exclusive(one: Pod, cluster: Snapshot) -> set[str]:
    claims = (volume.persistent_volume_claim for volume in one.spec.volumes)
    keys = {f"{one.namespace}/{claim.claim_name}" for claim in claims if claim is not None}
    return {key for key in keys & cluster.claims.keys() if "ReadWriteOncePod" in cluster.claims[key].spec.access_modes}


@BOTH
@cases(30, at_least={"victims": 6, "nobody": 24}, cluster=drawn(with_priorities, [1, 5, 9], pods=12))
def test_taking_pods_off_and_back_is_the_same_as_asking_afresh(cluster: Snapshot, release: Release) -> None:
    """Every rule of the small clusters takes part; only what upstream miscounts is left out:
    terminating pods, and pods that hold a port or an exclusive claim together."""
    bound = [
        replace(p, status=PodStatus(phase="Running", start_time=f"2026-01-01T00:{i:02}:00Z"))
        for i, p in enumerate(cluster.pods)
        if not p.terminating
    ]
    bound = [p for i, p in enumerate(bound) if not _miscounted(p, bound[:i], cluster, release)]
    waiting = [
        replace(
            p,
            metadata=replace(p.metadata, name=f"new-{p.name}"),
            spec=replace(p.spec, node_name=None, priority=7),
            status=PodStatus(phase="Pending"),
        )
        for p in bound
    ]
    cluster = replace(cluster, pods=(*bound, *waiting))
    framework = made(cluster, release)
    for incoming in waiting:
        scored = examine(framework, incoming)
        result = framework.run_post_filters(scored.diagnosis.cycle, scored.diagnosis)
        if scored.node is not None:
            continue
        hopeful = [n for n in range(len(cluster.nodes)) if scored.diagnosis.code_of(n) != Code.UNRESOLVABLE]
        expected = {n: victims for n in hopeful if (victims := _victims(cluster, release, incoming, n))}
        if result.nominated is None:
            assert not expected
            count("nobody")
        else:
            assert sorted(v.key for v in result.victims) == sorted(v.key for v in expected[result.nominated])
            count("victims", len(result.victims))


@pytest.mark.parametrize(
    ("release", "starts", "order"),
    [
        (K36, [3, 1, 2], "bca"),
        (K36, [None, None, None], "cba"),  # each comparison says that the later of the list is the more important
        (K36, [None, 5, None], "bca"),
        (K36, [1, 1, 1], "abc"),
        (K24, [None] * 8, "bafedchg"),  # the first of two passes compares elements six apart
        (K36, [None] * 8, "hgfedcba"),
        (K36, [None] * 13, "abcdefghijklm"),  # longer lists: the order of the input
    ],
)
def test_pods_without_a_start_time_are_ordered_as_the_sort_of_upstream_leaves_them(
    release: Release, starts: list[int | None], order: str
) -> None:
    bound = [pod(name, "a", cpu="100m", priority=0) for name in "abcdefghijklm"[: len(starts)]]
    bound = [manifest if at is None else started(manifest, at) for manifest, at in zip(bound, starts, strict=True)]
    framework = made(snapshot(nodes=[node("a")], pods=bound), release)
    ordered = by_importance(framework.state.pod_index.on(0), first_pass=release.preemption_sorts_in_two_passes)
    assert "".join(occupant.pod.name for occupant in ordered) == order


def test_a_port_that_two_pods_hold_is_free_for_upstream_once_one_of_them_left() -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    bound = [pod("low", "a", priority=0, ports=port), pod("high", "a", priority=200, ports=port)]
    cluster = snapshot(nodes=[node("a")], pods=[*bound, pod("new", priority=100, ports=port)])
    assert names(preempt(cluster)) == ["low"]


def test_a_claim_for_one_pod_that_two_use_is_free_for_upstream_once_one_of_them_left() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    claim = {"metadata": {"name": "c", "annotations": BOUND}, "spec": {"accessModes": ["ReadWriteOncePod"]}}
    claim["spec"] |= {"volumeName": "v", "storageClassName": ""}
    bound = [pod("low", "a", priority=0, volumes=volumes), pod("high", "b", priority=200, volumes=volumes)]
    cluster = snapshot(
        nodes=[node("a"), node("b")],
        pods=[*bound, pod("new", priority=100, volumes=volumes)],
        persistent_volumes=[{"metadata": {"name": "v"}, "spec": {"storageClassName": ""}}],
        persistent_volume_claims=[claim],
    )
    assert names(preempt(cluster)) == ["low"]


def test_a_nomination_outlives_a_preemption_that_finds_nothing_in_new_releases_only() -> None:
    for release, kept in ((K24, False), (K36, True)):
        waiting = pod("new", cpu="6", priority=100)
        waiting["status"]["nominatedNodeName"] = "a"
        cluster = snapshot(nodes=[node("a", cpu="8")], pods=[pod("x", "a", cpu="4", priority=200), waiting])
        framework = made(cluster, release)
        framework.state.nominator.nominate_pending(cluster.pods[1:], cluster.node_index)
        schedule_one(framework, cluster.pods[1])
        assert (framework.state.nominator.node_of(cluster.pods[1]) is not None) is kept
