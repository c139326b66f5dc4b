"""The page from a plan to a changed cluster, command by command, on the cluster of the tests."""

from __future__ import annotations

import io
import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path

import pytest
import yaml

from stowplan.cli import run
from stowplan.documents.plan import read_plan
from stowplan.emitters.pin import GATE
from stowplan.models.plan import Plan
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K36
from tests.support.api_server import ApiServer, Cluster
from tests.support.api_server.errors import Object
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.manifests import budget, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import BY_KIND, JOBS, PODS, POLICIES
from tests.support.descheduler import descheduling
from tests.support.extender import COMMAND, Running, needs_curl
from tests.support.kubectl import needs_kubectl
from tests.support.ports import free_port

PAGE = Path(__file__).parents[2] / "docs" / "carrying-out.md"
SEARCH = ["-t", "0.2", "--deterministic", "-q", "--no-protection-costs"]

ADDRESS = "10.0.0.5:8888"
"""Where the page's server listens."""

BACKGROUND = re.compile(r"^for wave in 1 2 3; do .*-pin.sh .* &$")
WAVES = "1 2 3"
"""How the page names all waves of a plan."""

WITH_SERVER = frozenset({"extender", "kubectl", "descheduler"})
"""Ways in which a server steers: each has something else that evicts."""

OF_SOME_WAYS: tuple[tuple[str, frozenset[str]], ...] = (
    (r"descheduler", frozenset({"descheduler"})),
    (r"kubectl\.sh|--to kubectl", frozenset({"kubectl"})),
    (r"^stowplan apply .*--serve", frozenset({"extender"})),
    (r"10\.0\.0\.5", WITH_SERVER),
    (r"rbac\.yaml", frozenset({"descheduler"})),
    (r"gate\.yaml|--unsteered$|-pin\.sh --yes \$wave", frozenset({"pin"})),
    (r"^stowplan apply plan\.json --yes$", frozenset({"none"})),
)
"""Which commands are of some ways alone, by the first expression that is found in them."""


def commands(way: str) -> list[str]:
    """Return the commands of one way through the page."""
    lines = re.findall(r"^\$ (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) > 15
    ways = [next((ways for text, ways in OF_SOME_WAYS if re.search(text, line)), None) for line in lines]
    assert set(ways) == {None, *(ways for _, ways in OF_SOME_WAYS)}
    return [line for line, ways in zip(lines, ways, strict=True) if ways is None or way in ways]


def carried_out(line: str, ident: str, *more: str) -> None:
    """Run one command in this process, a plan with more options; a script in a shell."""
    line = line.replace("plan-7f3a", ident)
    command, _, file = line.partition(" > ")
    words = command.split()
    if words[0] == "kubectl":
        words.append("--validate=false")  # the server of the tests publishes no OpenAPI
    if words[0] == "for":
        words = ["sh", "-ec", line.replace(WAVES, waves_of_the_plan()).replace("|| break", "|| exit 1")]
    if words[0] != "stowplan":
        done = subprocess.run(words, capture_output=True, text=True, env=os.environ, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return
    if words[1] == "plan":
        words += [*SEARCH, *more]
    if words[1] == "replay":
        words += ["--runs", "2"]
    if words[1] == "apply":
        words += ["--poll", "0.1", "-q"]
    out = io.StringIO()
    with redirect_stdout(out):
        code = run(words[1:])
    assert code == 0, f"{line}: exit code {code}\n{out.getvalue()}"
    if file:
        Path(file).write_text(out.getvalue(), encoding="utf-8")


def waves_of_the_plan() -> str:
    return " ".join(str(wave.number) for wave in read_plan("plan.json").waves)


@contextmanager
def cluster_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """Run a cluster whose first node is crowded; commands find it by their environment."""
    manifests = [
        namespace("kube-system"),
        *(node(name) for name in ("n1", "n2", "n3")),
        *deployment("shop", "web", ["n1", "n1", "n1"]),
        *stateful_set("shop", "db", ["n1", "n2"]),
        budget("shop", "web", "web", maxUnavailable=1),
    ]
    kube_scheduler = ByFramework(default_profile(K36, "first"))
    with ApiServer(Cluster(manifests, scheduler=kube_scheduler)) as server:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path)))
        yield server


def lines_without_server(evicts: str) -> list[str]:
    """Return the commands where nothing steers, with what evicts in the place of ``apply``, without its server."""
    lines = commands("none")
    if evicts == "kubectl":
        script = [line for line in commands("kubectl") if "-kubectl.sh" in line or "--to kubectl" in line]
        at = lines.index("stowplan apply plan.json --yes")
        lines[at : at + 1] = [line.partition(" --serve")[0] for line in script]
    return lines


