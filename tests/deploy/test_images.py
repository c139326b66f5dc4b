"""The images, run as hardened as the manifests want them; and from a plan every night to a changed cluster."""

from __future__ import annotations

import hashlib
import json
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from stowplan.emitters.emission import EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.instances.demo import demo_path
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K36
from tests.deploy.test_manifests import own_kustomization
from tests.support.api_server import ApiServer, Cluster
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.manifests import budget, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import PODS
from tests.support.container import Container, Image, of_pod, writable
from tests.support.kubectl import needs_kubectl
from tests.support.kustomized import DEPLOY, Manifest, all_rendered, pods, rendered
from tests.support.plans import move, plan
from tests.support.ports import free_port
from tests.support.rights import Right, enforce, granted

KERNELS = """
from stowplan.optimizer.compiled.kernel_cache import folder
kept = folder()
print(kept.writable, kept.complete, kept.kernels > 100)
"""
IMPORTED = """
import importlib.metadata, sys
import stowplan.cli.commands.serve, stowplan.documents.plan, stowplan.serving.run
known = importlib.metadata.packages_distributions()
print(*sorted({d.lower().replace("_", "-") for n in sys.modules for d in known.get(n.partition(".")[0], ())}))
"""


# -- the planner ------------------------------------------------------------------------------------------------------


def test_it_runs_without_privileges_on_a_root_that_cannot_be_written(planner: Image, tmp_path: Path) -> None:
    code = "import os, pathlib; print(os.getuid(), os.getgid()); pathlib.Path('/usr/x').touch()"
    done = Container(planner, ["-c", code], ["python3"]).run(tmp_path)
    assert done.stdout == "65532 65532\n"
    assert "Read-only file system: '/usr/x'" in done.stderr
    read = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('Cap', 'NoNewPrivs'))])"
    done = Container(planner, ["-c", read], ["python3"]).run(tmp_path)
    assert set(yaml.safe_load(done.stdout)[:5]) == {"0" * 16}
    assert yaml.safe_load(done.stdout)[5] == "1"


def test_kernels_are_used_from_the_image(planner: Image, tmp_path: Path) -> None:
    done = Container(planner, ["-c", KERNELS], ["python3"]).run(tmp_path)
    assert done.stdout == "False True True\n", done.stderr


def test_compare_answers(planner: Image, tmp_path: Path) -> None:
    mounts = {"/data": (demo_path().parent, False)}
    arguments = ["compare", f"/data/{demo_path().name}", "-t", "2", "-o", "json"]
    done = Container(planner, arguments, mounts=mounts).run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "Comparison"
    assert "compil" not in done.stderr


# -- the server alone -------------------------------------------------------------------------------------------------


def test_its_packages_are_those_that_serve_imports() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    lines = (DEPLOY / "image" / "serve.txt").read_text().splitlines()
    named = {line for line in lines if not line.startswith("#")}
    assert named <= set(done.stdout.split())
    assert not {"numpy", "numba", "ortools", "highspy", "pulp", "networkx", "pandas"} & set(done.stdout.split())


