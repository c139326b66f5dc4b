"""Shared GPUs from the command line: a small openb trace, with and without the plugin that knows devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stowplan.cli import run
from stowplan.models.kubernetes.devices import GPU_MILLI
from tests.support.clusters import gpu, node, pod
from tests.support.malformed import listed

QUICK = ("-q", "-t", "5", "--deterministic", "-O", "pack")
NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,64000,262144,2,T4\n"
# 600 + 400 and 600 leave no device with 500; a scheduler that only adds up has room for 600 + 600 + 500.
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(
    f"pod-{i},1000,1024,1,{milli}\n" for i, milli in enumerate((600, 600, 500, 400))
)
PLAIN = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ENABLED = PLAIN + "profiles: [{plugins: {filter: {enabled: [{name: GpuShare}]}}}]\n"


@pytest.fixture
def openb(tmp_path: Path) -> str:
    folder = tmp_path / "openb"
    folder.mkdir()
    (folder / "nodes.csv").write_text(NODES)
    (folder / "pods.csv").write_text(PODS)
    (tmp_path / "plain.yaml").write_text(PLAIN)
    (tmp_path / "enabled.yaml").write_text(ENABLED)
    return str(folder)


def compared(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(("compare", *arguments, *QUICK, "-o", "json")) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def notes(document: dict[str, Any]) -> str:
    return "\n".join(document["solution"]["snapshot"]["notes"])


def test_both_columns_keep_shares_on_one_device(openb: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = compared(capsys, openb)
    for column in ("kube-scheduler", "stowplan"):
        assert document["placements"][column]["unscheduled"] == 1
        assert document["placements"][column]["usage"][GPU_MILLI]["mean"] == 0.8
    assert "GpuShare, which upstream does not have, is part of the profile" in notes(document)


def test_a_configuration_without_the_plugin_adds_up_and_says_so(
    openb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = compared(capsys, openb, "--config", str(tmp_path / "plain.yaml"))
    assert document["placements"]["kube-scheduler"]["usage"][GPU_MILLI]["mean"] == 0.85
    assert "does not enable GpuShare: shares may be split over devices" in notes(document)
    document = compared(capsys, openb, "--config", str(tmp_path / "enabled.yaml"))
    assert document["placements"]["kube-scheduler"]["usage"][GPU_MILLI]["mean"] == 0.8
    assert "GpuShare" not in notes(document)


def test_a_solution_is_verified_with_the_devices(
    openb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("solve", openb, *QUICK, "-o", "json")) == 0
    solution = tmp_path / "solution.json"
    document = json.loads(capsys.readouterr().out)
    solution.write_text(json.dumps(document))
    assert run(("verify", str(solution), openb)) == 0
    assert "Verified" in capsys.readouterr().out
    # The pod that waits takes the place of the one of 400: the amounts fit, the devices do not.
    placed = {entry["name"]: entry for entry in document["placements"]}
    placed["pod-2"]["node"], placed["pod-3"]["node"] = placed["pod-3"]["node"], placed["pod-2"]["node"]
    solution.write_text(json.dumps(document))
    assert run(("verify", str(solution), openb)) == 1
    assert "GpuShare" in capsys.readouterr().out


def test_a_cluster_that_asks_by_annotations_shows_what_of_its_gpus_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = [pod(f"p{i}", annotations=gpu(1, milli)) for i, milli in enumerate((600, 600, 500))]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(listed(node("n", extended={"alibabacloud.com/gpu-count": "2"}), *pods)))
    document = compared(capsys, str(dump))
    assert document["placements"]["stowplan"]["usage"][GPU_MILLI]["mean"] == 0.6
    assert run(("compare", str(dump), *QUICK)) == 0
    shown = capsys.readouterr().out
    assert "gpu-milli" in shown
    assert "60.0%" in shown