@needs_kubectl
@pytest.mark.parametrize("evicts", ["apply", "kubectl"])
def test_every_command_of_the_page_works_where_nothing_steers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evicts: str
) -> None:
    monkeypatch.setenv("STOWPLAN_INTERVAL", "0.1")
    with cluster_of_the_page(tmp_path, monkeypatch) as server:
        ident = ""
        for line in lines_without_server(evicts):
            carried_out(line, ident, "--steer", "none")
            if line.endswith("> plan.json"):
                plan = read_plan("plan.json")
                ident = plan.id
                assert plan.moves
        on_first = [p for p in server.store.all(PODS) if p["spec"].get("nodeName") == "n1"]
        assert len(on_first) < 4
        assert read_plan("plan.json").id == ident
        assert (tmp_path / f"{ident}.journal").exists() == (evicts == "apply")


@needs_kubectl
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[] if way == "extender" else [needs_curl]) for way in sorted(WITH_SERVER)]
)
def test_every_command_of_the_page_works_with_a_server_that_steers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv("STOWPLAN_INTERVAL", "0.1")
    monkeypatch.setenv("KUBECTL", str(without_validation(tmp_path)))
    more = ["--executor", "descheduler"] if way == "descheduler" else []
    with cluster_of_the_page(tmp_path, monkeypatch) as server, ExitStack() as served:
        ident, address = "", ""
        before = uids(server)
        codes = served.enter_context(descheduling(server))
        for line in commands(way):
            if line.startswith("stowplan serve"):
                # What is written into the file before names the address at which the server is to listen.
                steering = Running([*COMMAND, *line.replace(ADDRESS, address).split()[1:]])
                served.callback(steering.close)
                continue
            if ADDRESS in line and not address:
                address = f"127.0.0.1:{free_port()}"
            carried_out(line.replace(ADDRESS, address), ident, *more)
            if line.endswith("> plan.json"):
                ident = read_plan("plan.json").id
            if line.endswith("> scheduler.yaml"):
                configured = yaml.safe_load(Path("scheduler.yaml").read_text(encoding="utf-8"))
                profile = make_profiles(configured, K36)["default-scheduler"]
                server.cluster.scheduler = ByFramework(profile, random.Random(0))
        plan = read_plan("plan.json")
        assert came_up_since(server, before) == targets_of(plan) != Counter()
        assert codes == ([201] * len(plan.moves) if way == "descheduler" else [])
        assert not server.store.all(JOBS)


def without_validation(folder: Path) -> Path:
    """Write a kubectl that asks for no OpenAPI, which the server of the tests does not publish."""
    path = folder / "kubectl-of-the-tests"
    path.write_text("""#!/bin/sh\n[ "$1" != apply ] || set -- "$@" --validate=false\nexec kubectl "$@"\n""")
    path.chmod(0o755)
    return path


@needs_kubectl
def test_every_command_of_the_page_works_where_replacements_are_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOWPLAN_INTERVAL", "0.1")
    with cluster_of_the_page(tmp_path, monkeypatch) as server, ExitStack() as pinned:
        ident = ""
        before = uids(server)
        for line in commands("pin"):
            if BACKGROUND.match(line):
                script = line.removesuffix(" &").replace(WAVES, waves_of_the_plan()).replace("plan-7f3a", ident)
                pins = pinned.enter_context(subprocess.Popen(["sh", "-ec", script], stdout=subprocess.PIPE, text=True))
                continue
            carried_out(line, ident)
            if line.endswith("> plan.json"):
                ident = read_plan("plan.json").id
            if line.startswith("kubectl apply"):
                gate_new_pods(server)
        said, _ = pins.communicate(timeout=30)
        plan = read_plan("plan.json")
        assert pins.returncode == 0, said
        assert said.count("pinned shop/") == len(plan.moves) > 0
        assert came_up_since(server, before) == targets_of(plan)
        assert not server.store.all(POLICIES)


def uids(server: ApiServer) -> set[str]:
    return {pod["metadata"]["uid"] for pod in server.store.all(PODS)}


def came_up_since(server: ApiServer, before: set[str]) -> Counter[str]:
    """Return how many pods of the shop that were not there before each node has."""
    new = [pod for pod in server.store.all(PODS, "shop") if pod["metadata"]["uid"] not in before]
    return Counter(pod["spec"]["nodeName"] for pod in new)


def targets_of(plan: Plan) -> Counter[str | None]:
    return Counter(move.target for move in plan.moves)


def gate_new_pods(server: ApiServer) -> None:
    """Do what the API server does by the policy that it was given: pods of the plan's owners get our gate."""
    (policy,) = server.store.all(POLICIES)
    (condition,) = policy["spec"]["matchConditions"]
    for kind in ("ReplicaSet", "StatefulSet"):
        for owner in server.store.all(BY_KIND[kind]):
            meta = owner["metadata"]
            if f"'{meta['uid']}'" in condition["expression"]:
                server.store.update(BY_KIND[kind], meta["namespace"], meta["name"], _gated)


def _gated(owner: Object) -> None:
    owner["spec"]["template"]["spec"]["schedulingGates"] = [{"name": GATE}]
