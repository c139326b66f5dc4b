from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from stowplan.instances.suites.opening import open_suite
from stowplan.instances.suites.suite import Kind, natural
from stowplan.models.errors import InputError
from tests.instances.suites.test_openb_suite import NODES, PODS
from tests.instances.suites.test_packing import SMALL
from tests.instances.suites.test_roadef import EXAMPLE, INITIAL

CLUSTER = '{"seed": %d, "nodes": 1, "node_cpu_m": 9, "node_mem_b": 9, "replicasets": []}\n'


def put(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(folder)


def archive(file: Path, members: dict[str, str]) -> str:
    with tarfile.open(file, "w:gz") as target:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            target.addfile(info, io.BytesIO(text.encode()))
    return str(file)


def test_models_find_their_assignments_and_what_is_known_of_them(tmp_path: Path) -> None:
    columns = "instance,initial,lower_bound,lb_source,final_best,reference_best,reference_source"
    table = f"{columns}\nb_1,4200,9,pooled,2500,2411,me\n"
    files = {"B/model_b_01.txt.gz": EXAMPLE, "B/assignment_b_01.txt": INITIAL, "results.csv": table}
    files |= {"A/model_a.txt": EXAMPLE, "A/assignment_a.txt": INITIAL, "README.md": "# not an instance"}
    suite = open_suite(put(tmp_path, files))
    assert suite.kind is Kind.REASSIGNMENT
    assert [(i.name, i.group) for i in suite.instances] == [("a", "A"), ("b_01", "B")]
    reference = suite.instances[1].reference
    assert (reference.best, reference.best_by, reference.bound) == (2411, "me", 9)
    assert reference.others == {"initial": 4200, "final run": 2500}
    assert suite.instances[0].reference.best is None
    stated = suite.instances[0].state()
    verdict = suite.instances[0].check("new", stated.write(stated.problem.start).encode())
    assert (verdict.values, verdict.violations) == ((4200,), ())


def test_a_model_by_itself_is_refused(tmp_path: Path) -> None:
    put(tmp_path, {"model_x.txt": EXAMPLE})
    with pytest.raises(InputError, match=r"model_x.txt: needs assignment_x.txt \(plain or .gz\) beside it"):
        open_suite(str(tmp_path))
    put(tmp_path, {"assignment_x.txt": INITIAL})
    with pytest.raises(InputError, match=r"assignment_x.txt: is an assignment; name its model_\*.txt"):
        open_suite(str(tmp_path / "assignment_x.txt"))
    assert len(open_suite(str(tmp_path / "model_x.txt")).instances) == 1


def test_packings_come_from_archives_and_the_path_names_the_set(tmp_path: Path) -> None:
    head = "instance_name\tLB\tOPT\tbest_overall\n"
    put(tmp_path, {"New_summary_known.csv": head + "c_2\t1\t-1\t3\n", "Old_summary_known.csv": head + "c_2\t1\t2\t2\n"})
    members = {"New_set/c_2.vbp": SMALL, "Old_set/c_10.vbp": SMALL, "Old_set/c_2.vbp": SMALL, "readme": "x"}
    suite = open_suite(archive(tmp_path / "sets.tar.gz", members))
    assert suite.kind is Kind.PACKING
    assert [i.name for i in suite.instances] == ["New_set/c_2", "Old_set/c_2", "Old_set/c_10"]
    new, old, unknown = (i.reference for i in suite.instances)
    assert (new.best, new.best_by, new.bound, new.others) == (3, "greedy", 1, {"greedy": 3})
    assert (old.best, old.best_by, old.bound) == (2, "optimum", 2)
    assert unknown.best is None
    assert suite.instances[0].check("new", b"0 0\n1 2\n").values == (2,)


def test_an_archive_cannot_name_a_file_outside(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a path inside the archive"):
        open_suite(archive(tmp_path / "sets.tar.gz", {"../c.vbp": SMALL}))
    (tmp_path / "sets.tar.gz").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"sets.tar.gz: is a damaged archive"):
        open_suite(str(tmp_path / "sets.tar.gz"))


def test_clusters_stay_in_the_order_of_their_file(tmp_path: Path) -> None:
    files = {f"nodes{n}_pods4_prio1_util100.jsonl.gz": CLUSTER % 9 + CLUSTER % 5 for n in (10, 2)}
    suite = open_suite(put(tmp_path, files))
    assert suite.kind is Kind.PRIORITIES
    cells = ["nodes2_pods4_prio1_util100", "nodes10_pods4_prio1_util100"]
    assert [i.name for i in suite.instances] == [f"{cell}/{seed}" for cell in cells for seed in (9, 5)]


def test_pod_lists_share_the_list_of_nodes_with_devices(tmp_path: Path) -> None:
    files = {"nodes_all_node.csv": NODES, "nodes_gpu_node.csv": NODES, "default.csv.gz": PODS, "other.csv": PODS}
    suite = open_suite(put(tmp_path, files))
    assert suite.kind is Kind.DEVICES
    assert [i.name for i in suite.instances] == ["default", "other"]
    assert [i.name for i in open_suite(str(tmp_path / "other.csv")).instances] == ["other"]
    for name in ("nodes_all_node.csv", "nodes_gpu_node.csv"):
        (tmp_path / name).unlink()
    with pytest.raises(InputError, match="needs one node list of openb beside the pod lists; found 0"):
        open_suite(str(tmp_path))


def test_generated_suites_say_their_size_in_their_name() -> None:
    triplets = open_suite("triplets:12_4", count=3, seed=5)
    assert [i.name for i in triplets.instances] == ["12_4_5", "12_4_6", "12_4_7"]
    assert triplets.instances[0].reference.best == 4
    assert len(open_suite("triplets").instances) == 10
    clusters = open_suite("priority-matters:nodes2_pods6_prio2_util105", count=2)
    assert [i.state().problem.pods for i in clusters.instances] == [6, 6]
    other = open_suite("priority-matters:nodes2_pods6_prio2_util105", count=2, seed=1)
    assert {i.name for i in clusters.instances}.isdisjoint(i.name for i in other.instances)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("triplets:13_4", "triplets:13_4: must be triplets:<items>_<dimensions>, items a multiple of 3"),
        ("triplets:0_4", "triplets:0_4: must be triplets:<items>_<dimensions>, items a multiple of 3"),
        ("priority-matters:tiny", "priority-matters:tiny: must be like priority-matters:nodes4_pods16_prio4_util100"),
        ("priority-matters:nodes0_pods1_prio1_util1", "priority-matters:nodes0_pods1_prio1_util1: must be like"),
        ("nowhere", "nowhere: no such file or folder, and no suite that can be generated: triplets, priority-matters"),
    ],
)
def test_what_is_no_suite_is_refused_in_one_line(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        open_suite(name)
    assert str(caught.value).startswith(message)


def test_a_folder_of_nothing_or_of_everything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no instance of a known format"):
        open_suite(put(tmp_path, {"notes.txt": "1 2 3", "broken.json.gz": "", "x.csv": "a,b\n"}))
    with pytest.raises(InputError, match=r"contains several formats \(priority-matters, vector bin packing\); name a"):
        open_suite(put(tmp_path, {"a.vbp": SMALL, "b.jsonl": CLUSTER % 1}))


def test_numbers_in_names_sort_by_size() -> None:
    assert sorted(["a10", "a9", "b1", "a"], key=natural) == ["a", "a9", "a10", "b1"]
