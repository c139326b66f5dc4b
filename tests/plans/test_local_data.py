"""Data on a node: what counts as such, and who gives it up."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.models.manifest import manifest
from stowplan.models.settings import Executor
from stowplan.models.snapshot import Snapshot
from stowplan.plans.movability.causes import Cause
from stowplan.plans.movability.local_data import local_data
from stowplan.plans.movability.movable import Movability, immovable
from tests.support.clusters import node, pod, snapshot

EVERYBODY: tuple[Executor | None, ...] = ("eviction-api", "descheduler", "koordinator", None)
HOST = [{"name": "data", "hostPath": {"path": "/data"}}]
CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"


def one(volumes: list[dict[str, Any]], mounts: list[dict[str, Any]] | None = None, **spec: Any) -> Snapshot:
    """Return a cluster with one pod of a ReplicaSet that has volumes, mounted so."""
    spec = {"owner": "ReplicaSet/web", "schedulerName": "koord-scheduler", **spec}
    found = pod("web", "n1", volumes=volumes, **spec)
    if mounts is not None:
        found["spec"]["containers"][0]["volumeMounts"] = mounts
    return snapshot(nodes=[node("n1")], pods=[found], **STORAGE)


STORAGE: dict[str, Any] = {
    "persistent_volumes": [],
    "persistent_volume_claims": [{"metadata": {"name": "data", "namespace": "default"}, "spec": {"volumeName": "pv"}}],
}


def data(cluster: Snapshot) -> list[str]:
    return list(local_data(cluster, cluster.pods[0]))


@pytest.mark.parametrize("executor", EVERYBODY)
@pytest.mark.parametrize("volume", [{"emptyDir": {}}, {"emptyDir": {"sizeLimit": "1Gi"}}, {"hostPath": {"path": "/d"}}])
def test_nobody_moves_a_pod_with_local_data_by_default(executor: Executor | None, volume: dict[str, Any]) -> None:
    cluster = one([{"name": "data", **volume}])
    blocker = Movability(cluster, executor, waived=[Cause.REPLICAS]).blocker(cluster.pods[0])
    assert blocker is not None
    assert blocker.cause is Cause.LOCAL_STORAGE
    waived = [Cause.LOCAL_STORAGE, Cause.REPLICAS]
    assert Movability(cluster, executor, waived=waived).blocker(cluster.pods[0]) is None


@pytest.mark.parametrize(
    ("volume", "found"),
    [
        ({"emptyDir": {}}, ["emptyDir data"]),
        ({"emptyDir": {"medium": ""}}, ["emptyDir data"]),
        ({"emptyDir": {"medium": "HugePages"}}, ["emptyDir data"]),
        ({"emptyDir": {"medium": "Memory"}}, []),
        ({"hostPath": {"path": "/data"}}, ["hostPath data"]),
        ({"configMap": {"name": "data"}}, []),
        ({"projected": {"sources": []}}, []),
    ],
)
def test_kinds_of_volumes(volume: dict[str, Any], found: list[str]) -> None:
    assert data(one([{"name": "data", **volume}])) == found


@pytest.mark.parametrize(
    ("mounts", "writable"),
    [
        (None, True),
        ([], True),
        ([{"name": "other", "readOnly": True}], True),
        ([{"name": "data"}], True),
        ([{"name": "data", "readOnly": False}], True),
        ([{"name": "data", "readOnly": True}], False),
        ([{"name": "data", "readOnly": True}, {"name": "data"}], True),
    ],
)
def test_a_host_path_counts_unless_every_mount_only_reads_it(
    mounts: list[dict[str, Any]] | None, writable: bool
) -> None:
    assert bool(data(one(HOST, mounts))) == writable


def test_an_init_container_writes_too() -> None:
    init = [{"name": "init", "volumeMounts": [{"name": "data"}]}]
    assert data(one(HOST, [{"name": "data", "readOnly": True}], initContainers=init)) == ["hostPath data"]


def test_mounts_that_make_no_sense_are_no_reading() -> None:
    # The API server would refuse them; a snapshot may hold anything.
    for mounts in ({"name": "data"}, [None], [{"name": 3, "readOnly": True}], [{"readOnly": True}]):
        assert data(one(HOST, mounts)) == ["hostPath data"]  # type: ignore[arg-type]


def test_what_is_worked_out_is_not_written_into_manifests() -> None:
    (found,) = one(HOST, [{"name": "data", "readOnly": True}]).pods
    assert manifest(found)["spec"]["volumes"] == [{"name": "data", "hostPath": {}}]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ({"local": {"path": "/mnt/disk"}}, ["local PersistentVolume pv"]),
        ({"hostPath": {"path": "/mnt/disk"}}, ["local PersistentVolume pv"]),
        ({"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol"}}, []),
    ],
)
def test_claims_on_local_volumes(source: dict[str, Any], found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STORAGE, "persistent_volumes", [{"metadata": {"name": "pv"}, "spec": source}])
    assert data(one(CLAIM)) == found


@pytest.mark.parametrize(
    ("annotations", "stays"),
    [
        ({}, True),
        ({"descheduler.alpha.kubernetes.io/evict": ""}, False),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, False),
        ({LOCAL_VOLUMES: "data"}, True),
        ({LOCAL_VOLUMES: "data,more"}, False),
    ],
)
def test_owners_give_data_up(annotations: dict[str, str], stays: bool) -> None:
    volumes: list[dict[str, Any]] = [{"name": "data", "emptyDir": {}}, {"name": "more", "emptyDir": {}}]
    assert bool(immovable(one(volumes, annotations=annotations), "eviction-api")) == stays


def test_what_a_move_loses_is_named() -> None:
    cluster = one([{"name": "data", "emptyDir": {}}, {"name": "more", "hostPath": {"path": "/d"}}])
    losses = Movability(cluster, "eviction-api").losses(cluster.pods[0])
    assert losses == ("data in emptyDir data", "data in hostPath more")
