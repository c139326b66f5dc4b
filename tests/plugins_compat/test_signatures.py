"""What plugins read of a signature is what pods of one signature have in common.

A plugin that reads a field of ``signature.pod`` which is not in the signature's key gets the field of whichever pod was
met first. So plugins are run on pods that let only fields of the key be read, and each of these fields is changed to
see that the signature changes with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.devices import GPU_COUNT, GPU_MILLI, GPU_MODEL
from stowplan.models.kubernetes.meta import ISOLATION
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.compiler.compile import loads_today
from stowplan.plugins_compat.framework import signatures as module
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import schedule
from stowplan.plugins_compat.framework.signatures import Signature, Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.plugins import IN_TREE
from stowplan.plugins_compat.plugins.trimaran import TRIMARAN
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from tests.support.choices import Seeded
from tests.support.clusters import Manifest, labels, pod, snapshot
from tests.support.random_clusters import random_cluster, random_devices, random_disks

PORTS = [{"containerPort": 80, "hostPort": 80}]
CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
CONTAINER = {"name": "x", "resources": {"requests": {"cpu": "1"}}}

READABLE: dict[str, Manifest] = {
    "namespace": {"metadata": {"namespace": "other"}},
    "priority": {"spec": {"priority": 7}},
    "terminating": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    "gated": {"spec": {"schedulingGates": [{"name": "g"}]}},
    "per_node": {"metadata": {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}},
    "metadata.labels": {"metadata": {"labels": {"app": "y"}}},
    "metadata.annotations": {"metadata": {"annotations": {GPU_COUNT: "1"}}},
    "metadata.controller.api_version": {
        "metadata": {"ownerReferences": [{"apiVersion": "v2", "kind": "ReplicaSet", "name": "r", "controller": True}]}
    },
    "metadata.controller.kind": {
        "metadata": {"ownerReferences": [{"kind": "StatefulSet", "name": "r", "controller": True}]}
    },
    "metadata.controller.name": {
        "metadata": {"ownerReferences": [{"kind": "ReplicaSet", "name": "s", "controller": True}]}
    },
    "spec.containers": {"spec": {"containers": [CONTAINER | {"ports": PORTS}]}},
    "spec.init_containers": {"spec": {"initContainers": [CONTAINER]}},
    "spec.node_selector": {"spec": {"nodeSelector": {"disk": "ssd"}}},
    "spec.affinity": {"spec": {"affinity": AFFINITY}},
    "spec.tolerations": {"spec": {"tolerations": [{"operator": "Exists"}]}},
    "spec.topology_spread_constraints": {
        "spec": {"topologySpreadConstraints": [CONSTRAINT | {"labelSelector": labels(app="x")}]}
    },
    "spec.overhead": {"spec": {"overhead": {"cpu": "1"}}},
    "spec.resources": {"spec": {"resources": {"requests": {"cpu": "3"}}}},
    "spec.host_network": {"spec": {"hostNetwork": True, "hostUsers": False}},
    "spec.host_users": {"spec": {"hostNetwork": True, "hostUsers": False}},
    "spec.resource_claims": {"spec": {"resourceClaims": [{"name": "c"}]}},
    "spec.scheduler_name": {"spec": {"schedulerName": "another"}},
    "spec.volumes.persistent_volume_claim.claim_name": {
        "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    },
    "spec.volumes.ephemeral": {"spec": {"volumes": [{"name": "v", "ephemeral": {}}]}},
    "spec.volumes.gce_persistent_disk": {"spec": {"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]}},
    "spec.volumes.aws_elastic_block_store": {
        "spec": {"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "d"}}]}
    },
    "spec.volumes.azure_disk": {"spec": {"volumes": [{"name": "v", "azureDisk": {"diskName": "d", "diskURI": "u"}}]}},
    "spec.volumes.cinder": {"spec": {"volumes": [{"name": "v", "cinder": {"volumeID": "d"}}]}},
    "spec.volumes.iscsi": {"spec": {"volumes": [{"name": "v", "iscsi": {"iqn": "d"}}]}},
    "spec.volumes.rbd": {"spec": {"volumes": [{"name": "v", "rbd": {"monitors": ["m"], "image": "d"}}]}},
    "spec.volumes.image": {"spec": {"volumes": [{"name": "v", "image": {"reference": "i"}}]}},
}
"""Each field that a plugin may read of a signature, with a change to it that has to change the signature."""

PARTS = {".".join(words[:i]) for words in (path.split(".") for path in READABLE) for i in range(1, len(words))}
DEVICES = (GPU_COUNT, GPU_MILLI, GPU_MODEL)


class Guarded:
    """Lets only the fields of `READABLE` be read of an object, and notes which are."""

    def __init__(self, thing: object, path: str, read: set[str]) -> None:
        self._thing, self._path, self._read = thing, path, read

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}".lstrip(".")
        value = getattr(self._thing, name)
        if path in READABLE:
            self._read.add(path)
            return Devices(value) if path == "metadata.annotations" else value
        if path not in PARTS:
            raise AssertionError(f"{path} is read of a signature, and is not in its key")
        if isinstance(value, tuple):
            return tuple(Guarded(item, path, self._read) for item in value)
        return None if value is None else Guarded(value, path, self._read)


class Devices(dict[str, str]):
    """Annotations of which only those about devices may be asked for."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(self._known(key), default)

    def __getitem__(self, key: str) -> str:
        return super().__getitem__(self._known(key))

    def __contains__(self, key: object) -> bool:
        return super().__contains__(self._known(key))

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all annotations are read of a signature; its key has those about devices")

    @staticmethod
    def _known(key: Any) -> str:
        assert key in DEVICES or ISOLATION in key, f"the annotation {key} is read of a signature, and is not in its key"
        return str(key)


