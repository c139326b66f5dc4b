"""Kubernetes 1.5: predicates and priorities of ``Policy`` files, and the files themselves."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from stowplan.models.errors import InputError
from stowplan.models.objective import PRESETS
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import examine, failure, schedule
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K5, K24, K36
from stowplan.settings.problem import make_problem
from tests.support.brute_force import placements
from tests.support.choices import Seeded
from tests.support.clusters import Manifest, node, pod, snapshot
from tests.support.random_clusters import random_cluster, random_disks

MB = 2**20
BETA = "failure-domain.beta.kubernetes.io"


def policy(*predicates: str, priorities: tuple[str | dict[str, Any], ...] = ()) -> dict[str, Any]:
    named = [{"name": p, "weight": 1} if isinstance(p, str) else p for p in priorities]
    return {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": name} for name in predicates],
        "priorities": named,
    }


def framework(cluster: Snapshot, content: dict[str, Any]) -> Framework:
    state = ClusterState(cluster, K5, Signatures(cluster.pods))
    state.fill(p for p in cluster.pods if p.node_name)
    return Framework(make_profiles(content, K5)["default-scheduler"], state)


def scores(cluster: Snapshot, priority: str | dict[str, Any]) -> list[int]:
    """Return what a priority alone says about the last pod of a cluster."""
    scored = examine(framework(cluster, policy(priorities=(priority,))), cluster.pods[-1], score_single=True)
    (found,) = scored.scores.values()
    return [int(value) for value in found]


def refusals(cluster: Snapshot, *predicates: str) -> list[tuple[str, ...]]:
    """Return why each node refuses the last pod of a cluster; nothing where it fits."""
    made = framework(cluster, policy(*predicates))
    diagnosis = made.run_filters(made.cycle(cluster.pods[-1]))
    fits = set(diagnosis.feasible.tolist())
    return [() if n in fits else tuple(diagnosis.why(n).reasons) for n in range(len(cluster.nodes))]


def disk(**source: Any) -> list[Manifest]:
    return [{"name": "v", **source}]


def container(cpu: str, memory: str = "0", image: str = "") -> Manifest:
    return {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu, "memory": memory}}}


# -- predicates -------------------------------------------------------------------------------------------------

RBD = {"monitors": ["a", "b"], "pool": "p", "image": "i"}


@pytest.mark.parametrize(
    ("there", "mine", "conflict"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, True),
        (
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            False,
        ),
        (
            {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
            {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
            True,
        ),
        ({"rbd": RBD}, {"rbd": {**RBD, "monitors": ["b", "c"]}}, True),
        ({"rbd": RBD}, {"rbd": {**RBD, "monitors": ["c"]}}, False),
        # The article's prose forbids this; its code, and the release, allow it.
        ({"rbd": {**RBD, "readOnly": True}}, {"rbd": {**RBD, "readOnly": True}}, False),
        # The article prints a check for iSCSI, which is of a later release.
        ({"iscsi": {"iqn": "d"}}, {"iscsi": {"iqn": "d"}}, False),
    ],
)
def test_disks_conflict_as_they_did(there: Manifest, mine: Manifest, conflict: bool) -> None:
    cluster = snapshot(nodes=[node("n")], pods=[pod("a", "n", volumes=disk(**there)), pod("b", volumes=disk(**mine))])
    assert refusals(cluster, "NoDiskConflict") == [("NoDiskConflict",) if conflict else ()]


@pytest.mark.parametrize(
    ("labels", "volume", "fits"),
    [
        ({f"{BETA}/zone": "a"}, {f"{BETA}/zone": "a"}, True),
        ({f"{BETA}/zone": "b"}, {f"{BETA}/zone": "a"}, False),
        ({f"{BETA}/zone": "a"}, {f"{BETA}/zone": "a__b"}, False),  # compared as it is written
        ({f"{BETA}/region": "r"}, {f"{BETA}/zone": "a"}, False),  # some label, but not this one
        ({}, {f"{BETA}/zone": "a"}, True),
        ({"topology.kubernetes.io/zone": "b"}, {f"{BETA}/zone": "a"}, True),  # not a label that 1.5 reads
        ({f"{BETA}/zone": "b"}, {"topology.kubernetes.io/zone": "a"}, True),
    ],
)
def test_volume_zones_are_compared_by_the_beta_labels(labels: Manifest, volume: Manifest, fits: bool) -> None:
    cluster = snapshot(
        nodes=[node("n", labels=labels)],
        pods=[pod("p", volumes=disk(persistentVolumeClaim={"claimName": "c"}))],
        persistent_volumes=[{"metadata": {"name": "v", "labels": volume}, "spec": {}}],
        persistent_volume_claims=[{"metadata": {"name": "c"}, "spec": {"volumeName": "v"}}],
    )
    assert refusals(cluster, "NoVolumeZoneConflict") == [() if fits else ("NoVolumeZoneConflict",)]


def test_volume_zones_ignore_inline_volumes_and_fail_on_what_cannot_be_looked_up() -> None:
    labeled = node("n", labels={f"{BETA}/zone": "a"})
    inline = snapshot(nodes=[labeled], pods=[pod("p", volumes=disk(gcePersistentDisk={"pdName": "d"}))])
    assert refusals(inline, "NoVolumeZoneConflict") == [()]
    missing = snapshot(nodes=[labeled], pods=[pod("p", volumes=disk(persistentVolumeClaim={"claimName": "c"}))])
    made = framework(missing, policy("NoVolumeZoneConflict"))
    (decision,) = schedule(made, missing.pods)
    assert decision.is_error
    assert 'PersistentVolumeClaim was not found: "c"' in decision.message


def test_resources_are_cpu_memory_and_pods_but_not_storage() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="2", memory="2Gi", pods=1, extended={"ephemeral-storage": "1Gi"})],
        pods=[
            pod("a", "n", cpu="1", memory="1Gi"),
            pod("b", cpu="1500m", memory="1500Mi", extended={"ephemeral-storage": "9Gi", "example.com/gpu": "4"}),
        ],
    )
    assert refusals(cluster, "PodFitsResources") == [("Insufficient pods", "Insufficient cpu", "Insufficient memory")]


def test_a_pods_own_init_containers_count_and_those_of_others_do_not() -> None:
    greedy = {"initContainers": [container("3")]}
    one = snapshot(nodes=[node("n", cpu="4")], pods=[pod("a", "n", cpu="1", **greedy), pod("b", cpu="3")])
    assert refusals(one, "PodFitsResources") == [()]
    other = snapshot(nodes=[node("n", cpu="4")], pods=[pod("a", "n", cpu="2"), pod("b", cpu="1", **greedy)])
    assert refusals(other, "PodFitsResources") == [("Insufficient cpu",)]


def test_host_ports_are_taken_by_number_alone() -> None:
    held = [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    wanted = [{"hostPort": 53, "protocol": "TCP", "hostIP": "10.0.0.2"}]
    cluster = snapshot(nodes=[node("n"), node("m")], pods=[pod("a", "n", ports=held), pod("b", ports=wanted)])
    assert refusals(cluster, "PodFitsHostPorts") == [("PodFitsHostPorts",), ()]


def test_host_name_and_node_selector() -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    cluster = snapshot(
        nodes=[node("n", labels={"disk": "ssd", "x": "y"}), node("m", labels={"disk": "ssd"}), node("o")],
        pods=[pod("p", owner="ReplicaSet/r", nodeSelector={"x": "y"}, affinity=affinity)],
        replica_sets=[{"metadata": {"name": "r"}, "spec": {"template": {"spec": {"nodeName": "m"}}}}],
    )
    both = ("HostName", "MatchNodeSelector")
    assert refusals(cluster, *both) == [("HostName",), ("MatchNodeSelector",), both]


@pytest.mark.parametrize(
    ("predicate", "most", "source"),
    [
        ("MaxEBSVolumeCount", 39, lambda i: {"awsElasticBlockStore": {"volumeID": f"d{i}"}}),
        ("MaxGCEPDVolumeCount", 16, lambda i: {"gcePersistentDisk": {"pdName": f"d{i}", "readOnly": True}}),
    ],
)
def test_disks_are_limited_alike_on_every_machine(predicate: str, most: int, source: Any) -> None:
    nitro = {"beta.kubernetes.io/instance-type": "m5.large"}  # 25 in later releases
    stated = {"attachable-volumes-aws-ebs": "3", "attachable-volumes-gce-pd": "3"}  # not read yet

    def cluster(held: int, new: int, again: int = 0) -> Snapshot:
        there = [{"name": f"v{i}", **source(i)} for i in range(held)]
        mine = [{"name": f"w{i}", **source(i)} for i in [*range(held, held + new), *range(again)]]
        return snapshot(
            nodes=[node("n", labels=nitro, extended=stated)],
            pods=[pod("a", "n", volumes=there), pod("b", volumes=mine)],
        )

    assert refusals(cluster(most - 1, 1), predicate) == [()]
    assert refusals(cluster(most - 1, 2), predicate) == [("MaxVolumeCount",)]
    assert refusals(cluster(most, 0, again=1), predicate) == [()]  # there already


def test_a_claim_that_cannot_be_looked_up_counts_as_a_disk_of_either_cloud() -> None:
    volumes = [{"name": f"v{i}", "gcePersistentDisk": {"pdName": f"d{i}"}} for i in range(16)]
    lost = disk(persistentVolumeClaim={"claimName": "lost"})
    cluster = snapshot(nodes=[node("n")], pods=[pod("a", "n", volumes=volumes), pod("b", volumes=lost)])
    assert refusals(cluster, "MaxGCEPDVolumeCount", "MaxEBSVolumeCount") == [("MaxVolumeCount",)]


def test_all_failing_predicates_are_reported_node_by_node_and_in_sum() -> None:
    ports = [{"hostPort": 80}]
    cluster = snapshot(
        nodes=[node("n", cpu="1"), node("m", cpu="1", labels={"disk": "ssd"}), node("o", unschedulable=True)],
        pods=[pod("a", "n", ports=ports), pod("b", cpu="2", ports=ports, nodeSelector={"disk": "ssd"})],
    )
    names = ("PodFitsResources", "PodFitsHostPorts", "MatchNodeSelector")
    first, second, third = refusals(cluster, *names)
    assert first == ("Insufficient cpu", "PodFitsHostPorts", "MatchNodeSelector")
    assert second == ("Insufficient cpu",)
    assert third == ("node(s) were unschedulable or not ready", "MatchNodeSelector")
    made = framework(cluster, policy(*names))
    said = failure(made.run_filters(made.cycle(cluster.pods[-1])))
    assert said == (
        "0/3 nodes are available: 1 PodFitsHostPorts, 1 node(s) were unschedulable or not ready, "
        "2 Insufficient cpu, 2 MatchNodeSelector."
    )


@pytest.mark.parametrize(
    ("status", "listed"),
    [
        ([], True),
        ([("Ready", "True"), ("OutOfDisk", "False")], True),
        ([("Ready", "Unknown")], False),
        ([("Ready", "True"), ("OutOfDisk", "True")], False),
        ([("NetworkUnavailable", "Unknown")], False),
    ],
)
def test_nodes_in_trouble_are_not_listed(status: list[tuple[str, str]], listed: bool) -> None:
    made = node("n")
    made["status"]["conditions"] = [{"type": kind, "status": word} for kind, word in status]
    cluster = snapshot(nodes=[made], pods=[pod("p", tolerations=[{"operator": "Exists"}])])
    assert (refusals(cluster) == [()]) is listed


# -- priorities -------------------------------------------------------------------------------------------------


def test_least_requested_and_balanced_of_the_article() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="4000m", memory="10000"), node("m", cpu="6000m", memory="10000")],
        pods=[pod("p", cpu="3000m", memory="5000")],
    )
    assert scores(cluster, "LeastRequestedPriority") == [3, 5]
    assert scores(cluster, "BalancedResourceAllocation") == [7, 10]
    assert scores(cluster, "MostRequestedPriority") == [6, 5]
    assert scores(cluster, "EqualPriority") == [1, 1]


def test_scores_read_defaults_of_containers_and_no_init_containers() -> None:
    bare = pod("p", cpu="", memory="", initContainers=[container("4", "4Gi")])
    cluster = snapshot(nodes=[node("n", cpu="1", memory="2000Mi")], pods=[bare])
    assert scores(cluster, "LeastRequestedPriority") == [9]  # 100m of 1, 200Mi of 2000Mi: 9 and 9
    assert scores(cluster, "BalancedResourceAllocation") == [10]


def test_without_capacity_or_beyond_it() -> None:
    sizes = [("0", "10000"), ("1", "10000"), ("4", "5000")]
    cluster = snapshot(
        nodes=[node(f"n{i}", cpu=cpu, memory=memory) for i, (cpu, memory) in enumerate(sizes)],
        pods=[pod("p", cpu="2", memory="5000")],
    )
    assert scores(cluster, "LeastRequestedPriority") == [2, 2, 2]
    assert scores(cluster, "BalancedResourceAllocation") == [0, 0, 0]  # a fraction of 1 or more


def test_images_of_the_article() -> None:
    sizes = [22, 23, 121, 340, 999, 1000]
    nodes = []
    for size in sizes:
        made = node(f"n{size}")
        made["status"]["images"] = [{"names": ["app:1", "repo/app:1"], "sizeBytes": size * MB}]
        nodes.append(made)
    assert scores(snapshot(nodes=nodes, pods=[pod("p")]), "ImageLocalityPriority") == [0, 1, 2, 4, 10, 10]
    untagged = pod("p")
    untagged["spec"]["containers"][0]["image"] = "app"  # not completed to app:latest
    nodes[-1]["status"]["images"][0]["names"] = ["app:latest"]
    assert scores(snapshot(nodes=nodes, pods=[untagged]), "ImageLocalityPriority") == [0] * 6
    twice = pod("p", containers=[container("1", image="app:1")] * 2)
    assert scores(snapshot(nodes=nodes, pods=[twice]), "ImageLocalityPriority") == [1, 1, 3, 7, 10, 0]


def test_node_affinity_scales_to_ten() -> None:
    def term(weight: int, key: str) -> Manifest:
        return {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}

    preferred = [term(2, "a"), term(5, "b"), {"weight": 50, "preference": {}}]  # an empty term selects nothing
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    labels = [{"a": ""}, {"b": ""}, {"a": "", "b": ""}, {}]
    cluster = snapshot(
        nodes=[node(f"n{i}", labels=mine) for i, mine in enumerate(labels)], pods=[pod("p", affinity=affinity)]
    )
    assert scores(cluster, "NodeAffinityPriority") == [2, 7, 10, 0]
    assert scores(snapshot(nodes=[node("n")], pods=[pod("p")]), "NodeAffinityPriority") == [0]


def service(name: str, **selector: str) -> Manifest:
    return {"metadata": {"name": name}, "spec": {"selector": selector}}


def test_selector_spread_counts_what_any_service_or_controller_selects() -> None:
    cluster = snapshot(
        nodes=[node("n"), node("m"), node("o")],
        pods=[
            pod("a", "n", labels={"app": "x", "tier": "web"}),
            pod("b", "n", labels={"app": "x"}),
            pod("c", "m", labels={"tier": "web"}),
            pod("gone", "m", labels={"app": "x"}, deletionTimestamp="2026-01-01T00:00:00Z"),
            pod("far", "o", labels={"app": "x"}, namespace="other"),
            pod("p", labels={"app": "x", "tier": "web"}),
        ],
        services=[service("s", app="x"), service("none", app="z")],
        replica_sets=[{"metadata": {"name": "r"}, "spec": {"selector": {"matchLabels": {"tier": "web"}}}}],
    )
    assert scores(cluster, "SelectorSpreadPriority") == [0, 5, 10]


def test_zones_decide_two_thirds_in_32_bits() -> None:
    zones = ["z1", "z2", "z2"]
    cluster = snapshot(
        nodes=[node(f"n{i}", labels={f"{BETA}/zone": zone}) for i, zone in enumerate(zones)],
        pods=[pod("a", "n1", labels={"app": "x"}), pod("p", labels={"app": "x"})],
        services=[service("s", app="x")],
    )
    share = np.float32(1.0 - 2.0 / 3.0)
    alone = np.float32(10) * share  # nothing on the node, all in its zone
    full = alone + np.float32(2.0 / 3.0) * np.float32(10)
    assert scores(cluster, "SelectorSpreadPriority") == [int(full), 0, int(alone)] == [10, 0, 3]


def test_where_no_zone_holds_a_pod_all_are_as_good() -> None:
    nodes = [node(f"n{i}", labels={f"{BETA}/zone": f"z{i}"}) for i in range(2)]
    cluster = snapshot(nodes=nodes, pods=[pod("p", labels={"app": "x"})], services=[service("s", app="x")])
    assert scores(cluster, "SelectorSpreadPriority") == [10, 10]
    assert scores(snapshot(nodes=nodes, pods=[pod("p")]), "SelectorSpreadPriority") == [10, 10]


SPREAD = {"name": "RackSpread", "weight": 1, "argument": {"serviceAntiAffinity": {"label": "rack"}}}


def racks(*held: str, services: list[Manifest] | None = None) -> Snapshot:
    return snapshot(
        nodes=[node("n1", labels={"rack": "a"}), node("n2", labels={"rack": "b"}), node("n3")],
        pods=[*(pod(f"e{i}", at, labels={"app": "x"}) for i, at in enumerate(held)), pod("p", labels={"app": "x"})],
        services=[service("s", app="x")] if services is None else services,
    )


def test_racks_of_the_article() -> None:
    assert scores(racks("n1", "n2", "n2", "n3"), SPREAD) == [7, 5, 0]
    assert scores(racks(), SPREAD) == [10, 10, 0]
    assert scores(racks("n1", services=[]), SPREAD) == [10, 10, 0]
    # Only the first service counts.
    assert scores(racks("n1", services=[service("none", app="x", y="z"), service("s", app="x")]), SPREAD) == [0, 10, 0]


def test_32_bits_make_no_tenth_of_a_point_less() -> None:
    for k, total in ((k * m, 10 * m) for k in range(11) for m in range(1, 40)):
        assert int(np.float32(10) * (np.float32(k) / np.float32(total))) == 10 * k // total


def test_a_label_that_nodes_shall_or_shall_not_carry() -> None:
    cluster = racks()
    wanted = {"name": "A", "weight": 2, "argument": {"labelPreference": {"label": "rack", "presence": True}}}
    assert scores(cluster, wanted) == [20, 20, 0]  # weighted
    shunned = {"name": "B", "weight": 1, "argument": {"labelPreference": {"label": "rack", "presence": False}}}
    assert scores(cluster, shunned) == [0, 0, 10]


# -- policies ---------------------------------------------------------------------------------------------------


def test_equally_good_nodes_take_turns_by_falling_name() -> None:
    cluster = snapshot(nodes=[node("a"), node("c"), node("b")], pods=[pod(f"p{i}", cpu="0") for i in range(5)])
    chosen = [cluster.nodes[d.node or 0].name for d in schedule(framework(cluster, policy()), cluster.pods)]
    assert chosen == ["c", "b", "a", "c", "b"]


def test_pods_wait_in_the_order_of_arrival_whatever_their_priority() -> None:
    pods = [pod("first"), pod("urgent", priority=1000)]
    cluster = snapshot(nodes=[node("n", pods=1)], pods=pods)
    decisions = {d.pod.name: d.node for d in schedule(framework(cluster, policy("PodFitsResources")), cluster.pods)}
    assert decisions == {"first": 0, "urgent": None}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (policy("Nonsense"), "predicates[0].name: predicate 'Nonsense' is unknown; must be one of "),
        (policy("MaxGCEDVolumeCount"), "predicates[0].name: predicate 'MaxGCEDVolumeCount' is unknown"),
        (policy("PodToleratesNodeTaints"), "is not implemented"),
        (policy(priorities=("InterPodAffinityPriority",)), "priorities[0].name: priority 'InterPodAffinityPriority'"),
        (policy(priorities=("CalculateAntiAffinityPriority",)), "is unknown"),
        (policy(priorities=({"name": "EqualPriority", "weight": 0},)), "priorities[0].weight: is 0, must be positive"),
        (policy(priorities=({"name": "EqualPriority", "weight": -1},)), "priorities[0].weight: is -1"),
        (policy(priorities=({"name": "EqualPriority"},)), "priorities[0].weight: is 0"),
        (policy("HostName", "HostName"), "predicates[1].name: 'HostName' is also the name of predicates[0]"),
        (policy(priorities=({**SPREAD, "argument": {"nonsense": {}}},)), "priorities[0].argument: must hold exactly"),
        (
            policy(priorities=({**SPREAD, "argument": {"serviceAntiAffinity": {}}},)),
            "priorities[0].argument.serviceAntiAffinity.label: is missing",
        ),
        ({"kind": "Policy", "apiVersion": "v2"}, "apiVersion: is 'v2', must be 'v1'"),
        ({"kind": "Policy", "apiVersion": "v1", "weights": {}}, "weights: is an unknown field"),
    ],
)
def test_what_a_policy_may_not_say_is_refused(content: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        make_profiles(content, K5)
    assert complaint in str(caught.value)


def test_a_policy_file_runs_by_its_kind_and_not_with_another_release(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(policy("GeneralPredicates", priorities=("LeastRequestedPriority", SPREAD))))
    compiled = make_problem(racks(), Settings(config=str(path)))
    assert compiled.profile.release is K5
    assert set(compiled.profile.at("filter")) == {
        "ListedNodes", "PodFitsResources", "HostName", "PodFitsHostPorts", "MatchNodeSelector",
    }  # fmt: skip
    assert compiled.profile.at("score") == ["LeastRequestedPriority", "RackSpread"]
    with pytest.raises(InputError, match="kind: is Policy; release 1.24 reads kubescheduler".replace(".", r"\.")):
        make_problem(racks(), Settings(config=str(path), release="1.24"))
    with pytest.raises(InputError, match=r"must be Policy, which release 1\.5 reads"):
        make_profiles({"kind": "KubeSchedulerConfiguration"}, K5)


def test_no_other_release_knows_the_names() -> None:
    for release in (K24, K36):
        content = {
            "apiVersion": f"kubescheduler.config.k8s.io/{release.config_versions[-1]}",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"score": {"enabled": [{"name": "LeastRequestedPriority"}]}}}],
        }
        with pytest.raises(InputError, match="'LeastRequestedPriority' is unknown"):
            make_profiles(content, release)


# -- the model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_rules_admit_what_predicates_admit(seed: int) -> None:
    for cluster in (random_cluster(Seeded(seed)), random_disks(Seeded(seed))):
        profile = default_profile(K5)
        compiled = compile_problem(cluster, profile, PRESETS["repair"])
        evaluator = Evaluator(compiled.problem)
        for placement in list(placements(compiled.problem))[:40]:
            where = compiled.assign(placement)
            refused = rejections(populated(cluster, profile, where, compiled.signatures), where)
            violations = evaluator.evaluate(placement).violations
            assert bool(refused) == bool(violations), (where, [str(r) for r in refused], violations)


def test_a_disk_that_a_pod_mounts_twice_is_in_no_conflict_with_itself() -> None:
    once = [{"name": "a", "awsElasticBlockStore": {"volumeID": "e"}}]
    twice = [*once, {**once[0], "name": "b"}]
    stays = pod("stays", "n", volumes=twice, owner="DaemonSet/d")
    cluster = snapshot(nodes=[node("n"), node("m")], pods=[stays, pod("new", volumes=once)])
    compiled = compile_problem(cluster, default_profile(K5), PRESETS["repair"])
    apart, together = (compiled.placement({"default/stays": "n", "default/new": at}) for at in "mn")
    assert not Evaluator(compiled.problem).evaluate(apart).violations
    assert Evaluator(compiled.problem).evaluate(together).violations


def test_terms_rank_nodes_as_scores_do() -> None:
    everything = policy(
        "PodFitsResources",
        priorities=(
            "LeastRequestedPriority", "BalancedResourceAllocation", "SelectorSpreadPriority", "NodeAffinityPriority",
            "ImageLocalityPriority", SPREAD,
        ),
    )  # fmt: skip
    cluster = racks("n1", "n2", "n2")
    profile = make_profiles(everything, K5)["default-scheduler"]
    compiled = compile_problem(cluster, profile, PRESETS["kube"])
    assert not [note for note in compiled.notes if "terms" in note]
    evaluator, costs = Evaluator(compiled.problem), {}
    for placement in placements(compiled.problem):
        where = compiled.assign(placement)
        if all(where.get(p.key) == p.node_name for p in cluster.pods if p.node_name) and "default/p" in where:
            costs[where["default/p"]] = evaluator.evaluate(placement).values[-1]
    total = examine(framework(cluster, everything), cluster.pods[-1]).total.tolist()
    order = sorted(costs, key=lambda name: costs[name])
    assert all(total[int(a[1]) - 1] >= total[int(b[1]) - 1] for a, b in pairwise(order)), (total, costs)
