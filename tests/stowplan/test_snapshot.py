"""``snapshot`` writes what every other command reads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.cli import run
from stowplan.cluster.snapshot import KINDS
from stowplan.instances.load import load, load_bytes
from stowplan.instances.manifests import READ
from tests.support.api_server import ApiServer, Cluster, cut, refuse
from tests.support.api_server.errors import ApiError, Object
from tests.support.api_server.resources import PODS, RESOURCES
from tests.support.applying import shop
from tests.support.kubectl import needs_kubectl


def test_all_kinds_that_are_read_are_asked_for() -> None:
    names = {resource.name: resource.kind for resource in RESOURCES}
    assert {names[kind] for kind in KINDS} == set(READ)


@needs_kubectl
class TestSnapshot:
    @pytest.fixture(autouse=True)
    def _serve(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        self.server = ApiServer(Cluster(shop()))
        with self.server:
            self.server.cluster.settle()
            monkeypatch.setenv("KUBECONFIG", str(self.server.kubeconfig(tmp_path, ("test", "other"))))
            yield

    @pytest.mark.parametrize("name", ["dump.json", "dump.json.gz"])
    def test_a_dump_is_written_and_read(self, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["snapshot", "-o", name, "--context", "other", "--chunk-size", "2"]) == 0
        assert "stowplan: " + name + ": 6 Pod, 3 Node" in capsys.readouterr().err
        read = load([name])
        assert (len(read.nodes), len(read.pods), len(read.pod_disruption_budgets)) == (3, 6, 1)
        if name.endswith(".gz"):
            assert json.loads(gzip.decompress(Path(name).read_bytes()))["kind"] == "List"
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".dump")] == []

    def test_on_standard_output(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert run(["snapshot", "-o", "-"]) == 0
        assert json.loads(capfd.readouterr().out)["kind"] == "List"

    def test_secrets_are_left_out_unless_all_is_asked_for(self, capfd: pytest.CaptureFixture[str]) -> None:
        def plant(pod: Object) -> None:
            pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
            pod["metadata"].setdefault("annotations", {})["example.com/token"] = "hunter2"

        self.server.store.update(PODS, "shop", "db-0", plant)
        self.server.cluster.settle()
        found = {}
        for options in ((), ("--full",)):
            assert run(["snapshot", "-o", "-", *options]) == 0
            found[options] = capfd.readouterr().out
        assert "hunter2" not in found[()]
        assert found[("--full",)].count("hunter2") == 2
        assert load_bytes(found[()].encode(), "dump").pods == load_bytes(found[("--full",)].encode(), "dump").pods

    def test_kinds_that_are_missing_are_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.server.discovery.resources = tuple(r for r in self.server.discovery.resources if r.plural != "csidrivers")
        self.server.forbids.add("persistentvolumes")
        assert run(["snapshot", "-o", "dump.json"]) == 0
        told = capsys.readouterr().err
        assert "stowplan: warning: the server does not serve csidrivers.storage.k8s.io\n" in told
        assert "stowplan: warning: left out: persistentvolumes is forbidden: " in told
        assert len(load(["dump.json"]).nodes) == 3

    def test_an_aggregated_api_that_is_down_costs_nothing_else(self) -> None:
        down = refuse(ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request"))
        self.server.faults.on("discover", down, matching="/apis/batch/v1", times=100)
        assert run(["snapshot", "-o", "dump.json"]) == 0
        assert len(load(["dump.json"]).pods) == 6

    def test_without_pods_there_is_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.server.forbids.add("pods")
        assert run(["snapshot", "-o", "dump.json"]) == 1
        assert capsys.readouterr().err.startswith("stowplan: pods is forbidden: ")
        assert not Path("dump.json").exists()

    def test_never_half_a_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("dump.json").write_text("what was there")
        self.server.faults.on("list", cut(0.5), matching="pods", skip=1)
        assert run(["snapshot", "-o", "dump.json", "--chunk-size", "2"]) == 1
        assert "EOF" in capsys.readouterr().err
        assert Path("dump.json").read_text() == "what was there"

    def test_a_place_that_cannot_be_written(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["snapshot", "-o", "nowhere/dump.json"]) == 1
        assert capsys.readouterr().err == "stowplan: nowhere/dump.json: cannot be written: No such file or directory\n"

    @pytest.mark.parametrize("command", ["compare", "solve", "frontier", "plan"])
    def test_commands_ask_the_cluster_themselves(self, command: str, capsys: pytest.CaptureFixture[str]) -> None:
        """What --live reads is what a dump holds, and is known to be whole; nothing but reading is asked for."""
        assert run(["snapshot", "-o", "dump.json", "-q"]) == 0
        quick = ("-q", "-t", "1", "--deterministic", "-o", "json")
        capsys.readouterr()
        self.server.cluster.settle()
        assert run([command, "--live", "--context", "other", *quick]) == 0
        live = capsys.readouterr()
        assert run([command, "dump.json", *quick]) == 0
        dumped = capsys.readouterr()
        assert live.err == dumped.err == ""
        found, expected = json.loads(live.out), json.loads(dumped.out)
        for document in (found, expected):
            inner = document.get("solution", document)
            del inner["snapshot"]["fingerprint"]
        assert found["kind"] == expected["kind"]
        assert found.get("solution", found)["snapshot"] == expected.get("solution", expected)["snapshot"]
        assert {request.wish for request in self.server.requests} <= {"discover", "list", "get"}

    def test_as_a_plugin_of_kubectl_no_file_is_needed(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["compare"]) == 1
        assert "SNAPSHOT: missing; must be files, - for standard input, or --live" in capsys.readouterr().err
        assert run(["compare", "dump.json", "--live"]) == 1
        assert "--live: excludes SNAPSHOT" in capsys.readouterr().err
        monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-stowplan", "compare", "-q", "-t", "1"])
        assert run(None) == 0
        assert "3 nodes, 6 pods" in capsys.readouterr().out

    def test_a_cluster_that_cannot_be_reached_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.server.forbids.add("pods")
        assert run(["compare", "--live"]) == 1
        assert capsys.readouterr().err.startswith("stowplan: pods is forbidden: ")
