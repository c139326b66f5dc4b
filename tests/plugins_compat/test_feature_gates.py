"""Feature gates: which releases know them, and what they change."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.models.errors import InputError
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.feature_gates import gated
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K20, K24, K36, Release
from stowplan.settings.problem import make_profile
from tests.plugins_compat.test_score_facts import score
from tests.support.clusters import BOUND, ZONE, Manifest, node, pod, snapshot


def admitted(cluster: Snapshot, release: Release) -> tuple[set[str], Framework]:
    state = ClusterState(cluster, release, Signatures(cluster.pods))
    state.fill(p for p in cluster.pods if p.node_name)
    made = Framework(default_profile(release), state)
    diagnosis = made.run_filters(made.cycle(cluster.pods[-1]))
    return {cluster.nodes[n].name for n in diagnosis.feasible.tolist()}, made


@pytest.mark.parametrize(
    ("release", "gates", "complaint"),
    [
        (K24, "ReadWriteOncePod", "'ReadWriteOncePod' must be NAME=true or NAME=false"),
        (K24, "ReadWriteOncePod=maybe", "must be NAME=true or NAME=false"),
        (K24, "Nonsense=true", "Nonsense is unknown; release 1.24 has LocalStorageCapacityIsolation"),
        (K36, "Nonsense=true", "Nonsense is unknown; release 1.36 has no gates here"),
        (K24, "BalanceAttachedNodeVolumes=true", "is no gate of release 1.24; 1.20 have it"),
        (K24, "PodOverhead=false", "PodOverhead is locked to true in release 1.24"),
    ],
)
def test_what_cannot_be_set_is_refused(release: Release, gates: str, complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        gated(release, gates)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("--feature-gates: ")


def test_gates_reach_the_profile_and_the_document() -> None:
    settings = Settings(release="1.24", feature_gates="ReadWriteOncePod=true, PodOverhead=true")
    assert make_profile(settings).release.read_write_once_pod
    assert not K24.read_write_once_pod
    assert gated(K24, None) is K24
    assert gated(K24, "MinDomainsInPodTopologySpread=true,MinDomainsInPodTopologySpread=false") == K24


def test_read_write_once_pod_is_unresolvable_in_1_24() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    cluster = snapshot(
        nodes=[node("n"), node("m")],
        pods=[pod("a", "n", volumes=volumes), pod("b", volumes=volumes)],
        persistent_volumes=[{"metadata": {"name": "pv"}, "spec": {"capacity": {"storage": "1Gi"}}}],
        persistent_volume_claims=[
            {
                "metadata": {"name": "c", "annotations": BOUND},
                "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]},
            }
        ],
    )
    assert admitted(cluster, K24)[0] == {"n", "m"}
    found, made = admitted(cluster, gated(K24, "ReadWriteOncePod=true"))
    assert not found
    rejected = made.run_filters(made.cycle(cluster.pods[-1])).rejected
    assert rejected is not None
    assert rejected.code is Code.UNRESOLVABLE


def test_min_domains_sets_the_least_to_0_where_there_are_fewer() -> None:
    constraint = {
        "maxSkew": 1, "minDomains": 3, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }  # fmt: skip
    x = {"app": "x"}
    cluster = snapshot(
        nodes=[node("n", labels={ZONE: "1"}), node("m", labels={ZONE: "2"})],
        pods=[
            pod("a", "n", labels=x),
            pod("b", "m", labels=x),
            pod("p", labels=x, topologySpreadConstraints=[constraint]),
        ],
    )  # fmt: skip
    assert admitted(cluster, K24)[0] == {"n", "m"}
    assert admitted(cluster, gated(K24, "MinDomainsInPodTopologySpread=true"))[0] == set()


@pytest.mark.parametrize("release", [K20, K24], ids=lambda release: release.name)
def test_local_storage_is_not_counted_when_it_is_off(release: Release) -> None:
    cluster = snapshot(
        nodes=[node("n", extended={"ephemeral-storage": "1Gi"})], pods=[pod("p", extended={"ephemeral-storage": "2Gi"})]
    )
    assert admitted(cluster, release)[0] == set()
    assert admitted(cluster, gated(release, "LocalStorageCapacityIsolation=false"))[0] == {"n"}


def test_pod_overhead_is_not_counted_when_it_is_off() -> None:
    cluster = snapshot(nodes=[node("n", cpu="1")], pods=[pod("p", cpu="900m", overhead={"cpu": "200m"})])
    assert admitted(cluster, K20)[0] == set()
    assert admitted(cluster, gated(K20, "PodOverhead=false"))[0] == {"n"}


def local(name: str, at: str, size: str) -> Manifest:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [at]}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size}, "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        "status": {"phase": "Available"},
    }  # fmt: skip


def test_volume_capacity_priority_prefers_the_tighter_volume() -> None:
    def cluster(**more: Any) -> Snapshot:
        return snapshot(
            nodes=[node("n"), node("m"), node("o")],
            pods=[pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])],
            persistent_volumes=[local("v1", "n", "40Gi"), local("v2", "m", "15Gi"), local("v3", "o", "10Gi")],
            persistent_volume_claims=[
                {
                    "metadata": {"name": "c"},
                    "spec": {
                        "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "10Gi"}},
                    },
                }
            ],
            storage_classes=[
                {
                    "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner",
                    "volumeBindingMode": "WaitForFirstConsumer",
                }
            ],
            **more,
        )  # fmt: skip

    assert score(cluster(), "VolumeBinding", K24) == [0, 0, 0]
    assert score(cluster(), "VolumeBinding", gated(K24, "VolumeCapacityPriority=true")) == [25, 66, 100]
    falling = {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]}
    assert score(cluster(), "VolumeBinding", gated(K24, "VolumeCapacityPriority=true"), falling) == [75, 34, 0]
