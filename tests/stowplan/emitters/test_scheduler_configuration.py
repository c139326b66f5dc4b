"""What ``emit --to extender`` writes, against the fields that Kubernetes publishes for scheduler configurations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stowplan.cli import run
from tests.support.plans import move, plan

SCHEMA = Path(__file__).parent / "kube-scheduler-configuration.v1.json"
"""kube-scheduler reads its file strictly: a field that is not in here keeps it from starting."""
MARK = "  kubeconfig: /etc/kubernetes/scheduler.conf  # kubeadm's path; put the one of your scheduler here"


def emitted(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, str]:
    """Return what the command writes, and what it says."""
    (folder / "plan.json").write_text(plan([move("shop/web-a", "n1", "n2")]).model_dump_json(by_alias=True))
    assert run(["emit", str(folder / "plan.json"), "--to", "extender", *options]) == 0
    out, err = capsys.readouterr()
    return out, err


def refused(folder: Path, text: str) -> str:
    """Return what the schema has against a file; empty if nothing."""
    (folder / "scheduler.yaml").write_text(text)
    command = [str(Path(sys.executable).parent / "check-jsonschema"), "--schemafile", str(SCHEMA), "scheduler.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode else ""


def test_without_a_configuration_the_line_to_fill_in_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, said = emitted(tmp_path, capsys)
    assert [line for line in text.splitlines() if "#" in line] == [MARK]
    assert "--kubeconfig names another" in said
    assert refused(tmp_path, text) == ""


@pytest.mark.parametrize(
    "options",
    [
        ["--kubeconfig", "/var/lib/scheduler/kubeconfig"],
        ["--url", "http://10.0.0.5:8888/v1"],
        ["--url", "https://10.0.0.5:8888/v1"],
    ],
)
def test_the_file_is_what_is_published(tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    text, _ = emitted(tmp_path, capsys, *options)
    assert refused(tmp_path, text) == ""
    assert ("#" in text) == ("--kubeconfig" not in options)


def test_a_configuration_of_ones_own_stays_what_is_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/etc/kubernetes/own.conf", "qps": 100},
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "percentageOfNodesToScore": 50,
                "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}},
                "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
            }
        ],
    }
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(own))
    text, _ = emitted(tmp_path, capsys, "--config", str(tmp_path / "own.yaml"))
    assert refused(tmp_path, text) == ""
    assert "#" not in text


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("  kubeconfig: ", "  qps: 50 # ", "'kubeconfig' is a required property"),
        ("httpTimeout: 200ms", "httpTimeout: 200", "200 is not of type 'string'"),
        ("ignorable", "ignoreable", "'ignoreable' was unexpected"),
    ],
)
def test_the_schema_check_would_notice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, problem: str
) -> None:
    text, _ = emitted(tmp_path, capsys)
    assert problem in refused(tmp_path, text.replace(old, new))