def answer(url: str, data: Any = None, context: ssl.SSLContext | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(url, None if data is None else json.dumps(data).encode())
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as got:
            return got.status, got.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def await_ready(url: str, process: subprocess.Popen[str], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        try:
            if answer(f"{url}/readyz")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"{url} is not ready after {seconds} s")


def test_serve_steers_and_leaves_its_leases(server: Image, tmp_path: Path) -> None:
    made = plan([move("shop/web-1", "a", "b")])
    (tmp_path / "plan.json").write_text(made.model_dump_json(by_alias=True))
    leases, port = writable(tmp_path / "leases"), free_port()
    arguments = ["/plan.json", f"--bind=127.0.0.1:{port}", "--state=/leases/state"]
    mounts = {"/plan.json": (tmp_path / "plan.json", False), "/leases": (leases, True)}
    (owner,) = {m.owner.uid for m in made.moves if m.owner}
    pod = {
        "metadata": {
            "name": "web-2",
            "namespace": "shop",
            "uid": "new",
            "labels": {"pod-template-hash": made.moves[0].template_hash},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": owner, "controller": True}],
        }
    }
    with Container(server, arguments, mounts=mounts).started(tmp_path) as process:
        await_ready(f"http://127.0.0.1:{port}", process)
        code, said = answer(f"http://127.0.0.1:{port}/v1/prioritize", {"Pod": pod, "NodeNames": ["a", "b"]})
        assert (code, {found["Host"]: found["Score"] for found in json.loads(said)}) == (200, {"a": 0, "b": 10})
    assert process.returncode == 0
    assert '"new"' in (leases / "state").read_text()


def test_the_server_has_nothing_else(server: Image) -> None:
    found = {path.name for folder in ("bin", "usr/bin", "sbin") for path in (server.files / folder).glob("*")}
    assert "python3" in found
    assert not {"sh", "bash", "dash", "kubectl", "apt-get", "perl", "pip"} & found


# -- from the manifests alone -----------------------------------------------------------------------------------------


@pytest.fixture
def certificates(tmp_path: Path) -> dict[str, Path]:
    """Return the Secrets that the manifests ask for, and what kube-scheduler has."""
    authority = trustme.CA()
    names = {"stowplan-serve-tls": "", "stowplan-apply-tls": "stowplan-apply", "scheduler": "system:kube-scheduler"}
    found = {}
    for secret, name in names.items():
        folder = writable(tmp_path / secret)
        made = authority.issue_cert("127.0.0.1", common_name=name or "stowplan-serve")
        made.cert_chain_pems[0].write_to_path(folder / "tls.crt")
        made.private_key_pem.write_to_path(folder / "tls.key")
        authority.cert_pem.write_to_path(folder / "ca.crt")
        found[secret] = folder
    return found


def scheduler_profile(url: str, secret: Path) -> Profile:
    """Return the scheduler's configuration as ``emit`` writes it, with the scheduler's own certificate."""
    (file,) = emit_extender(plan([move("shop/web-1", "a", "b")]), EmitOptions(url=url)).files
    content = yaml.safe_load(file.content)
    files = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
    content["extenders"][0]["tlsConfig"] = {key: str(secret / name) for key, name in files.items()}
    return make_profiles(content, K36, "first")["default-scheduler"]


def shop() -> list[Manifest]:
    """Return a cluster whose first node is crowded."""
    return [
        namespace("kube-system"),
        namespace("shop"),
        *(node(name) for name in ("n1", "n2", "n3")),
        *deployment("shop", "web", ["n1", "n1", "n1"]),
        *stateful_set("shop", "db", ["n1", "n2"]),
        budget("shop", "web", "web", maxUnavailable=1),
    ]


@needs_kubectl
def test_from_the_manifests_alone(planner: Image, server: Image, tmp_path: Path, certificates: dict[str, Path]) -> None:
    """A plan by night, its review, its application: each container as its manifest says, with its account's rights."""
    port, health = free_port(), free_port()
    instead = {
        "https://stowplan-serve.stowplan.svc:8888": f"https://127.0.0.1:{port}",
        "0.0.0.0:8888": f"127.0.0.1:{port}",
        "0.0.0.0:8889": f"127.0.0.1:{health}",
        "--time-limit=600": "--time-limit=2",
    }
    base = all_rendered()
    nightly = dict(pods(base))["stowplan-plan"]
    profile = scheduler_profile(f"https://127.0.0.1:{port}/v1", certificates["scheduler"])
    with ApiServer(Cluster(shop(), scheduler=ByFramework(profile))) as cluster:
        rights: list[Right] = granted(base, "stowplan-plan")
        enforce(cluster, rights)
        (tmp_path / "account").mkdir()
        kubeconfig = cluster.kubeconfig(tmp_path / "account")
        account = {"KUBECONFIG": "/account/kubeconfig"}

        # The night: what the CronJob's containers leave, in the order in which a kubelet runs them.
        volumes = {"plans": writable(tmp_path / "plans")}
        logs = {}
        for name in ("make", "review", "plan", "report", "metrics"):
            one = of_pod(nightly, name, planner, volumes, {"JOB": "first", **account}, instead)
            one.mounts = {**one.mounts, "/account": (kubeconfig.parent, False)}
            done = one.run(tmp_path)
            assert done.returncode == 0, done.stderr
            logs[name] = done.stdout
        digest = hashlib.sha256(logs["plan"].encode()).hexdigest()
        assert f"SHA-256 of the file, for apply --expect-hash: {digest}" in logs["review"]
        assert logs["report"].startswith("<!doctype html>")
        assert 'stowplan_plan_runs_total{outcome="changes"} 1.0' in logs["metrics"]
        assert sorted(p.name for p in (volumes["plans"] / "first").iterdir()) == [
            "cluster.json.gz", "plan.html", "plan.json",
        ]  # fmt: skip
        assert len(json.loads(logs["plan"])["waves"]) >= 1
        assert not cluster.evictions

        # The review: plan and hash beside the page's kustomization.
        site = tmp_path / "site"
        site.mkdir()
        shutil.copytree(DEPLOY, tmp_path / "stowplan" / "deploy")
        (site / "kustomization.yaml").write_text(own_kustomization())
        (site / "plan.json").write_text(logs["plan"])
        (site / "reviewed.env").write_text(f"PLAN_SHA256={digest}\n")
        specs = dict(pods(made := rendered(site)))
        (held,) = (m["data"] for m in made if m["kind"] == "ConfigMap")
        (tmp_path / "held").mkdir()
        (tmp_path / "held" / "plan.json").write_text(held["plan.json"])
        known = {"PLAN_SHA256": held["PLAN_SHA256"]}

        # The application: the server steers, the Job evicts.
        rights[:] = granted(base, "stowplan-apply")
        serving = {"plan": tmp_path / "held", "leases": writable(tmp_path / "leases")}
        serving["tls"] = certificates["stowplan-serve-tls"]
        applying = {"plan": tmp_path / "held", "journal": writable(tmp_path / "journal")}
        applying["tls"] = certificates["stowplan-apply-tls"]
        before = {pod["metadata"]["uid"] for pod in cluster.store.all(PODS)}
        with of_pod(specs["stowplan-serve"], "serve", server, serving, known, instead).started(tmp_path) as process:
            await_ready(f"http://127.0.0.1:{health}", process)
            job = of_pod(specs["stowplan-apply"], "apply", planner, applying, {**known, **account}, instead)
            job.mounts = {**job.mounts, "/account": (kubeconfig.parent, False)}
            done = job.run(tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr
        assert process.returncode == 0
        cluster.cluster.settle()
        moves = [move for wave in json.loads(logs["plan"])["waves"] for move in wave["moves"]]
        fresh = [pod for pod in cluster.store.all(PODS) if pod["metadata"]["uid"] not in before]
        assert sorted(pod["spec"]["nodeName"] for pod in fresh) == sorted(move["target"] for move in moves)
        assert {path.name for path in applying["journal"].iterdir()} == {f"{digest}.journal", "apply.prom"}
        assert [path.name for path in serving["leases"].iterdir()] == [f"{digest}.leases"]
