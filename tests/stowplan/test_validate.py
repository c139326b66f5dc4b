"""Traces: recorded decisions run again, our own decisions recorded, differences found and named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from stowplan.cli import run
from tests.support.clusters import node, pod
from tests.support.malformed import listed

GOLDEN = Path(__file__).parent.parent / "golden"
TAINTS = GOLDEN / "k36" / "taints.jsonl.gz"


def lines(file: Path) -> list[dict[str, Any]]:
    data = file.read_bytes()
    text = gzip.decompress(data) if file.name.endswith(".gz") else data
    return [json.loads(line) for line in text.splitlines()]


def write(file: Path, cases: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return str(file)


def validation(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> dict[str, Any]:
    assert run(["validate", *arguments, "-q", "-o", "json"]) == code
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_a_folder_a_file_and_a_pattern_name_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    pattern = str(GOLDEN / "*" / "taints.jsonl.gz")
    found = validation(capsys, str(TAINTS), pattern, code=0)
    assert [Path(counts["file"]).parent.name for counts in found["files"]] == ["k36", "k24"]
    assert found["holds"]
    assert found["total"] == 0
    assert sum(counts["pods"] for counts in found["files"]) > 400


def _score(expect: dict[str, Any]) -> tuple[str, str]:
    scores = expect["scores"]["TaintToleration"]
    scores[next(iter(scores))] += 1
    return "Score", "TaintToleration"


def _reason(expect: dict[str, Any]) -> tuple[str, str]:
    refusal = next(iter(expect["filter"].values()))
    refusal["reasons"] = ["it is Friday"]
    return "Filter", refusal["plugin"]


def _code(expect: dict[str, Any]) -> tuple[str, str]:
    refusal = next(iter(expect["filter"].values()))
    refusal["code"] = "Unschedulable" if refusal["code"] != "Unschedulable" else "UnschedulableAndUnresolvable"
    return "Filter", refusal["plugin"]


def _choice(expect: dict[str, Any]) -> tuple[str, str]:
    expect["chosen"] = expect["feasible"][-1] if expect["chosen"] != expect["feasible"][-1] else expect["feasible"][0]
    return "Choice", ""


def _total(expect: dict[str, Any]) -> tuple[str, str]:
    expect["total"][expect["chosen"]] += 1
    return "Total", ""


def _left_out_plugin(expect: dict[str, Any]) -> tuple[str, str]:
    del expect["scores"]["ImageLocality"]
    return "Score", "ImageLocality"


@pytest.mark.parametrize("tamper", [_score, _reason, _code, _choice, _total, _left_out_plugin])
def test_a_record_that_was_changed_is_found_out(
    tamper: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(
        c for c in lines(TAINTS) if len(c["expect"][0].get("feasible", ())) > 1 and c["expect"][0].get("filter")
    )
    stage, plugin = tamper(case["expect"][0])
    found = validation(capsys, write(tmp_path / "t.jsonl", [case]), code=1)
    assert (stage, plugin) in {(d["stage"], d["plugin"]) for d in found["differences"]}
    assert found["differences"][0]["source"].endswith("t.jsonl:1")


def test_the_table_names_files_plugins_and_first_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = lines(TAINTS)[:5]
    for case in cases:
        for expect in case["expect"]:
            if "total" in expect:
                _total(expect)
    assert run(["validate", write(tmp_path / "t.jsonl", cases), "-q", "--show", "2"]) == 1
    text = capsys.readouterr().out
    assert "not reproduced" in text
    assert "TaintToleration" in text
    assert "more; --show keeps more" in text


def dump(tmp_path: Path) -> str:
    pods = [pod(f"p{i}", cpu="1500m", memory="1Gi", labels={"app": "web"}) for i in range(3)]
    path = tmp_path / "dump.json"
    path.write_text(
        json.dumps(listed(node("n1"), node("n2", cpu="3"), pod("old", "n1", cpu="0.3", owner="ReplicaSet/old"), *pods))
    )
    return str(path)


@pytest.mark.parametrize("name", ["own.jsonl", "own.jsonl.gz"])
@pytest.mark.parametrize("everything", [[], ["--all"]])
def test_our_own_decisions_are_recorded_and_hold(
    name: str, everything: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / name
    assert run(["simulate", dump(tmp_path), "--record", str(target), "-o", "csv", *everything]) == 0
    capsys.readouterr()
    (case,) = lines(target)
    assert len(case["expect"]) == (4 if everything else 3)
    assert case["expect"][0]["scores"]["NodeResourcesFit"]
    found = validation(capsys, str(target), code=0)
    assert found["files"][0]["pods"] == len(case["expect"])


def test_two_profiles_are_compared_through_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    args = "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]\n"
    )
    target, other = str(tmp_path / "own.jsonl"), str(tmp_path / "other.jsonl")
    assert run(["simulate", dump(tmp_path), "--record", target, "-o", "csv"]) == 0
    capsys.readouterr()
    found = validation(capsys, target, "--config", str(config), "--record", other, code=1)
    assert {d["plugin"] for d in found["differences"] if d["stage"] == "Score"} == {"NodeResourcesFit"}
    assert validation(capsys, other, "--config", str(config), code=0)["holds"]


def test_a_configuration_travels_with_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {score: {disabled: [{name: '*'}]}}}]\n"
    )
    target = str(tmp_path / "own.jsonl")
    assert run(["simulate", dump(tmp_path), "--record", target, "--config", str(config), "-o", "csv"]) == 0
    capsys.readouterr()
    assert "scores" not in lines(Path(target))[0]["expect"][0]
    assert validation(capsys, target, code=0)["holds"]


def test_nothing_is_written_over_when_a_line_cannot_be_read(tmp_path: Path) -> None:
    target = tmp_path / "kept.jsonl"
    target.write_text("precious\n")
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps(lines(TAINTS)[0]) + "\n{\n")
    assert run(["validate", str(bad), "-q", "--record", str(target)]) == 1
    assert target.read_text() == "precious\n"


def test_a_pod_that_is_taken_to_its_nominated_node_unscored_is_recorded_and_validated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = tmp_path / "record.jsonl.gz"
    nominated = str(GOLDEN / "cases" / "A-snapshot.json")
    assert run(["simulate", nominated, "--record", str(recorded)]) == 0
    capsys.readouterr()
    assert validation(capsys, str(recorded), code=0)["holds"]
    (expect,) = lines(recorded)[0]["expect"]
    assert expect["chosen"] == "n1"
    assert "scores" not in expect


@pytest.mark.parametrize("scheduler", [(), ("--scheduler", "second")])
def test_a_record_carries_the_configuration_that_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scheduler: tuple[str, ...]
) -> None:
    """Recorded by one configuration, decided by another, recorded again: the second record stands by itself."""
    config = tmp_path / "config.yaml"
    args = "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}"
    fit = f"pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]"
    unscored = "plugins: {score: {disabled: [{name: '*'}]}}"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{{fit}}}, {{schedulerName: second, {unscored}}}]\n"
    )
    target, other = str(tmp_path / "own.jsonl"), str(tmp_path / "other.jsonl")
    assert run(["simulate", dump(tmp_path), "--record", target, "-o", "csv"]) == 0
    capsys.readouterr()
    validation(capsys, target, "--config", str(config), *scheduler, "--record", other, code=1)
    assert validation(capsys, other, code=0)["holds"]
    assert ("scores" in lines(Path(other))[0]["expect"][0]) is not bool(scheduler)
