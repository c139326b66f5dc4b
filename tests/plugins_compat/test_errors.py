"""Where a plugin fails, the cycle ends: no other node is taken, and nobody is preempted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import POINTS
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.profile import Use
from stowplan.plugins_compat.framework.scheduler import schedule_one
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K24, K36
from stowplan.plugins_compat.scoring import final_scores
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


class Generous(Plugin):
    """Scores 101, which no plugin may."""

    name = "Generous"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        return np.full(len(nodes), POINTS + 1, dtype=np.int64)


def test_a_score_that_is_out_of_range_ends_the_cycle() -> None:
    """It is an error of the plugin, in upstream's words, and no error of ours; the pod counts as not scored."""
    cluster = snapshot(nodes=[node("n1"), node("n2")], pods=[pod("p"), pod("q", "n1")])
    profile = default_profile(K36, "first")
    use = Use(Generous, 1, frozenset({"score"}))
    order = {**profile.order, "score": (*profile.at("score"), Generous.name)}
    generous = replace(profile, uses=(*profile.uses, use), order=order)
    decision = schedule_one(Framework(generous, ClusterState(cluster, K36)), cluster.pods[0])
    assert decision.is_error
    assert decision.message == (
        'applying score defaultWeights on Score plugins: plugin "Generous" returns an invalid score 101, '
        "it should in the range of [0, 100] after normalizing"
    )
    framework = populated(cluster, generous, cluster.assignment)
    assert final_scores(framework, cluster.pods, cluster.assignment).scored == 0
