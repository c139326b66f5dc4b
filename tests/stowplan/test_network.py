"""No network unasked: who is asked is said first, ``--offline`` asks no server, and without a network all goes on."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from stowplan.cli import run
from stowplan.cli.app import app
from tests.support.clusters import node, pod
from tests.support.kubectl import needs_kubectl
from tests.support.malformed import config, listed
from tests.support.servers import answering

ROOT = Path(__file__).parents[2]
EXTENDER = {"filterVerb": "filter", "nodeCacheCapable": True, "ignorable": True, "httpTimeout": "1s"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dump, as the working directory."""
    monkeypatch.chdir(tmp_path)
    pods = [pod("old", "n1", labels={"app": "a"}), pod("new")]
    (tmp_path / "dump.json").write_text(json.dumps(listed(node("n1"), node("n2"), *pods)))
    return tmp_path


@pytest.fixture
def stranger() -> Iterator[tuple[str, socket.socket]]:
    """A port at which somebody listens, and who connects to it is seen."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", listening


def with_extender(url: str) -> None:
    """Write a configuration that has pods sent to an address."""
    Path("evil.yaml").write_text(json.dumps(config(extenders=[{"urlPrefix": f"{url}/collect", **EXTENDER}])))


def with_watcher(url: str) -> None:
    """Write a configuration that reads load from an address, and names a token for it."""
    plugin = "LoadVariationRiskBalancing"
    args = {"metricProvider": {"type": "Prometheus", "address": url, "token": "stolen"}}
    profile = {
        "plugins": {"score": {"enabled": [{"name": plugin}]}},
        "pluginConfig": [{"name": plugin, "args": args}],
    }
    Path("evil.yaml").write_text(json.dumps(config(profiles=[profile])))


SIMULATE = ["simulate", "dump.json", "--config", "evil.yaml"]


@pytest.mark.parametrize("wanted", [with_extender, with_watcher])
def test_offline_no_server_is_asked(
    here: Path, stranger: tuple[str, socket.socket], wanted: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    url, listening = stranger
    wanted(url)
    assert run(["--offline", *SIMULATE]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{url}" in printed.err
    assert "is not asked, since --offline forbids it" in printed.err
    with pytest.raises(BlockingIOError):
        listening.accept()


@pytest.mark.parametrize("path", ["", "/watcher"])
def test_offline_the_metrics_that_an_option_names_are_not_asked_either(
    here: Path, stranger: tuple[str, socket.socket], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with_watcher("http://127.0.0.1:1")
    assert run(["--offline", *SIMULATE, "--metrics", f"{stranger[0]}{path}"]) == 1
    assert "--offline forbids it" in capsys.readouterr().err
    with pytest.raises(BlockingIOError):
        stranger[1].accept()


def test_offline_no_cluster_is_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--offline", "snapshot", "-o", "out.json"]) == 1
    assert "kubectl version: is not asked, since --offline forbids it" in capsys.readouterr().err
    assert not Path("out.json").exists()


def test_an_extender_is_named_before_it_is_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once, however many pods it is asked about, and without what its address says besides the host."""
    dump = listed(node("n1"), *(pod(f"p{i}") for i in range(3)))
    Path("dump.json").write_text(json.dumps(dump))
    with_extender("http://me:secret@127.0.0.1:1")
    assert run(SIMULATE) == 0
    said = capsys.readouterr().err
    line = "stowplan: the scheduler configuration has http://127.0.0.1:1 asked (extender, told of pods and nodes)"
    assert said.count(line) == 1
    assert "secret" not in said


def test_a_source_of_load_is_named_before_it_is_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_watcher("http://127.0.0.1:1")
    assert run(SIMULATE) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "the scheduler configuration has http://127.0.0.1:1 asked (LoadVariationRiskBalancing" in first
    assert "cannot be reached" in second


def test_a_configuration_that_asks_no_server_says_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("evil.yaml").write_text(json.dumps(config()))
    assert run(["--offline", *SIMULATE]) == 0
    assert "asked" not in capsys.readouterr().err


