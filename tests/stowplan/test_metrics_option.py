"""``--metrics``: where measured load comes from, and what is said where there is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stowplan import Settings, load, make_problem
from stowplan.cli import run
from stowplan.models.metrics import AVERAGE, CPU, LoadMetrics, Metric
from stowplan.settings.metrics import TOKEN, with_metrics
from tests.support.clusters import node, pod
from tests.support.malformed import listed
from tests.support.servers import answering

WATCHED = {"n1": {"metrics": [{"type": "CPU", "operator": "AVG", "value": 90}]}, "n2": {"metrics": []}}
DOCUMENT = json.dumps({"window": {"end": 1767000000}, "data": {"NodeMetricsMap": WATCHED}})


def configured(**args: Any) -> str:
    plugin = "LoadVariationRiskBalancing"
    profile = {
        "plugins": {"score": {"enabled": [{"name": plugin}], "disabled": [{"name": "*"}]}},
        "pluginConfig": [{"name": plugin, "args": args}],
    }
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return json.dumps({**config, "profiles": [profile]})


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("dump.json").write_text(json.dumps(listed(node("n1"), node("n2"), pod("old", "n1"), pod("new"))))
    Path("config.yaml").write_text(configured())
    Path("load.yaml").write_text("nodes: {n1: {cpu: 90}, n2: {cpu: 10}}")
    return "dump.json"


def simulated(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, str]:
    """Return where the pending pod went, and what was said on stderr."""
    assert run(["simulate", "dump.json", "--config", "config.yaml", "-o", "json", *options]) == 0
    printed = capsys.readouterr()
    return json.loads(printed.out)["decisions"][0]["node"], printed.err


def test_measured_load_decides(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulated(capsys, "--metrics", "load.yaml") == ("n2", "")
    Path("load.yaml").write_text("nodes: {n1: {cpu: 10}, n2: {cpu: 90}}")
    assert simulated(capsys, "--metrics", "load.yaml") == ("n1", "")


def test_without_metrics_it_is_said_that_every_node_scores_0(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    note = "LoadVariationRiskBalancing without metrics: every node scores 0; --metrics names a file or an address"
    assert simulated(capsys)[1] == f"stowplan: warning: {note}\n"
    for command in ("compare", "solve"):
        arguments = [command, dump, "--config", "config.yaml", "-q", "-t", "2", "-o", "json"]
        assert run(arguments) == 0
        assert note in capsys.readouterr().out


def test_nodes_without_metrics_are_counted(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("load.yaml").write_text("nodes: {n1: {cpu: 90}, n9: {cpu: 10}}")
    where, said = simulated(capsys, "--metrics", "load.yaml")
    assert where == "n1"
    assert "1 of 2 nodes have no metrics: LoadVariationRiskBalancing scores them 0" in said


def test_metrics_that_no_plugin_reads(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", dump, "--metrics", "load.yaml"]) == 0
    assert "--metrics is not used: no plugin of the profile reads it" in capsys.readouterr().err


def test_the_profile_names_its_load_watcher(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(lambda path, headers: (200, DOCUMENT)) as address:
        Path("config.yaml").write_text(configured(watcherAddress=address))
        assert "1 of 2 nodes have no metrics" in simulated(capsys)[1]
    assert simulated(capsys, "--metrics", "load.yaml")[0] == "n2"


def test_the_profiles_token_goes_to_its_prometheus_and_ours_to_the_named_server(
    dump: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str | None] = set()

    def answer(path: str, headers: dict[str, str]) -> tuple[int, str]:
        seen.add(headers.get("Authorization"))
        sample = {"metric": {"instance": "n1"}, "value": [1, "0.5"]}
        return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": [sample]}})

    monkeypatch.setenv(TOKEN, "mine")
    with answering(answer) as address:
        provider = {"type": "Prometheus", "address": address, "token": "its"}
        Path("config.yaml").write_text(configured(metricProvider=provider))
        simulated(capsys)
        assert seen == {"Bearer its"}
        simulated(capsys, "--metrics", address)
        assert seen == {"Bearer its", "Bearer mine"}


def test_a_score_of_measured_load_is_not_in_the_model_and_the_report_says_so(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["solve", dump, "-O", "kube", "--config", "config.yaml", "--metrics", "load.yaml", "-q", "-t", "2"]
    assert run(arguments) == 0
    assert "LoadVariationRiskBalancing scores, but offers no terms: its score counts" in capsys.readouterr().out


def test_a_snapshot_may_bring_its_metrics(dump: str) -> None:
    settings = Settings(config="config.yaml")
    snapshot = make_problem(load([dump]), settings).snapshot
    assert snapshot.metrics is None
    metrics = LoadMetrics({name: (Metric(CPU, AVERAGE, 40.0),) for name in ("n1", "n2")})
    compiled = make_problem(replace(load([dump]), metrics=metrics), settings)
    assert compiled.snapshot.metrics is metrics
    assert not compiled.snapshot.notes
    assert with_metrics(compiled.snapshot, compiled.profile, "load.yaml").metrics != metrics
