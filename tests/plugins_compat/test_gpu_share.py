"""Shares of GPUs: how pods ask for them, where the filter lets them, and what the model makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stowplan.models.errors import InputError
from stowplan.models.kubernetes.devices import GPU_COUNT, GPU_MILLI, GPU_MODEL
from stowplan.models.objective import PRESETS
from stowplan.models.problem import Devices
from stowplan.models.snapshot import Participation, Snapshot
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.scheduler import failure, schedule
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.plugins.gpu_share import Demand, devices_asked
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K24, K36
from tests.support.clusters import Manifest, gpu, node, pod, snapshot

PROFILE = default_profile(K36, more=("GpuShare",))


def gpus(name: str, count: int, model: str = "", **more: Manifest) -> Manifest:
    return node(name, cpu="64", labels={GPU_MODEL: model} if model else {}, extended={GPU_COUNT: str(count)}, **more)


def asking(
    name: str, at: str | None = None, *, count: int | None = 1, milli: int | None = None, **more: str
) -> Manifest:
    return pod(name, at, annotations=gpu(count, milli, more.pop("models", "")), **more)


def scheduled(cluster: Snapshot, profile: Profile = PROFILE) -> dict[str, str | None]:
    """Let the scheduler place the pending pods one after the other."""
    state = ClusterState(cluster, profile.release)
    state.fill(p for p in cluster.pods if p.node_name)
    framework = Framework(profile, state)
    framework.post_filters = []
    waiting = [p for p in cluster.pods if not p.node_name]
    return {d.pod.name: None if d.node is None else cluster.nodes[d.node].name for d in schedule(framework, waiting)}


@pytest.mark.parametrize(
    ("manifest", "demand"),
    [
        (pod("p"), Demand()),
        (asking("p", count=1, milli=460), Demand(shares=(460,))),
        (asking("p", count=None, milli=460), Demand(shares=(460,))),
        (asking("p", count=2), Demand(whole=2)),
        (asking("p", count=2, milli=1000), Demand(whole=2)),
        (asking("p", count=2, milli=300), Demand(shares=(300, 300))),
        (asking("p", count=0, milli=300), Demand()),
        (asking("p", count=1, milli=0), Demand()),
        (pod("p", extended={GPU_MILLI: "460"}), Demand(shares=(460,))),
        (pod("p", extended={GPU_MILLI: "2000"}), Demand(whole=2)),
        (pod("p", extended={GPU_MILLI: "1300"}), Demand(1, (300,))),
        (pod("p", extended={GPU_COUNT: "3"}), Demand(whole=3)),
        # Annotations have the last word.
        (pod("p", extended={GPU_MILLI: "600"}, annotations=gpu(2, 300)), Demand(shares=(300, 300))),
    ],
)
@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
def test_ways_to_ask(manifest: Manifest, demand: Demand, release: object) -> None:
    assert devices_asked(snapshot(pods=[manifest]).pods[0], release) == demand  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({GPU_MILLI: "1001"}, r"Pod default/p: metadata.annotations\[alibabacloud.com/gpu-milli\]: is '1001'"),
        ({GPU_COUNT: "-1"}, "is '-1'; must be an integer from 0 to 1024"),
        ({GPU_COUNT: "two"}, "is 'two'"),
        ({GPU_COUNT: "٢"}, "must be an integer"),
        ({GPU_COUNT: "99999999999999999999"}, "must be an integer"),
    ],
)
def test_annotations_that_cannot_be_are_named(annotations: Manifest, said: str) -> None:
    with pytest.raises(InputError, match=said):
        snapshot(nodes=[gpus("n", 1)], pods=[pod("p", annotations=annotations)]).check()


def test_a_share_is_not_split_over_devices() -> None:
    """Two devices, 600 taken of each: 800 are free, but no device has 500; 400 fit."""
    taken = [asking(name, "n", milli=600) for name in "ab"]
    found = scheduled(snapshot(nodes=[gpus("n", 2)], pods=[*taken, asking("c", milli=500), asking("d", milli=400)]))
    assert found == {"c": None, "d": "n"}


def test_pods_of_a_node_are_packed_anew() -> None:
    """Shares of 500, 500, 400 and 600 fit two devices, whatever the order they come in."""
    pods = [asking(name, milli=milli) for name, milli in (("a", 400), ("b", 500), ("c", 500), ("d", 600))]
    assert set(scheduled(snapshot(nodes=[gpus("n", 2)], pods=pods)).values()) == {"n"}


def test_whole_devices_are_free_ones() -> None:
    cluster = snapshot(
        nodes=[gpus("n", 2)], pods=[asking("a", "n", milli=10), asking("b", count=2), asking("c", count=1)]
    )
    assert scheduled(cluster) == {"b": None, "c": "n"}


def test_reasons_tell_taken_devices_from_missing_ones() -> None:
    nodes = [gpus("busy", 1, "T4"), gpus("other", 4, "A10"), node("none"), gpus("small", 1, "T4"), gpus("nameless", 8)]
    taken = [asking("a", "busy", milli=900, models="T4"), asking("b", "small", milli=900)]
    cluster = snapshot(nodes=nodes, pods=[*taken, asking("p", milli=200, models="T4|P100"), asking("q", count=2)])
    state = ClusterState(cluster, K36)
    state.fill(p for p in cluster.pods if p.node_name)
    framework = Framework(PROFILE, state)
    assert failure(framework.run_filters(framework.cycle(cluster.pods[2]))) == (
        "0/5 nodes are available: 2 Insufficient GPU devices, 3 node(s) didn't have the requested GPU devices."
    )
    diagnosis = framework.run_filters(framework.cycle(cluster.pods[3]))
    assert [cluster.nodes[n].name for n in diagnosis.feasible] == ["other", "nameless"]


def test_no_release_has_it_and_a_configuration_enables_it() -> None:
    assert all("GpuShare" not in dict(release.plugins) for release in (K24, K36))
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "GpuShare"}]}}}],
    }
    (profile,) = make_profiles(config, K36).values()
    cluster = snapshot(nodes=[gpus("n", 1)], pods=[asking("a", milli=600), asking("b", milli=600)])
    assert scheduled(cluster, profile) == {"a": "n", "b": None}
    assert scheduled(cluster, default_profile(K36)) == {"a": "n", "b": "n"}


def test_the_model_holds_what_fixed_pods_take_and_refuses_several_shares() -> None:
    pods = [
        asking("fixed", "n0", milli=300, owner="DaemonSet/d"),
        asking("whole", "n1", count=1, owner="DaemonSet/d"),
        asking("several", "n1", count=2, milli=200),
        asking("free", "n0", milli=700),
        asking("waits", count=1, models="T4"),
    ]
    cluster = snapshot(nodes=[gpus("n0", 2), gpus("n1", 4, "T4")], pods=pods)
    compiled = compile_problem(cluster, PROFILE, PRESETS["pack"])
    assert compiled.participants.reason[2] == "shares of several devices"
    assert compiled.participants.participation[2] is Participation.FIXED
    (rule,) = [rule for rule in compiled.problem.rules if isinstance(rule, Devices)]
    assert sorted(zip(rule.whole.tolist(), rule.part.tolist(), strict=True)) == [(0, 700), (1, 0)]
    assert rule.held_whole.tolist() == [0, 1]
    assert sorted(zip(rule.held_node.tolist(), rule.held_part.tolist(), strict=True)) == [(0, 300), (1, 200), (1, 200)]
    limit, demand, free = next(rule.sums)
    assert (limit, sorted(demand.tolist()), free.tolist()) == (1000, [700, 1000], [1700, 2600])
    size = next(tier for tier in compiled.problem.tiers if tier.name == "pending (size-weighted)")
    # Nodes have three devices on average; nothing else of a node is as scarce.
    assert sorted(size.terms[0].term.cost.tolist()) == [233, 333]  # type: ignore[union-attr]


def test_usage_counts_devices_however_they_were_asked_for() -> None:
    pods = [asking("a", "n", milli=300), pod("b", "n", extended={GPU_MILLI: "1000"}), asking("c", count=2)]
    state = ClusterState(snapshot(nodes=[gpus("n", 4), node("m")], pods=pods), K36)
    state.fill(p for p in state.snapshot.pods if p.node_name)
    taken, offered = Framework(PROFILE, state).plugins["GpuShare"].accounts()[GPU_MILLI]
    assert taken.tolist() == [1300, 0]
    assert offered.tolist() == [4000, 0]
    empty = ClusterState(replace(state.snapshot, pods=()), K36)
    assert not Framework(PROFILE, empty).plugins["GpuShare"].accounts()


def test_the_filter_follows_pods_that_come_and_go() -> None:
    """What was asked before is remembered, and forgotten as soon as the node changes."""
    cluster = snapshot(nodes=[gpus("n", 1), gpus("m", 1)], pods=[asking("a", milli=600), asking("b", milli=600)])
    state = ClusterState(cluster, K36)
    framework = Framework(PROFILE, state)
    first, second = cluster.pods
    here = np.arange(2)

    def feasible() -> list[int]:
        return framework.run_filters(framework.cycle(second), here).feasible.tolist()

    assert feasible() == [0, 1]
    state.put(first, 0)
    assert feasible() == [1]
    state.put(replace(first, metadata=replace(first.metadata, name="c", annotations=first.metadata.annotations)), 1)
    assert feasible() == []
    state.take(first, 0)
    assert feasible() == [0]
