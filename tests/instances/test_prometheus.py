"""Measured load from a real Prometheus server with a made-up past."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.cli import run
from stowplan.instances.metrics.read import read_metrics
from stowplan.models.errors import InputError
from stowplan.models.metrics import AVERAGE, CPU, DEVIATION, LATEST, MEMORY, LoadMetrics
from tests.support.clusters import node, pod, snapshot
from tests.support.malformed import listed
from tests.support.servers import missing_prometheus, prometheus

RECORDED_AT = 1735732800  # 2025-01-01T12:00:00Z; until then, the recording rules of kube-prometheus wrote
EXPOSED_AT = RECORDED_AT + 12 * 3600  # until then, only node-exporter did

SHARES = {
    ("instance:node_cpu:ratio", "n1"): [0.30 + 0.01 * (i % 7) for i in range(60)],
    ("instance:node_memory_utilisation:ratio", "n1"): [0.5] * 60,
    ("instance:node_cpu:ratio", "n2:9100"): [0.80 - 0.02 * (i % 5) for i in range(60)],
    ("instance:node_memory_utilisation:ratio", "n2:9100"): [0.25 + 0.001 * i for i in range(60)],
    ("instance:node_cpu:ratio", "10.0.0.3:9100"): [0.1] * 60,
    ("instance:node_cpu:ratio", "elsewhere:9100"): [0.9] * 60,
}
NODES = [
    node("n1", cpu="4"),
    node("n2", cpu="4"),
    node("n3", cpu="4"),
]
NODES[2]["status"]["addresses"] = [{"type": "InternalIP", "address": "10.0.0.3"}]
for manifest in NODES:
    manifest["status"]["capacity"] = manifest["status"]["allocatable"]


def past() -> str:
    """Return one sample a minute, half a minute off the full ones: so many lie in a window of as many minutes."""
    lines = []
    for name in sorted({name for name, _ in SHARES}):
        lines.append(f"# TYPE {name} gauge")
        for (series, instance), values in SHARES.items():
            if series == name:
                for i, value in enumerate(values):
                    at = RECORDED_AT - 30 - 60 * (len(values) - 1 - i)
                    lines.append(f'{name}{{instance="{instance}"}} {value!r} {at}')
    lines.append("# TYPE node_cpu_seconds counter")
    rates = {"idle": 0.5, "iowait": 0.125, "user": 0.375}
    for cpu in ("0", "1"):
        for mode, rate in rates.items():
            labels = f'instance="n1:9100",cpu="{cpu}",mode="{mode}"'
            for i in range(60):
                at = EXPOSED_AT - 30 - 60 * (59 - i)
                lines.append(f"node_cpu_seconds_total{{{labels}}} {rate * 60 * i!r} {at}")
    for name, gibibytes in (("node_memory_MemAvailable_bytes", 3), ("node_memory_MemTotal_bytes", 12)):
        lines.append(f"# TYPE {name} gauge")
        for i in range(60):
            at = EXPOSED_AT - 30 - 60 * (59 - i)
            lines.append(f'{name}{{instance="n1:9100"}} {gibibytes * 2**30} {at}')
    return "\n".join([*lines, "# EOF\n"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if missing := missing_prometheus():
        pytest.skip(missing)
    with prometheus(tmp_path_factory.mktemp("prometheus"), past()) as address:
        yield address


def read(where: str) -> LoadMetrics:
    return read_metrics(where, snapshot(nodes=NODES).nodes)


def test_figures_are_those_of_the_window(server: str) -> None:
    metrics = read(f"{server}?time={RECORDED_AT}")
    assert metrics.end == RECORDED_AT
    assert list(metrics.nodes) == ["n3", "n1", "n2"]  # sorted by instance
    for kind, name in ((CPU, "instance:node_cpu:ratio"), (MEMORY, "instance:node_memory_utilisation:ratio")):
        for instance in ("n1", "n2:9100"):
            values = SHARES[name, instance][-15:]
            found = {m.operator: m.value for m in metrics.of(instance[:2]) if m.type == kind}
            assert list(found) == [LATEST, AVERAGE, DEVIATION]
            assert found[LATEST] == pytest.approx(100 * values[-1], rel=1e-12)
            assert found[AVERAGE] == pytest.approx(100 * statistics.fmean(values), rel=1e-9)
            assert found[DEVIATION] == pytest.approx(100 * statistics.pstdev(values), abs=1e-9)


def test_another_window(server: str) -> None:
    metrics = read(f"{server}/?time=2025-01-01T12:00:00Z&window=5m")
    average = next(m.value for m in metrics.of("n2") if (m.type, m.operator) == (CPU, AVERAGE))
    assert average == pytest.approx(100 * statistics.fmean(SHARES["instance:node_cpu:ratio", "n2:9100"][-5:]))


def test_without_recording_rules_node_exporter_tells(server: str) -> None:
    metrics = read(f"{server}?time={EXPOSED_AT}")
    found = {(m.type, m.operator): m.value for m in metrics.of("n1")}
    assert found[CPU, AVERAGE] == pytest.approx(37.5)
    assert found[MEMORY, AVERAGE] == pytest.approx(75)
    assert found[CPU, DEVIATION] == pytest.approx(0, abs=1e-6)


def test_a_moment_without_data(server: str) -> None:
    with pytest.raises(InputError, match=r"node-exporter's series in the 15m before 2024-01-01T00:00:00Z"):
        read(f"{server}?time=2024-01-01T00:00:00Z")


def test_nodes_that_the_server_does_not_know(server: str) -> None:
    with pytest.raises(InputError, match=r"no instance is a node of the snapshot; instances are 10\.0\.0\.3:9100, "):
        read_metrics(f"{server}?time={RECORDED_AT}", snapshot(nodes=[node("m1")]).nodes)


def test_what_the_server_refuses_is_said(server: str) -> None:
    with pytest.raises(InputError, match=r"/api/v1/query: refused the query: .*duration"):
        read(f"{server}?window=1m1h")


def test_a_simulation_follows_the_measured_load(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pod of 1 core is predicted to use 1.5 of 4: with the 10 % measured on n3 that is 47.5 % of it.

    The target is 40 %. n1 (33 % before) and n2 (76 %) would end up further beyond it.
    """
    plugin = {"name": "TargetLoadPacking", "weight": 100}
    profile = {
        "plugins": {"score": {"enabled": [plugin], "disabled": [{"name": "*"}]}},
        "pluginConfig": [
            {
                "name": "TargetLoadPacking",
                "args": {"metricProvider": {"type": "Prometheus", "address": f"{server}?time={RECORDED_AT}"}},
            }
        ],
    }
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (tmp_path / "c.yaml").write_text(json.dumps({**config, "profiles": [profile]}))
    (tmp_path / "dump.json").write_text(json.dumps(listed(*NODES, pod("new", cpu="1"))))
    arguments = ["simulate", str(tmp_path / "dump.json"), "--config", str(tmp_path / "c.yaml"), "-o", "json"]
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["decisions"][0]["node"] == "n3"
