"""Measured load: every source gives the same figures, and bad ones get one clear line."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from stowplan.instances.metrics import http
from stowplan.instances.metrics.http import Access
from stowplan.instances.metrics.read import read_metrics
from stowplan.models import network
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Node
from stowplan.models.metrics import AVERAGE, CPU, DEVIATION, LATEST, MEMORY, LoadMetrics, Metric
from tests.support.clusters import node, snapshot
from tests.support.servers import answering

NODES = snapshot(nodes=[node("n1"), node("n2")]).nodes

FIGURES = {
    "n1": (Metric(CPU, LATEST, 41.0), Metric(CPU, AVERAGE, 37.2), Metric(CPU, DEVIATION, 6.1)),
    "n2": (Metric(MEMORY, AVERAGE, 55.0),),
}


def watched(**more: Any) -> dict[str, Any]:
    """Return a document as load-watcher writes it."""
    nodes = {
        name: {
            "metrics": [{"name": "m", "type": m.type, "operator": m.operator, "value": m.value} for m in figures],
            "tags": {},
            "metadata": {"dataCenter": ""},
        }
        for name, figures in FIGURES.items()
    }
    window = {"duration": "15m", "start": 1766999100, "end": 1767000000}
    data = {"NodeMetricsMap": nodes}
    return {"timestamp": 1767000001, "window": window, "source": "Prometheus", "data": data, **more}


def read(where: str, nodes: tuple[Node, ...] = NODES, access: Access | None = None) -> LoadMetrics:
    return read_metrics(where, nodes, access)


def line(where: str) -> str:
    with pytest.raises(InputError) as caught:
        read(where)
    return str(caught.value)


# -- files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, "\t"])
def test_a_file_that_load_watcher_wrote(tmp_path: Path, indent: str | None) -> None:
    path = tmp_path / "load.json"
    path.write_text(json.dumps(watched(), indent=indent))
    metrics = read(str(path))
    assert metrics.nodes == FIGURES
    assert metrics.end == 1767000000


def test_a_simple_file(tmp_path: Path) -> None:
    path = tmp_path / "load.yaml"
    path.write_text(
        "measuredAt: 2025-12-29T09:20:00Z\n"
        "nodes:\n"
        "  n1: {cpu: {latest: 41, average: 37.2, std: 6.1}}\n"
        "  n2: {memory: 55}\n"
    )
    metrics = read(str(path))
    assert metrics.nodes == FIGURES
    assert metrics.end == 1767000000


def test_a_simple_file_may_leave_the_moment_out(tmp_path: Path) -> None:
    path = tmp_path / "load.json"
    path.write_text('{"nodes": {"n1": {"cpu": 40}}}')
    assert read(str(path)).end is None


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    assert line(str(tmp_path)).endswith(": is a directory; must be one file")


def test_an_entry_without_figures_is_no_knowledge(tmp_path: Path) -> None:
    path = tmp_path / "load.json"
    path.write_text(json.dumps({"data": {"NodeMetricsMap": {"n1": {"metrics": []}, "n2": {"metrics": None}}}}))
    assert "has metrics of no node of the snapshot; its nodes are n1, n2" in line(str(path))


# -- load-watcher ---------------------------------------------------------------------------------------------


def test_a_load_watcher_is_asked(tmp_path: Path) -> None:
    with answering(lambda path, headers: (200 if path == "/watcher" else 404, json.dumps(watched()))) as address:
        metrics = read(f"{address}/watcher")
    assert metrics.nodes == FIGURES
    assert metrics.source == f"{address}/watcher"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (500, "", "answered with status 500; a load-watcher has nothing to tell before it has measured once"),
        (404, "", "answered with status 404"),
        (200, "<html>", "did not answer with a JSON document"),
        (200, "[]", "must be an object"),
        (200, '{"data": {"NodeMetricsMap": {}}}', "has metrics of no node of the snapshot; it has no nodes"),
        (200, json.dumps(watched(window={"end": "soon"})), "window.end: is 'soon'; must be an integer"),
    ],
)
def test_what_a_load_watcher_may_do_wrong(status: int, body: str, said: str) -> None:
    with answering(lambda path, headers: (status, body)) as address:
        found = line(f"{address}/watcher")
    assert found.startswith(f"{address}/watcher: ")
    assert said in found


# -- any server -----------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there() -> None:
    with answering(lambda path, headers: (200, "")) as address:
        pass
    assert "cannot be reached: " in line(f"{address}/watcher")


def test_a_server_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "TIMEOUT", 0.2)

    def answer(path: str, headers: dict[str, str]) -> tuple[int, str]:
        time.sleep(1)
        return 200, "{}"

    with answering(answer) as address:
        assert line(address) == f"{address}/api/v1/query: did not answer within 0.2 seconds"


def test_a_token_goes_to_the_named_server_only() -> None:
    seen: list[str | None] = []

    def other(path: str, headers: dict[str, str]) -> tuple[int, str]:
        seen.append(headers.get("Authorization"))
        return 200, json.dumps(watched())

    with answering(other) as elsewhere:

        def answer(path: str, headers: dict[str, str]) -> tuple[int, str]:
            seen.append(headers.get("Authorization"))
            return 302, f"{elsewhere}/watcher"

        with answering(answer) as address, pytest.raises(InputError) as refused:
            read(f"{address}/watcher", access=Access("secret"))
    assert f"{address}/watcher: sends us to '{elsewhere}/watcher', and we do not go there" in str(refused.value)
    assert seen == ["Bearer secret"]


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "MAX_ANSWER", 1 << 20)
    with answering(lambda path, headers: (200, " " * (2 << 20))) as address:
        assert line(f"{address}/watcher") == f"{address}/watcher: the answer is larger than 1 MiB"


def test_an_answer_that_trickles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "MAX_ANSWER_SECONDS", -1.0)
    with answering(lambda path, headers: (200, json.dumps(watched()))) as address:
        assert "the answer takes longer than" in line(f"{address}/watcher")


def test_brackets_without_end_are_no_answer() -> None:
    with answering(lambda path, headers: (200, "[" * 100_000)) as address:
        assert line(f"{address}/watcher") == f"{address}/watcher: did not answer with a JSON document"


def test_credentials_are_not_shown() -> None:
    assert network.shown("https://me:secret@host:9090/prom?time=1") == "https://host:9090/prom"


# -- what is no Prometheus ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, "", "does not answer as a Prometheus server does (status 404); the address of a load-watcher ends in"),
        (200, "[1]", "does not answer as a Prometheus server does (status 200)"),
        (400, '{"status": "error", "error": "parse error"}', "refused the query: parse error"),
        (200, '{"status": "success", "data": {"result": [{}]}}', "data.result[0].metric: is missing"),
        (
            200,
            '{"status": "success", "data": {"result": [{"metric": {}, "value": [1, "x"]}]}}',
            "has a value that is not a number",
        ),
    ],
)
def test_what_another_server_says(status: int, body: str, said: str) -> None:
    with answering(lambda path, headers: (status, body)) as address:
        assert said in line(address)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("window=soon", "window: 'soon' is not a duration"),
        ("time=soon", "time: 'soon' is not a moment"),
        ("step=5", "'step' is not an option; options are window and time"),
    ],
)
def test_options_of_the_address(query: str, said: str) -> None:
    assert said in line(f"http://127.0.0.1:1?{query}")