CLUSTERS = [
    *(random_cluster(Seeded(seed), nodes=4, pods=12) for seed in range(8)),
    *(random_disks(Seeded(seed)) for seed in range(6)),
    *(random_devices(Seeded(seed)) for seed in range(4)),
]

SELDOM = {
    "terminating",
    "gated",
    "per_node",
    "metadata.controller.api_version",
    "spec.host_users",
    "spec.resource_claims",
    "spec.scheduler_name",
    "spec.volumes.ephemeral",
    "spec.volumes.persistent_volume_claim.claim_name",
    "spec.volumes.image",
}
"""What is read of a signature where no random cluster leads, of single pods only, or by the compiler."""


@pytest.mark.parametrize("release", [K24, K36], ids=["1.24", "1.36"])
def test_plugins_read_nothing_of_a_signature_that_is_not_in_its_key(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: set[str] = set()

    def guarded(index: int, pod: Pod, *more: Any) -> Signature:
        return Signature(index, Guarded(pod, "", read), *more)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "Signature", guarded)
    for cluster in CLUSTERS:
        ask_all_plugins(cluster, release)
    assert set(READABLE) - read <= SELDOM | (set() if release.pod_level_resources else {"spec.resources"})


def ask_all_plugins(cluster: Snapshot, release: Release) -> None:
    """Ask every plugin for all it has to say about a cluster."""
    profile = default_profile(release, more=[plugin.name for plugin in (*IN_TREE, *TRIMARAN)])
    state = ClusterState(cluster, profile.release)
    pods = [pod for pod in cluster.pods if not pod.finished]
    signatures = list(state.signatures.all)
    counts = np.bincount([state.signatures.of(pod).index for pod in pods], minlength=len(signatures))
    view = View(state, signatures, counts, np.zeros_like(counts), loads_today(state, pods))
    framework = Framework(profile, state)
    plugins = list(framework.plugins.values())
    scoring = view.scoring(list(itertools.chain.from_iterable(plugin.rules(view) for plugin in plugins)))
    for plugin in plugins:
        list(plugin.terms(scoring))
        list(plugin.omissions(view))
        for each in pods:
            plugin.refuses(each)
    bound = [(each, cluster.node_index[each.node_name]) for each in pods if each.node_name]
    state.fill(each for each, _ in bound)
    list(schedule(framework, [each for each in pods if not each.node_name]))
    for each, node in bound:
        if any(occupant.pod.key == each.key for occupant in state.pod_index.on(node)):  # else it was preempted
            state.take(each, node)
            cycle = framework.cycle(each)
            framework.run_scores(cycle, framework.run_filters(cycle).feasible)
            state.put(each, node)


@pytest.mark.parametrize("field", READABLE)
def test_each_readable_field_is_in_the_key(field: str) -> None:
    before = pod("p", owner="ReplicaSet/r", labels={"app": "x"})
    first, same, other = snapshot(pods=[before, deepcopy(before), changed(before, READABLE[field])]).pods
    signatures = Signatures()
    assert signatures.of(first) is signatures.of(same)
    assert signatures.of(first) is not signatures.of(other)


def test_a_resized_pod_has_a_signature_of_its_own_and_its_successor_has_not() -> None:
    def with_cpu(cpu: str) -> Manifest:
        return {"status": {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}

    plain, same, grown = snapshot(pods=[changed(pod("p"), c) for c in ({}, with_cpu("1"), with_cpu("2"))]).pods
    signatures = Signatures()
    assert signatures.of(plain) is signatures.of(same)
    assert signatures.of(grown) is not signatures.of(plain)
    assert signatures.replacement(grown) is signatures.of(plain)


def test_what_tells_pods_of_one_controller_apart_is_not_in_the_key() -> None:
    before = pod("p", owner="ReplicaSet/r")
    own = [
        {"metadata": {"name": "q"}},
        {"metadata": {"uid": "1"}},
        {"metadata": {"annotations": {"note": "mine"}}},
        {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}},
        {"spec": {"nodeName": "n"}},
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}},
    ]
    pods = snapshot(pods=[before, *(changed(before, change) for change in own)]).pods
    signatures = Signatures(pods)
    assert len(signatures.all) == 1


def test_a_field_that_is_not_in_the_key_is_caught() -> None:
    (one,) = snapshot(pods=[pod("p")]).pods
    guarded: Any = Guarded(one, "", set())
    assert guarded.spec.tolerations == ()
    for path in ("name", "spec.node_name", "status", "metadata.uid", "spec.preemption_policy"):
        with pytest.raises(AssertionError, match=f"{path} is read of a signature"):
            attrgetter(path)(guarded)
    with pytest.raises(AssertionError, match="annotation note"):
        guarded.metadata.annotations.get("note")


def changed(manifest: Manifest, change: Manifest) -> Manifest:
    """Return a manifest with another one merged into it."""
    merged = deepcopy(manifest)
    for key, value in change.items():
        merged[key] = changed(merged[key], value) if isinstance(merged.get(key), dict) else value
    return merged
