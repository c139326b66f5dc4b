from __future__ import annotations

from pathlib import Path

from instances.load import load
from instances.openb import GPU, MODEL, NOTE

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
    assert snapshot.nodes[0].allocatable[GPU] == 2000 * 10**9
    assert GPU not in snapshot.nodes[1].allocatable
    assert snapshot.nodes[0].labels[MODEL] == "P100"
    assert [pod.node_name for pod in snapshot.pods] == ["", "", ""]
    assert not any(pod.finished for pod in snapshot.pods)
    requests = [pod.spec.containers[0].requests.get(GPU, 0) for pod in snapshot.pods]
    assert requests == [460 * 10**9, 2000 * 10**9, 0]
    affinity = snapshot.pods[1].spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    assert affinity.node_affinity.required.matches("n", {MODEL: "V100M32"})
    assert snapshot.notes == (NOTE,)


def test_the_published_trace(shared_data: Path) -> None:
    folder = shared_data / "benchmarks" / "openb"
    paths = [folder / "openb_node_list_gpu_node.csv.gz", folder / "openb_pod_list_default.csv.gz"]
    snapshot = load([str(path) for path in paths])
    assert (len(snapshot.nodes), len(snapshot.pods)) == (1213, 8152)
    offered = sum(node.allocatable[GPU] for node in snapshot.nodes) / 10**12
    asked = sum(pod.spec.containers[0].requests.get(GPU, 0) for pod in snapshot.pods) / 10**12
    assert offered == 6212
    assert round(asked, 1) == 6086.8
