from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stowplan.instances.documents import Document
from stowplan.instances.suites.openb import Cluster, DeviceInstance, check_devices, device_problem, read_lists
from stowplan.instances.suites.openb.instance import ALLOCATED
from stowplan.instances.suites.suite import Reference
from stowplan.models.errors import InputError
from stowplan.models.problem import Placement
from stowplan.optimizer.evaluate import Evaluator

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,8192,2,P100\nn1,8000,8192,1,T4\nn2,4000,4096,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
    "half,1000,1024,1,500,,LS\n"
    "third,1000,1024,1,300,,LS\n"
    "most,1000,1024,1,700,T4|V100,LS\n"
    "whole,2000,1024,1,1000,,LS\n"
    "pair,2000,1024,2,1000,,BE\n"
    "cpu,3000,4096,0,0,,BE\n"
)


def lists(nodes: str = NODES, pods: str = PODS) -> Cluster:
    return read_lists(Document("nodes", nodes.encode()), Document("pods", pods.encode()))


def test_shares_wholes_and_models_become_rules_and_tiers() -> None:
    found = device_problem(lists())
    evaluator = Evaluator(found.problem)
    assert evaluator.evaluate(found.problem.start).values == (500 + 300 + 700 + 1000 + 2000, 6)
    together = Placement.of([(0, 0, 1), (1, 0, 1), (3, 0, 1), (2, 1, 1), (5, 2, 1)])
    evaluation = evaluator.evaluate(together)
    assert evaluation.legal
    assert evaluation.values == (2000, 1)
    text = found.write(together)
    assert text.splitlines() == ["name,node,devices", "half,n0,0", "third,n0,0", "whole,n0,1", "most,n1,0", "cpu,n2,"]
    assert check_devices(lists(), "new", text.encode()) == ((2000, 1), [])


@pytest.mark.parametrize(
    ("rows", "violation"),
    [
        ("most,n1,0\nhalf,n1,0", "n1: device 0 gives 1200"),
        ("most,n0,0", "most: does not run on n0, which has P100"),
        ("most,n2,0", "most: device 0 is not on n2"),
        ("pair,n0,1", "pair: has 1 devices; must be 2 different ones"),
        ("pair,n0,1 1", "pair: has 2 devices; must be 2 different ones"),
        ("half,n0,", "half: has 0 devices; must be 1 different ones"),
        ("whole,n2,x", "whole: device x is not on n2"),
        ("cpu,n2,\nhalf,n2,0", "half: device 0 is not on n2"),
        ("cpu,n2,\nhalf,n1,0\nthird,n2,", "n2: 4000 millicores and 5120 MiB exceed what it has"),
    ],
)
def test_the_checker_names_what_is_wrong(rows: str, violation: str) -> None:
    assert violation in check_devices(lists(), "new", f"name,node,devices\n{rows}\n".encode())[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,node\nhalf,n0\n", "new: must have the columns name, node, devices"),
        ("name,node,devices\nhalf,n9,0\n", "new: line 2: names a pod or node that is not in the lists"),
        ("name,node,devices\nhalf,n0,0\nhalf,n0,0\n", "new: line 3: half appears twice"),
        ("name,node,devices\nhalf,n0\n", "new: line 2: must have 3 fields"),
    ],
)
def test_what_is_no_solution_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_devices(lists(), "new", text.encode())
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2,1000,,BE", "2,500,,BE", "pods: pair: line 6: num_gpu 2 with gpu_milli 500; must be none, a share of one"),
        ("1,500,,LS", "1,-5,,LS", "pods: line 2: gpu_milli is '-5'; must be an integer of 0 or more"),
        ("third", "half", "pods: line 3: half appears twice; names must be unique"),
        ("num_gpu,", "", "pods: line 2: has no num_gpu"),
    ],
)
def test_a_malformed_list_is_refused_in_one_line(old: str, new: str, message: str) -> None:
    assert PODS.count(old) == 1
    with pytest.raises(InputError) as caught:
        lists(pods=PODS.replace(old, new))
    assert str(caught.value).startswith(message)


def test_judge_and_checker_agree_on_random_placements() -> None:
    rng = np.random.default_rng(9)
    found = device_problem(lists())
    evaluator, seen = Evaluator(found.problem), set()
    for _ in range(200):
        entries = [(c, int(rng.integers(3)), 1) for c in range(6) if rng.random() < 0.4]
        evaluation = evaluator.evaluate(Placement.of(entries))
        pending, violations = check_devices(lists(), "new", found.write(Placement.of(entries)).encode())
        assert evaluation.values == pending
        assert evaluation.legal == (not violations)
        seen.add(evaluation.legal)
    assert seen == {True, False}


def test_the_figure_is_the_share_of_devices_that_are_allocated(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    instance = DeviceInstance("pods", "pods", tmp_path / "nodes.csv", tmp_path / "pods.csv", Reference())
    assert instance.measures((2000, 1)) == {ALLOCATED: pytest.approx(100 * 2.5 / 3)}


def test_the_published_lists(shared_data: Path) -> None:
    folder = shared_data / "benchmarks" / "openb"
    paths = (folder / "openb_node_list_gpu_node.csv.gz", folder / "openb_pod_list_default.csv.gz")
    found = DeviceInstance("default", "default", *paths, Reference()).state()
    assert found.problem.pods == 8152
    assert len(found.problem.nodes) == 1213
    assert Evaluator(found.problem).evaluate(found.problem.start).values == (6_086_800, 8152)
