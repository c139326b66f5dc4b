"""Anonymized clusters: no name is left, equal ones stay equal and in order, and placement sees the same cluster."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

from stowplan.answers.assessment import Assessor
from stowplan.instances.anonymize import Pseudonyms
from stowplan.instances.demo import demo_cluster
from stowplan.instances.load import load_bytes
from stowplan.instances.manifest_list import manifest_list, written
from stowplan.models.snapshot import Snapshot
from stowplan.settings.problem import make_problem
from tests.support.cases import cases
from tests.support.clusters import ZONE, Manifest
from tests.support.malformed import listed
from tests.support.random_clusters import clusters


def read(manifest: Manifest) -> Snapshot:
    keys = {key for item in manifest["items"] for key in item["metadata"].get("annotations", {})}
    return load_bytes(written(manifest), "a list", annotations=keys)


def same(one: Snapshot, other: Snapshot) -> None:
    for field in fields(Snapshot):
        if field.name not in ("skipped", "notes", "gaps", "fatal_gaps", "annotations"):
            assert getattr(one, field.name) == getattr(other, field.name), field.name


@cases(10, cluster=clusters())
def test_a_snapshot_is_read_again_from_its_list(cluster: Snapshot) -> None:
    same(read(manifest_list(cluster)), cluster)


def test_what_is_read_of_mounts_is_written() -> None:
    volumes = [{"name": "logs", "hostPath": {"path": "/var/log"}}]
    mounted = {"name": "main", "volumeMounts": [{"name": "logs", "readOnly": True}, {"name": "gone"}]}
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [mounted], "volumes": volumes}}
    snapshot = read(listed({"kind": "Node", "metadata": {"name": "n"}}, {"kind": "Pod", **pod}))
    (one,) = snapshot.pods
    assert one.spec.missing_volumes
    assert one.spec.volumes[0].host_path is not None
    assert one.spec.volumes[0].host_path.read_only
    same(read(manifest_list(snapshot)), snapshot)


def acme() -> Manifest:
    """Return a list in which every name, image, label, uid, address, and value of a variable says whose it is."""
    match = {"matchLabels": {"acme.com/app": "acme-web"}}
    term = {"labelSelector": match, "topologyKey": "acme.com/rack", "namespaces": ["acme-pay"]}
    requirement = {"key": "acme.com/disk", "operator": "In", "values": ["acme-ssd", "acme-nvme"]}
    avoid = {"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "name": "acme-rs"}}}]}
    node: dict[str, Any] = {
        "metadata": {
            "name": "acme-node-1",
            "labels": {"kubernetes.io/hostname": "acme-node-1", ZONE: "acme-zone", "acme.com/disk": "acme-ssd"},
            "annotations": {"scheduler.alpha.kubernetes.io/preferAvoidPods": json.dumps(avoid)},
        },
        "spec": {"taints": [{"key": "acme.com/only", "value": "acme-team", "effect": "PreferNoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "addresses": [{"type": "Hostname", "address": "ip.acme.internal"}],
            "images": [{"names": ["registry.acme.com/web:latest"], "sizeBytes": 100_000_000}],
        },
    }
    container = {
        "name": "acme-main",
        "image": "registry.acme.com/web",
        "env": [{"name": "ACME_TOKEN", "value": "acme-secret"}],
        "args": ["--acme"],
        "resources": {"requests": {"cpu": "500m"}},
    }
    pod = {
        "metadata": {
            "name": "acme-web-0",
            "namespace": "acme-pay",
            "uid": "acme-uid-0",
            "labels": {"acme.com/app": "acme-web", "pod-template-hash": "acme7f"},
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "acme.com/note": "acme"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "acme-rs", "uid": "acme-rs-uid", "controller": True}],
        },
        "spec": {
            "containers": [container],
            "nodeName": "acme-node-1",
            "schedulerName": "default-scheduler",
            "priorityClassName": "acme-high",
            "nodeSelector": {"acme.com/disk": "acme-ssd"},
            "tolerations": [{"key": "acme.com/only", "operator": "Equal", "value": "acme-team"}],
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [requirement]}]
                    }
                },
            },
            "volumes": [{"name": "system-acme-data", "persistentVolumeClaim": {"claimName": "acme-claim"}}],
        },
        "status": {"phase": "Running", "hostIP": "10.20.30.40"},
    }
    claim = {
        "metadata": {"name": "acme-claim", "namespace": "acme-pay", "uid": "acme-claim-uid"},
        "spec": {"volumeName": "acme-volume", "storageClassName": "acme-fast"},
    }
    volume = {
        "metadata": {"name": "acme-volume", "labels": {ZONE: "acme-zone__acme-zone-2"}},
        "spec": {
            "storageClassName": "acme-fast",
            "claimRef": {"namespace": "acme-pay", "name": "acme-claim", "uid": "acme-claim-uid"},
            "awsElasticBlockStore": {"volumeID": "aws://acme-zone/acme-vol"},
        },
    }
    storage_class = {"metadata": {"name": "acme-fast"}, "provisioner": "ebs.csi.aws.com"}
    budget = {
        "metadata": {"name": "acme-budget", "namespace": "acme-pay"},
        "spec": {"selector": match, "maxUnavailable": "25%"},
        "status": {"disruptedPods": {"acme-web-0": "2026-01-01T00:00:00Z"}},
    }
    service = {"metadata": {"name": "acme-svc", "namespace": "acme-pay"}, "spec": {"selector": match["matchLabels"]}}
    kinds = {
        "Node": node,
        "Pod": pod,
        "PersistentVolumeClaim": claim,
        "PersistentVolume": volume,
        "StorageClass": storage_class,
        "PodDisruptionBudget": budget,
        "Service": service,
        "PriorityClass": {"metadata": {"name": "acme-high"}, "value": 1000},
    }
    return {"kind": "List", "apiVersion": "v1", "items": [{"kind": kind, **item} for kind, item in kinds.items()]}


def test_no_name_is_left_and_vocabulary_and_quantities_are() -> None:
    text = written(Pseudonyms(manifest_list(read(acme()))).cluster()).decode()
    assert "acme" not in text.lower()
    assert "10.20.30.40" not in text
    for kept in ("500m", "25%", "ebs.csi.aws.com", ZONE, '"value":1000', "aws://", "false"):
        assert kept in text, kept
    snapshot = read(json.loads(text))
    (node,), (pod,), (volume,) = snapshot.nodes, snapshot.pods, snapshot.persistent_volumes
    assert node.labels["kubernetes.io/hostname"] == node.name == pod.node_name
    (key,) = pod.spec.node_selector
    assert node.labels[key] == pod.spec.node_selector[key]
    (term,) = pod.spec.affinity.node_affinity.required.node_selector_terms  # type: ignore[union-attr]
    assert term.match_expressions[0].key == key
    assert node.labels[key] in term.match_expressions[0].values
    assert volume.metadata.labels[ZONE].partition("__")[0] == node.labels[ZONE]
    assert volume.spec.aws_elastic_block_store is not None
    assert volume.spec.aws_elastic_block_store.volume_id.startswith(f"aws://{node.labels[ZONE]}/")
    assert f"{pod.spec.containers[0].image}" in node.status.images[0].names  # type: ignore[union-attr]
    assert snapshot.pod_disruption_budgets[0].spec.selector.matches(pod.metadata.labels)  # type: ignore[union-attr]
    avoided = json.loads(node.metadata.annotations["scheduler.alpha.kubernetes.io/preferAvoidPods"])
    controller = avoided["preferAvoidPods"][0]["podSignature"]["podController"]
    assert pod.metadata.controller is not None
    assert controller == {"kind": "ReplicaSet", "name": pod.metadata.controller.name}


def test_no_word_of_the_bundled_cluster_is_left_but_what_every_cluster_says() -> None:
    cluster = manifest_list(demo_cluster())
    names: set[str] = set()
    for item in cluster["items"]:
        meta = item["metadata"]
        names |= {meta["name"], meta.get("namespace", "default"), meta.get("uid", "default"), *meta.get("labels", {})}
        names |= {*meta.get("labels", {}).values(), *_images(item)}
    own = re.compile(r"(^|\.)(kubernetes|k8s)\.io(/|$)")
    names = {name for name in names if not own.search(name) and not name.isdecimal()}
    assert len(names) > 500
    text = written(Pseudonyms(cluster).cluster()).decode()
    words = set(re.split(r'["\s,/|]+', text)) | set(re.findall(r'"([^"]*)"', text))
    assert names & words == {"default", "gpu", "memory"}  # pools are named as resources are


def _images(item: Manifest) -> set[str]:
    return {one["image"] for one in item.get("spec", {}).get("containers", ()) if one.get("image")}


def test_the_problem_of_a_cluster_does_not_depend_on_its_names() -> None:
    cluster = demo_cluster()
    names = Pseudonyms(manifest_list(cluster))
    other = read(names.cluster())
    assert [names.key(pod.key) for pod in cluster.pods] == [pod.key for pod in other.pods]
    assert sorted(cluster.node_index) == [
        node for _, node in sorted((names.of(node), node) for node in cluster.node_index)
    ]
    one, two = (Assessor(make_problem(snapshot)).today for snapshot in (cluster, other))
    assert one.evaluation.values == two.evaluation.values
    assert len(one.evaluation.violations) == len(two.evaluation.violations) > 0
    refused = [
        [(names.key(r.pod.key), names.of(r.node)) for r in one.refused],
        [(r.pod.key, r.node) for r in two.refused],
    ]
    assert refused[0] == refused[1] != []


def test_selectors_of_settings_are_renamed_word_by_word() -> None:
    names = Pseudonyms(manifest_list(read(acme())))
    key, value, space = (names.of(word) for word in ("acme.com/app", "acme-web", "acme-pay"))
    assert names.selector("acme-pay") == space
    assert names.selector("ns=acme-pay:5") == f"ns={space}:5"
    assert names.selector("workload=acme-pay/acme-rs:2") == f"workload={space}/{names.of('acme-rs')}:2"
    assert "acme" not in names.selector("acme.com/app in (acme-web, acme-team)")
    assert names.selector("acme.com/app=acme-web") == f"{key}={value}"
