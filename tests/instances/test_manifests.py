"""Everything that kubectl prints, in every packing, is one snapshot."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.instances.load import load
from stowplan.models.errors import InputError
from stowplan.models.snapshot import Snapshot, tied
from tests.support.clusters import Manifest, node, pod


def obj(kind: str, content: Manifest, version: str = "v1") -> Manifest:
    return {"apiVersion": version, "kind": kind, **content}


ITEMS = [
    obj("Node", node("n1")),
    obj("Pod", pod("a", "n1")),
    obj("Pod", pod("b")),
    obj("Namespace", {"metadata": {"name": "default", "labels": {"x": "y"}}}),
    obj("ConfigMap", {"metadata": {"name": "settings"}, "data": None}),
]
LIST = {"apiVersion": "v1", "kind": "List", "items": ITEMS}


def names(snapshot: Snapshot) -> tuple[list[str], list[str]]:
    return [n.name for n in snapshot.nodes], [p.key for p in snapshot.pods]


EXPECTED = (["n1"], ["default/a", "default/b"])


def write(folder: Path, name: str, content: bytes | str | Any) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    path.write_bytes(content)
    return str(path)


def pretty(*objects: Any) -> str:
    return "\n".join(json.dumps(o, indent=4) for o in objects)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.json", LIST),
        ("pretty.json", pretty(LIST)),
        ("list.json.gz", gzip.compress(json.dumps(LIST).encode())),
        ("no-suffix", LIST),
        ("array.json", ITEMS),
        ("documents.json", pretty(*ITEMS)),
        ("lines.jsonl", "\n".join(json.dumps(i) for i in ITEMS)),
        ("list.yaml", yaml.safe_dump(LIST)),
        ("documents.yaml", yaml.safe_dump_all(ITEMS)),
        ("bom.json", b"\xef\xbb\xbf" + json.dumps(LIST).encode()),
        ("powershell.json", json.dumps(LIST).encode("utf-16")),
    ],
)
def test_one_file(tmp_path: Path, name: str, content: Any) -> None:
    snapshot = load([write(tmp_path, name, content)])
    assert names(snapshot) == EXPECTED
    assert snapshot.skipped == {"ConfigMap": 1}
    assert snapshot.namespace_labels["default"] == {"x": "y"}


def test_typed_lists_do_not_repeat_the_kind(tmp_path: Path) -> None:
    nodes = {"kind": "NodeList", "apiVersion": "v1", "items": [node("n1")]}
    pods = {"kind": "PodList", "apiVersion": "v1", "items": [pod("a", "n1"), pod("b")]}
    paths = [write(tmp_path, "nodes.json", nodes), write(tmp_path, "pods.json", pods)]
    assert names(load(paths)) == EXPECTED


def test_a_cluster_info_dump_on_stdout_has_logs_between_its_documents(tmp_path: Path) -> None:
    nodes = {"kind": "NodeList", "apiVersion": "v1", "items": [node("n1")]}
    pods = {"kind": "PodList", "apiVersion": "v1", "items": [pod("a", "n1"), pod("b")]}
    container = "logs for container main of pod default/a"
    log = f'==== START {container} ====\n{{"level":"info"}}\n{{\nnot json\n==== END {container} ====\n'
    stray = 'some warning\n{"ts": 1, "msg": "stray"}\n{oops\n'
    assert (
        names(load([write(tmp_path, "dump", pretty(nodes) + "\n" + log + stray + pretty(pods) + "\n" + log)]))
        == EXPECTED
    )


def test_a_directory_is_walked_and_files_that_are_no_manifests_pass(tmp_path: Path) -> None:
    write(tmp_path, "nodes.json", {"kind": "NodeList", "apiVersion": "v1", "items": [node("n1")]})
    write(tmp_path, "default/pods.json", {"kind": "PodList", "apiVersion": "v1", "items": [pod("a", "n1"), pod("b")]})
    write(tmp_path, "default/a/logs.txt", "==== START logs")
    write(tmp_path, "version.json", {"gitVersion": "v1.30"})
    write(tmp_path, "empty.yaml", "")
    assert names(load([str(tmp_path)])) == EXPECTED


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(LIST).encode())))
    assert names(load(["-"])) == EXPECTED


def test_kinds_of_other_groups_are_not_ours(tmp_path: Path) -> None:
    longhorn = obj("Node", {"metadata": {"name": "n1", "namespace": "longhorn-system"}}, "longhorn.io/v1beta1")
    knative = obj("Service", {"metadata": {"name": "s"}, "spec": {"template": {}}}, "serving.knative.dev/v1")
    old = obj("ReplicaSet", {"metadata": {"name": "r"}, "spec": {}}, "extensions/v1beta1")
    snapshot = load([write(tmp_path, "d.json", {"kind": "List", "items": [*ITEMS, longhorn, knative, old]})])
    assert names(snapshot) == EXPECTED
    assert not snapshot.services
    assert len(snapshot.replica_sets) == 1


def test_null_collections_and_unknown_fields_pass(tmp_path: Path) -> None:
    bare = {
        "metadata": {
            "name": "c",
            "namespace": "x",
            "labels": None,
            "annotations": None,
            "ownerReferences": None,
            "new": 1,
        },
        "spec": {"containers": None, "tolerations": None, "volumes": None, "nodeSelector": None, "nodeName": "n1"},
        "status": {"conditions": None, "phase": "Running"},
    }
    snapshot = load([write(tmp_path, "d.json", {"kind": "List", "items": [ITEMS[0], obj("Pod", bare)]})])
    assert snapshot.pods[0].spec.containers == ()
    assert snapshot.namespace_labels["x"] == {"kubernetes.io/metadata.name": "x"}


def test_a_pod_on_an_unknown_node_is_refused_or_left_out(tmp_path: Path) -> None:
    finished = pod("done", "gone", phase="Succeeded")
    lost = pod("lost", "gone")
    path = write(tmp_path, "d.json", {"kind": "List", "items": [*ITEMS, obj("Pod", finished), obj("Pod", lost)]})
    with pytest.raises(InputError, match=r"Pod default/lost: spec.nodeName: node 'gone' is not in the snapshot"):
        load([path])
    snapshot = load([path], skip_unknown_nodes=True)
    assert names(snapshot)[1] == ["default/a", "default/b", "default/done"]
    assert snapshot.notes == ("1 pod on a node that the snapshot lacks is left out",)


def test_manifests_that_never_saw_an_api_server_are_completed(tmp_path: Path) -> None:
    limits = {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m"}}
    spec = {
        "hostNetwork": True,
        "priorityClassName": "vip",
        "containers": [{"resources": limits, "ports": [{"containerPort": 80}]}],
    }
    vip = obj("PriorityClass", {"metadata": {"name": "vip"}, "value": 7}, "scheduling.k8s.io/v1")
    made = obj("Pod", {"metadata": {"name": "c"}, "spec": spec})
    stored = obj("Pod", {"metadata": {"name": "d", "uid": "u"}, "spec": spec})
    snapshot = load([write(tmp_path, "d.json", {"kind": "List", "items": [ITEMS[0], vip, made, stored]})])
    completed, untouched = snapshot.pods
    assert completed.priority == 7
    assert completed.spec.containers[0].requests == {"cpu": 100_000_000, "memory": 2**30 * 10**9}
    assert completed.spec.containers[0].ports[0].host_port == 80
    assert untouched.priority == 0
    assert "memory" not in untouched.spec.containers[0].requests


def test_a_claim_that_names_its_volume_is_bound_unless_an_api_server_knows_better(tmp_path: Path) -> None:
    written = obj("PersistentVolumeClaim", {"metadata": {"name": "a"}, "spec": {"volumeName": "v"}})
    waiting = obj("PersistentVolumeClaim", {"metadata": {"name": "b"}, "spec": {}})
    stored = obj("PersistentVolumeClaim", {"metadata": {"name": "c", "uid": "u"}, "spec": {"volumeName": "v"}})
    stripped = {"metadata": {"name": "d", "uid": "v"}, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}
    items = [ITEMS[0], written, waiting, stored, obj("PersistentVolumeClaim", stripped)]
    snapshot = load([write(tmp_path, "d.json", {"kind": "List", "items": items})])
    assert [c.bound for c in snapshot.persistent_volume_claims] == [True, False, False, True]


def test_what_drivers_say_about_their_space_is_read(tmp_path: Path) -> None:
    storage = "storage.k8s.io/v1"
    driver = obj("CSIDriver", {"metadata": {"name": "csi.x"}, "spec": {"storageCapacity": True}}, storage)
    pools = [
        {"metadata": {"name": "a"}, "storageClassName": "s", "capacity": "3Gi", "nodeTopology": {}},
        {"metadata": {"name": "b"}, "storageClassName": "s", "capacity": "3Gi", "maximumVolumeSize": "1Gi"},
        {"metadata": {"name": "c"}, "storageClassName": "s"},
    ]
    items = [ITEMS[0], driver, *(obj("CSIStorageCapacity", pool, storage) for pool in pools)]
    snapshot = load([write(tmp_path, "d.json", {"kind": "List", "items": items})])
    assert [d.tells_capacity for d in snapshot.csi_drivers] == [True]
    gibi = 2**30 * 10**9
    assert [pool.largest for pool in snapshot.csi_storage_capacities] == [3 * gibi, gibi, None]


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, "static pod"),
        ({"annotations": {"kubernetes.io/config.source": "file"}}, "static pod"),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, None),
        ({"ownerReferences": [{"kind": "Node", "name": "n1", "controller": True}]}, "static pod"),
        ({"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}, "DaemonSet"),
        ({"ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": True}]}, None),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "terminating"),
        ({}, None),
    ],
)
def test_pods_that_cannot_move_are_recognized(tmp_path: Path, meta: Manifest, reason: str | None) -> None:
    bound = pod("c", "n1")
    bound["metadata"] |= meta
    snapshot = load([write(tmp_path, "d.json", {"kind": "List", "items": [ITEMS[0], obj("Pod", bound)]})])
    assert tied(snapshot.pods[0]) == reason


def test_equal_parts_are_one_object(tmp_path: Path) -> None:
    pods = [obj("Pod", pod(f"p{i}", "n1", labels={"app": "a"})) for i in range(3)]
    snapshot = load([write(tmp_path, "d.json", {"kind": "List", "items": [ITEMS[0], *pods]})])
    assert len({id(p.spec.containers) for p in snapshot.pods}) == 1
    assert len({id(p.metadata.labels) for p in snapshot.pods}) == 1


@pytest.mark.parametrize("between", ["\n  ", "", " ", "\n\n\t"])
def test_documents_may_be_indented_or_follow_on_one_line(tmp_path: Path, between: str) -> None:
    assert names(load([write(tmp_path, "d.json", between.join(json.dumps(item) for item in ITEMS))])) == EXPECTED


def test_yaml_numbers_with_an_exponent_are_numbers(tmp_path: Path) -> None:
    """Go writes a large integer as ``1e+09``; a word that only looks like a number too large stays a word."""
    text = yaml.safe_dump_all(ITEMS) + (
        "---\nkind: PriorityClass\napiVersion: scheduling.k8s.io/v1\nmetadata: {name: high}\nvalue: 1e+09\n"
        "---\nkind: Pod\napiVersion: v1\nmetadata: {name: c, labels: {pod-template-hash: 12e4567}}\n"
        "spec: {priorityClassName: high, containers: [{name: m, resources: {requests: {memory: 1.5e+09}}}]}\n"
    )
    snapshot = load([write(tmp_path, "d.yaml", text)])
    assert snapshot.pods[-1].priority == 1_000_000_000
    assert snapshot.pods[-1].metadata.labels == {"pod-template-hash": "12e4567"}
    assert snapshot.pods[-1].spec.containers[0].resources.requests["memory"] == 1_500_000_000 * 10**9


def test_folders_behind_symbolic_links_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/list.json", LIST)
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "cluster").symlink_to(tmp_path / "elsewhere")
    (folder / "again").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "round").symlink_to(folder)
    assert names(load([str(folder)])) == EXPECTED


def gathered(folder: Path, **second: Any) -> str:
    """Write a must-gather: the pod is in the list of its namespace, and in a file of its own."""
    a = obj("Pod", {**pod("a", "n1"), "metadata": {"name": "a", "namespace": "default", "uid": "1-1"}})
    write(folder, "cluster-scoped-resources/core/nodes/n1.yaml", yaml.safe_dump(ITEMS[0]))
    pods = {"kind": "PodList", "apiVersion": "v1", "items": [a, ITEMS[2]]}
    write(folder, "namespaces/default/core/pods.yaml", yaml.safe_dump(pods))
    again = {**a, "metadata": {**a["metadata"], **second}}
    write(folder, "namespaces/default/pods/a/a.yaml", yaml.safe_dump(again))
    return str(folder)


def test_a_must_gather_holds_pods_twice_and_not_all_of_them(tmp_path: Path) -> None:
    snapshot = load([gathered(tmp_path)])
    assert names(snapshot) == EXPECTED
    assert "1 object of the must-gather is in it twice; what was read first counts" in snapshot.notes
    assert any("must-gather holds some namespaces only" in gap for gap in snapshot.fatal_gaps)


def test_two_pods_of_one_name_in_a_must_gather_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="appears twice"):
        load([gathered(tmp_path, uid="2-2")])
