from __future__ import annotations

import re
from pathlib import Path

import pytest

from stowplan.instances.load import load
from stowplan.instances.openb import NOTE
from stowplan.models.errors import InputError
from stowplan.models.kubernetes.devices import GPU_COUNT, GPU_MILLI, GPU_MODEL, annotated_devices

NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,64000,262144,2,P100\nnode-1,32000,131072,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase\n"
    "pod-0,12000,16384,1,460,,LS,Running\n"
    "pod-1,1000,1024,2,1000,V100M16|V100M32,BE,Pending\n"
    "pod-2,1000,1024,0,0,,BE,Failed\n"
)


def test_a_trace_is_a_cluster_in_which_every_pod_waits(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    snapshot = load([str(tmp_path / "nodes.csv"), str(tmp_path / "pods.csv")])
    assert snapshot.nodes[0].allocatable[GPU_MILLI] == 2000 * 10**9
    assert snapshot.nodes[0].allocatable[GPU_COUNT] == 2 * 10**9
    assert not {GPU_MILLI, GPU_COUNT} & snapshot.nodes[1].allocatable.keys()
    assert snapshot.nodes[0].labels[GPU_MODEL] == "P100"
    assert [pod.node_name for pod in snapshot.pods] == ["", "", ""]
    assert not any(pod.finished for pod in snapshot.pods)
    requests = [pod.spec.containers[0].requests.get(GPU_MILLI, 0) for pod in snapshot.pods]
    assert requests == [460 * 10**9, 2000 * 10**9, 0]
    assert [annotated_devices(pod) for pod in snapshot.pods] == [(1, 460), (2, 1000), None]
    affinity = snapshot.pods[1].spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    assert affinity.node_affinity.required.matches("n", {GPU_MODEL: "V100M32"})
    assert snapshot.notes == (NOTE,)


def test_a_folder_with_one_list_of_each_is_read(tmp_path: Path) -> None:
    (tmp_path / "a_node_list.csv").write_text(NODES)
    (tmp_path / "pod_list.csv").write_text(PODS)
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "a.csv").write_text("something,else\n1,2\n")
    snapshot = load([str(tmp_path)])
    assert (len(snapshot.nodes), len(snapshot.pods)) == (2, 3)


def test_of_several_lists_one_has_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    for name in ("default", "more"):
        (tmp_path / f"pods_{name}.csv").write_text(PODS)
    said = "found 1 node list, 2 pod lists (pods_default.csv, pods_more.csv: name one) and 0 others"
    with pytest.raises(InputError, match=re.escape(said)):
        load([str(tmp_path)])
    snapshot = load([str(tmp_path), str(tmp_path / "pods_more.csv")])
    assert (len(snapshot.nodes), len(snapshot.pods)) == (2, 3)


def test_a_folder_of_other_tables_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("something,else\n1,2\n")
    with pytest.raises(InputError, match=r"contains no \.json or \.yaml file"):
        load([str(tmp_path)])


@pytest.mark.parametrize(("column", "said"), [("460", "gpu_milli is '1460'; must be at most 1000")])
def test_more_than_a_device_is_no_share(column: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS.replace(f",{column},", f",1{column},"))
    with pytest.raises(InputError, match=f"pods.csv: line 2: {said}"):
        load([str(tmp_path)])


def test_the_published_trace(shared_data: Path) -> None:
    folder = shared_data / "benchmarks" / "openb"
    paths = [folder / "openb_node_list_gpu_node.csv.gz", folder / "openb_pod_list_default.csv.gz"]
    snapshot = load([str(path) for path in paths])
    assert (len(snapshot.nodes), len(snapshot.pods)) == (1213, 8152)
    offered = sum(node.allocatable[GPU_MILLI] for node in snapshot.nodes) / 10**12
    asked = sum(pod.spec.containers[0].requests.get(GPU_MILLI, 0) for pod in snapshot.pods) / 10**12
    assert offered == 6212
    assert round(asked, 1) == 6086.8
