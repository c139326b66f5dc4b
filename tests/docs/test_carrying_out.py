"""The page from a plan to a changed cluster, command by command, on the cluster of the tests."""

from __future__ import annotations

import io
import os
import re
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from stowplan.cli import run
from stowplan.documents.plan import read_plan
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.api_server import ApiServer, Cluster
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.manifests import budget, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import PODS
from tests.support.kubectl import needs_kubectl

PAGE = Path(__file__).parents[2] / "docs" / "carrying-out.md"
SEARCH = ["-t", "0.2", "--deterministic", "-q", "--no-protection-costs"]


def commands() -> list[str]:
    """Return the commands of the page, without those that need a server that steers."""
    lines = re.findall(r"^\$ (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) > 12
    return [line for line in lines if "serve" not in line.split(">")[0].split()[1:] and "--serve" not in line]


def carried_out(line: str, ident: str) -> None:
    """Run one command in this process; a script in a shell."""
    line = line.replace("plan-7f3a", ident)
    command, _, file = line.partition(" > ")
    words = command.split()
    if words[0] != "stowplan":
        done = subprocess.run(words, capture_output=True, text=True, env=os.environ, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return
    if words[1] == "plan":
        words += ["--steer", "none", *SEARCH]
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


@needs_kubectl
def test_every_command_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        ident = ""
        for line in commands():
            carried_out(line, ident)
            if line.endswith("> plan.json"):
                plan = read_plan("plan.json")
                ident = plan.id
                assert plan.moves
        on_first = [p for p in server.store.all(PODS) if p["spec"].get("nodeName") == "n1"]
        assert len(on_first) < 4
        assert read_plan("plan.json").id == ident
        assert (tmp_path / f"{ident}.journal").exists()
