"""Where a plugin fails, the cycle ends: no other node is taken, and nobody is preempted."""

from __future__ import annotations

from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import schedule_one
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K24, K36
from tests.support.clusters import BOUND, ZONE, Manifest, node, pod, snapshot

CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}


def framework(release: object, cluster: object, **plugins: Manifest) -> Framework:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    if release is K24:
        config["apiVersion"] += "beta3"  # type: ignore[operator]
    profile = next(iter(make_profiles(config, release, "first").values()))  # type: ignore[arg-type]
    return Framework(profile, ClusterState(cluster, release))  # type: ignore[arg-type]


def test_a_regional_disk_without_a_region_ends_the_cycle() -> None:
    volume: Manifest = {
        "metadata": {"name": "v", "labels": {ZONE: "a__b"}},
        "spec": {"gcePersistentDisk": {"pdName": "d"}, "claimRef": {"name": "c", "namespace": "default"}},
    }
    claim = {"metadata": {"name": "c", "annotations": BOUND}, "spec": {"volumeName": "v", "storageClassName": ""}}
    migrates = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}
    cluster = snapshot(
        nodes=[node("n1"), node("n2")],
        pods=[pod("p", volumes=[CLAIM])],
        persistent_volumes=[volume],
        persistent_volume_claims=[claim],
        csi_nodes=[{"metadata": {"name": "n1", "annotations": migrates}, "spec": {"drivers": []}}],
    )
    decision = schedule_one(framework(K24, cluster), cluster.pods[0])
    assert decision.is_error
    assert decision.node is None
    assert decision.message.startswith('running "VolumeBinding" filter plugin: could not translate pv: failed to get')


def test_a_score_without_what_pre_filter_leaves_ends_the_cycle() -> None:
    cluster = snapshot(nodes=[node("n1"), node("n2")], pods=[pod("p")])
    off = {"disabled": [{"name": "DynamicResources"}]}
    decision = schedule_one(framework(K36, cluster, preFilter=off, filter=off), cluster.pods[0])
    assert decision.is_error
    assert decision.message == 'running Score plugins: plugin "DynamicResources" failed with: not found'
    decision = schedule_one(framework(K36, cluster, preFilter=off), cluster.pods[0])
    assert decision.message == 'running "DynamicResources" filter plugin: not found'