def test_load_is_not_fetched_from_where_a_server_sends_us(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    def other(path: str, headers: dict[str, str]) -> tuple[int, str]:
        seen.append(path)
        return 200, "{}"

    with answering(other) as elsewhere, answering(lambda path, headers: (302, f"{elsewhere}/internal")) as address:
        with_watcher(address)
        assert run(SIMULATE) == 1
    assert "sends us to" in capsys.readouterr().err
    assert not seen


COMMANDS = [
    "compare dump.json -t 1 -q",
    "solve dump.json -t 1 -q -o json",
    "plan dump.json -t 1 -q -o json --partial",
    "frontier dump.json -t 1 -q",
    "simulate dump.json --all",
    "verify solution.json dump.json",
    "drain n1 --from dump.json -t 1 -q --partial",
    "fit dump.json --pod default/new -t 1 -q --partial",
    "replay plan.json dump.json",
    "show plan.json",
    "emit plan.json --to kubectl",
    "emit plan.json --to extender",
    "validate trace.jsonl -q",
    "anonymize dump.json",
    "generate --nodes 3 --pods 5",
    "demo -t 1 -q",
    "rerun bundle.zip",
    "bench --help",
    "serve plan.json --bind 127.0.0.1:99999",
    "explain default/new --from dump.json -t 1 -q",
    "what-if dump.json --remove-nodes n2 -t 1 -q",
    "survive dump.json --nodes -t 1 -q",
]
OF_A_CLUSTER = [
    "snapshot -o live.json -q",
    "apply plan.json --unsteered -q",
    "apply plan.json --unsteered --yes --poll 0.25 -q",
]

SCRIPT = """
import json, sys
connected = []
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        connected.append(event)
sys.addaudithook(watch)
from contextlib import redirect_stdout
import io
from stowplan.cli import run
codes = {}
for command in json.load(sys.stdin):
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(out):
        codes[command] = run(command.split())
    for verb, file in (("solve", "solution.json"), ("plan", "plan.json")):
        if command.startswith(verb):
            out.flush()
            open(file, "wb").write(out.buffer.getvalue())
print(json.dumps([codes, connected]))
"""


CLUSTER = """
import fcntl, os, socket, struct
from pathlib import Path
from tests.support.applying import scene
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # the loopback interface, up and running
    fcntl.ioctl(probe, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))
with scene(Path.cwd()) as shop:
    os.environ["KUBECONFIG"] = str(shop.kubeconfig)
    exec(sys.argv[1])
    shop.check_done()
"""


def test_every_command_is_run() -> None:
    root: Any = typer.main.get_command(app)
    assert {command.split()[0] for command in [*COMMANDS, *OF_A_CLUSTER]} == set(root.commands)


@pytest.fixture(scope="module")
def alone() -> list[str]:
    """What a program is started with to have no interface but its own loopback, which is down."""
    command = ["unshare", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("unshare --net is not allowed here")
    return command


def run_alone(here: Path, command: list[str], commands: list[str]) -> tuple[dict[str, int], list[str], str]:
    """Run commands; return their exit codes, how they reached for a network, and what they said."""
    done = subprocess.run(
        command,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
        cwd=here,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(here)},
    )
    assert done.returncode == 0, done.stderr
    codes, connected = json.loads(done.stdout.splitlines()[-1])
    return codes, connected, done.stderr


def test_every_command_runs_without_a_network(here: Path, alone: list[str]) -> None:
    """Without any interface, and nothing is even tried: neither by a connection nor by a look-up of a name."""
    controlled = {"ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "u-web", "controller": True}]}
    pods = [pod(f"web-{i}", "n1", cpu="1") for i in range(3)]
    for i, one in enumerate(pods):
        one["metadata"] |= {"uid": f"u-{i}", "labels": {"pod-template-hash": "h"}, **controlled}
    Path("dump.json").write_text(json.dumps(listed(node("n1"), node("n2"), *pods, pod("new"))))
    assert run(["simulate", "dump.json", "--record", "trace.jsonl"]) == 0
    assert run(["solve", "dump.json", "-t", "1", "-q", "--deterministic", "--bundle", "bundle.zip"]) == 0
    codes, connected, said = run_alone(here, [*alone, sys.executable, "-c", SCRIPT], COMMANDS)
    failed = {command for command, code in codes.items() if code}
    assert failed == {"serve plan.json --bind 127.0.0.1:99999"}, said
    assert connected == []


@needs_kubectl
def test_commands_of_a_cluster_need_no_network_but_to_its_server(here: Path, alone: list[str]) -> None:
    """The server is on the loopback interface of a network of its own; kubectl asks it, and we ask nobody."""
    started = [*alone, sys.executable, "-c", f"import sys{CLUSTER}", SCRIPT]
    codes, connected, said = run_alone(here, started, OF_A_CLUSTER)
    assert codes == dict.fromkeys(OF_A_CLUSTER, 0), said
    assert connected == []
    assert json.loads((here / "live.json").read_text())["kind"] == "List"
