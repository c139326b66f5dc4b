"""What no reader reads leaves a dump, secrets first, and answers stay what they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stowplan.cli import run
from stowplan.instances.documents import read_file
from stowplan.instances.load import load_bytes
from stowplan.instances.pruning import pruned

SECRET = "hunter2-correct-horse"
QUICK = ("-q", "-t", "1", "--deterministic", "-o", "json")
REAL = ("aws-overallocated", "kurl-longhorn", "ocp-aws")


def generated(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["generate", "--nodes", "6", "--pods", "60", "--seed", "5"]) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


def planted(content: dict[str, Any]) -> dict[str, Any]:
    """Return a cluster in which every object has a secret wherever clusters have them."""
    copy: dict[str, Any] = json.loads(json.dumps(content))
    env = {"env": [{"name": "PASSWORD", "value": SECRET}], "envFrom": [{"secretRef": {"name": SECRET}}]}
    container = {**env, "args": [SECRET], "command": ["sh", "-c", SECRET], "workingDir": SECRET}
    container["livenessProbe"] = {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}}
    for item in copy["items"]:
        meta = item["metadata"]
        meta["managedFields"] = [{"manager": SECRET, "fieldsV1": {f"f:{SECRET}": {}}}]
        meta.setdefault("annotations", {})["kubectl.kubernetes.io/last-applied-configuration"] = SECRET
        meta["annotations"]["example.com/token"] = SECRET
        spec = item.setdefault("spec", {}) if item["kind"] not in ("StorageClass", "PriorityClass") else {}
        if item["kind"] == "Pod":
            for one in (*spec["containers"], *spec.get("initContainers", ())):
                one.update(container)
            spec["ephemeralContainers"] = [{"name": "debug", **container}]
            spec.setdefault("volumes", []).append({"name": "v", "secret": {"secretName": SECRET}})
            spec["volumes"].append({"name": "w", "csi": {"driver": "d", "volumeAttributes": {"key": SECRET}}})
            spec |= {"hostAliases": [{"hostnames": [SECRET]}], "imagePullSecrets": [{"name": SECRET}]}
            item.setdefault("status", {})["message"] = SECRET
            item["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": {"message": SECRET}}}]
        elif item["kind"] in ("Deployment", "ReplicaSet", "StatefulSet", "Job", "ReplicationController"):
            spec["template"] = {"metadata": {"annotations": {"a": SECRET}}, "spec": {"containers": [container]}}
        elif item["kind"] == "PersistentVolume":
            spec["csi"] = {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"key": SECRET}}
        elif item["kind"] == "StorageClass":
            item["parameters"] = {"key": SECRET}
        elif item["kind"] == "Node":
            item["status"].setdefault("nodeInfo", {})["machineID"] = SECRET
    return copy


def test_a_secret_is_gone_and_nothing_else_is(capsys: pytest.CaptureFixture[str]) -> None:
    content = generated(capsys)
    kinds = {item["kind"] for item in content["items"]}
    assert {"Pod", "Node", "Service", "ReplicaSet", "PodDisruptionBudget", "PersistentVolume"} <= kinds
    whole = json.dumps(planted(content)).encode()
    slim = pruned(whole)
    assert whole.count(SECRET.encode()) > 10 * len(content["items"])
    assert SECRET.encode() not in slim
    read = load_bytes(slim, "slim")
    assert read == load_bytes(whole, "whole")
    assert read.fingerprint == load_bytes(whole, "whole").fingerprint
    assert pruned(slim) == slim


def mounting() -> Iterator[dict[str, Any]]:
    """Yield pods whose mounts decide something: a host path that is only read, and a volume that is missing."""
    for name, mount in (
        ("reads", {"name": "h", "readOnly": True}),
        ("writes", {"name": "h"}),
        ("lacks", {"name": "x"}),
    ):
        containers = [{"name": "main", "volumeMounts": [{**mount, "mountPath": SECRET, "subPath": SECRET}]}]
        spec = {"nodeName": "n", "containers": containers, "volumes": [{"name": "h", "hostPath": {"path": SECRET}}]}
        debugging = {"name": "debug", "volumeMounts": [{"name": "h", "mountPath": SECRET}]}
        for more in ({}, {"ephemeralContainers": [debugging]}):
            meta = {"name": f"{name}{len(more)}", "namespace": "default"}
            yield {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": {**spec, **more}}


def test_mounts_are_kept_as_far_as_they_are_read() -> None:
    amounts = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}
    whole = json.dumps({"kind": "List", "apiVersion": "v1", "items": [node, *mounting()]}).encode()
    slim = pruned(whole)
    assert SECRET.encode() not in slim
    read, expected = load_bytes(slim, "dump"), load_bytes(whole, "dump")
    assert read == expected
    paths = [volume.host_path for pod in expected.pods for volume in pod.spec.volumes]
    assert {path.read_only for path in paths if path} == {True, False}
    assert {pod.spec.missing_volumes for pod in expected.pods} == {True, False}


@pytest.mark.parametrize("command", ["compare", "solve", "plan"])
def test_answers_are_the_same(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = json.dumps(planted(generated(capsys))).encode()
    answers = []
    for data in (whole, pruned(whole)):
        (tmp_path / "dump.json").write_bytes(data)
        assert run([command, str(tmp_path / "dump.json"), *QUICK]) == 0
        answer = json.loads(capsys.readouterr().out)
        for clock in ("createdAt", "expiresAt", "seconds"):
            answer.pop(clock, None)
        answers.append(_without_times(answer))
    assert answers[0] == answers[1]


def _without_times(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {key: _without_times(value) for key, value in answer.items() if not key.lower().endswith("seconds")}
    return [_without_times(one) for one in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize("name", REAL)
def test_dumps_of_real_clusters_are_read_as_before(name: str, shared_data: Path) -> None:
    whole = read_file(shared_data / "snapshots" / f"{name}.json.gz")
    slim = pruned(whole)
    assert len(slim) < len(whole)
    assert load_bytes(slim, "dump") == load_bytes(whole, "dump")


def test_annotations_that_a_configuration_reads_are_kept_or_missed() -> None:
    annotations = {"example.com/pool": "2", "other.example.com/x": SECRET}
    meta = {"name": "n", "annotations": annotations}
    node = {"kind": "Node", "apiVersion": "v1", "metadata": meta, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
    whole = json.dumps({"kind": "List", "apiVersion": "v1", "items": [node]}).encode()
    keys = ["example.com/pool"]
    for data, gaps in ((whole, ()), (pruned(whole, keys), ())):
        read = load_bytes(data, "dump", annotations=keys)
        assert read.nodes[0].metadata.annotations == {"example.com/pool": "2"}
        assert read.gaps == gaps
    (gap,) = load_bytes(pruned(whole), "dump", annotations=keys).gaps
    assert gap.startswith("the dump was taken without annotations 'example.com/pool'; ")
    assert SECRET.encode() not in pruned(whole, keys)


def test_objects_of_other_kinds_keep_their_name_alone() -> None:
    other = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"password": SECRET}}
    longhorn = {"kind": "Node", "apiVersion": "longhorn.io/v1beta2", "metadata": {"name": "n"}, "spec": {"x": SECRET}}
    whole = json.dumps({"kind": "List", "apiVersion": "v1", "items": [other, longhorn]}).encode()
    items = json.loads(pruned(whole))["items"]
    assert items == [
        {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}},
        {"kind": "Node", "apiVersion": "longhorn.io/v1beta2", "metadata": {"name": "n"}},
    ]
