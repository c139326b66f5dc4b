"""Sampling: how many feasible nodes are looked for, where the search begins, and where it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stowplan.models.errors import InputError
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.sampling import nodes_to_find
from stowplan.plugins_compat.framework.scheduler import examine
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K24, K36, Release
from tests.support.clusters import node, pod, snapshot


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        (99, 99),
        (100, 100),
        (125, 100),
        (1000, 420),
        (2500, 750),
        (3125, 781),
        (5000, 500),
        (5625, 281),
        (6000, 300),
        (10000, 500),
    ],
)
def test_the_adaptive_number(nodes: int, found: int) -> None:
    assert nodes_to_find(nodes, 0) == found


@pytest.mark.parametrize(("percentage", "found"), [(1, 100), (30, 300), (99, 990), (100, 1000)])
def test_a_percentage_of_a_thousand(percentage: int, found: int) -> None:
    assert nodes_to_find(1000, percentage) == found


def framework(cluster: Snapshot, release: Release, percentage: int = 10) -> Framework:
    profile = replace(default_profile(release, "first"), samples=True, percentage_of_nodes_to_score=percentage)
    return Framework(profile, ClusterState(cluster, release, Signatures(cluster.pods)))


def cluster(nodes: int, full: int = 0, **spec: object) -> Snapshot:
    """Nodes of which the first are too small, and two waiting pods."""
    sizes = ["100m"] * full + ["8"] * (nodes - full)
    return snapshot(
        nodes=[node(f"n{i:03d}", cpu=size) for i, size in enumerate(sizes)],
        pods=[pod("a", cpu="1", **spec), pod("b", cpu="1", **spec)],
    )


def test_the_next_search_begins_where_the_last_one_ended() -> None:
    scheduler = framework(cluster(250), K36)
    first, second, third = (examine(scheduler, scheduler.state.snapshot.pods[0]).diagnosis for _ in range(3))
    assert first.feasible.tolist() == list(range(100))
    assert second.feasible.tolist() == list(range(100, 200))
    assert third.feasible.tolist() == [*range(200, 250), *range(50)]


def test_nodes_that_failed_on_the_way_count_and_the_node_beyond_does_not() -> None:
    scheduler = framework(cluster(250, full=20), K36)
    diagnosis = examine(scheduler, scheduler.state.snapshot.pods[0]).diagnosis
    assert len(diagnosis.nodes) == 120
    assert diagnosis.feasible.tolist() == list(range(20, 120))
    assert scheduler.sampler is not None
    assert scheduler.sampler.start == 120


@pytest.mark.parametrize(("release", "start"), [(K24, 150), (K36, 150)])
def test_a_small_cluster_is_searched_whole(release: Release, start: int) -> None:
    scheduler = framework(cluster(150), release, percentage=100)
    assert len(examine(scheduler, scheduler.state.snapshot.pods[0]).diagnosis.feasible) == 150
    assert scheduler.sampler is not None
    assert scheduler.sampler.start == start % 150


def test_where_nothing_scores_new_releases_take_the_first() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}]}}}],
    }
    profile = replace(make_profiles(config, K36)["default-scheduler"], samples=True)
    many = cluster(300)
    scheduler = Framework(profile, ClusterState(many, K36, Signatures(many.pods)))
    assert examine(scheduler, many.pods[0]).diagnosis.feasible.tolist() == [0]
    assert examine(scheduler, many.pods[0]).diagnosis.feasible.tolist() == [1]


def test_a_profile_of_a_new_release_has_its_own_percentage() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 30,
        "profiles": [{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 70}],
    }
    profiles = make_profiles(config, K36)
    assert [profile.percentage_of_nodes_to_score for profile in profiles.values()] == [30, 70]
    old = {**config, "apiVersion": "kubescheduler.config.k8s.io/v1beta3"}
    with pytest.raises(InputError, match="is unknown to this release"):
        make_profiles(old, K24)
