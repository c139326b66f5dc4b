"""The API server that `apply` is tested against is itself tested: by the real kubectl, and by what upstream does."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.api_server import ApiServer, Cluster, Pace, cut, first_fit, hang, refuse
from tests.support.api_server.errors import ApiError, expired, too_many_requests
from tests.support.api_server.eviction import evict
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.manifests import (
    bare_pod,
    budget,
    daemon_set,
    deployment,
    namespace,
    node,
    stateful_set,
    uid,
)
from tests.support.api_server.resources import BUDGETS, NODES, PODS, REPLICA_SETS
from tests.support.api_server.workloads import roll_out
from tests.support.kubectl import Client, needs_kubectl

WEB = "web-5d5b-aaaab"


def manifests() -> list[dict[str, Any]]:
    """Return three nodes with a Deployment, a StatefulSet and a DaemonSet."""
    nodes = ["n1", "n2", "n3"]
    return [
        namespace("shop"),
        *(node(name) for name in nodes),
        *deployment("shop", "web", ["n1", "n1"]),
        *stateful_set("shop", "db", ["n1", "n2"]),
        *daemon_set("shop", "log", nodes),
        budget("shop", "web", "web", maxUnavailable=1),
    ]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(Cluster(manifests(), scheduler=first_fit, pace=Pace(grace=0.4))) as server:
        yield server


@pytest.fixture
def kubectl(server: ApiServer, tmp_path: Path) -> Client:
    return Client(server, tmp_path)


def path(pod: str) -> str:
    return f"/api/v1/namespaces/shop/pods/{pod}/eviction"


def eviction(pod: str, pod_uid: str | None = None, **options: Any) -> dict[str, Any]:
    preconditions = {"preconditions": {"uid": pod_uid}} if pod_uid else {}
    meta = {"name": pod, "namespace": "shop"}
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": meta,
        "deleteOptions": {**preconditions, **options},
    }


def names(server: ApiServer) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in server.store.all(PODS)}


@needs_kubectl
class TestKubectl:
    def test_reads(self, kubectl: Client) -> None:
        assert json.loads(kubectl.run("version", "-o", "json").stdout)["serverVersion"]["minor"] == "32"
        assert (
            "poddisruptionbudgets.policy" in kubectl.run("api-resources", "-o", "name", "--verbs=list").stdout.split()
        )
        listed = json.loads(kubectl.run("get", "nodes,pods", "-A", "-o", "json", "--chunk-size=2").stdout)
        assert [item["kind"] for item in listed["items"]] == ["Node"] * 3 + ["Pod"] * 7
        chosen = kubectl.run(
            "get",
            "pods",
            "-n",
            "shop",
            "-o",
            "name",
            "-l",
            "app in (web,db),!x",
            "--field-selector",
            "spec.nodeName=n1",
        )
        assert chosen.stdout.split() == ["pod/db-0", "pod/web-5d5b-aaaab", "pod/web-5d5b-aaaac"]

    def test_changes(self, kubectl: Client) -> None:
        assert "labeled" in kubectl.run("label", "pod", "-n", "shop", "db-0", "plan=x").stdout
        assert "patched" in kubectl.run("patch", "node", "n2", "-p", '{"metadata":{"labels":{"a":"b"}}}').stdout
        kubectl.run(
            "patch", "node", "n2", "--type=json", "-p", '[{"op":"replace","path":"/metadata/labels/a","value":"c"}]'
        )
        assert kubectl.run("get", "nodes", "-l", "a=c", "-o", "name").stdout == "node/n2\n"
        assert "cordoned" in kubectl.run("cordon", "n3").stdout
        assert kubectl.server.store.find(NODES, "", "n3")["spec"]["unschedulable"] is True
        assert "deleted" in kubectl.run("delete", "pod", "db-1", "-n", "shop", "--timeout=5s").stdout

    def test_drains_a_node_within_its_budget(self, kubectl: Client) -> None:
        done = kubectl.run("drain", "n1", "--ignore-daemonsets", "--timeout=20s")
        assert done.returncode == 0, done.stderr
        kubectl.server.cluster.settle()
        assert sorted(set(names(kubectl.server).values())) == ["n1", "n2", "n3"]
        assert [name for name, where in names(kubectl.server).items() if where == "n1"] == ["log-aaaab"]
        codes = [asked.code for asked in kubectl.server.evictions]
        assert codes.count(201) == 3
        assert set(codes) <= {201, 429}

    def test_waits_by_watching(self, kubectl: Client) -> None:
        kubectl.run("delete", "pod", WEB, "-n", "shop", "--wait=false")
        done = kubectl.run("wait", "--for=delete", f"pod/{WEB}", "-n", "shop", "--timeout=5s")
        assert done.returncode == 0, done.stderr
        done = kubectl.run("wait", "--for=condition=Ready", "pod", "--all", "-n", "shop", "--timeout=5s")
        assert done.returncode == 0, done.stderr

    def test_sees_refusals(self, kubectl: Client) -> None:
        def create(pod: str, body: dict[str, Any]) -> str:
            return kubectl.run("create", "--raw", path(pod), "-f", "-", text=json.dumps(body)).stderr

        assert "Error from server (NotFound): pods" in create("gone", eviction("gone"))
        assert "Error from server (Conflict): Operation cannot be fulfilled" in create(
            "db-0", eviction("db-0", "other")
        )
        kubectl.server.faults.on("evict", refuse(too_many_requests("later", 7)))
        assert "Error from server (TooManyRequests): later" in create("db-0", eviction("db-0"))
        kubectl.server.faults.on("evict", cut())
        assert "EOF" in create("db-0", eviction("db-0"))
        kubectl.server.faults.on("evict", cut(0.5), after=True)
        assert "EOF" in create("db-0", eviction("db-0"))
        assert kubectl.server.evictions[-1].code == 201

    def test_sees_a_hanging_server_and_a_list_that_expired(self, kubectl: Client) -> None:
        kubectl.server.faults.on("list", hang(2))
        assert "exceeded" in kubectl.run("get", "pods", "-A", "--request-timeout=0.3s").stderr
        lists = kubectl.server.lists

        def expire(request: object) -> None:
            raise expired(lists.expire(kubectl.server.store, PODS))

        kubectl.server.faults.on("list", expire, skip=1)
        done = kubectl.run("get", "pods", "-A", "-o", "name", "--chunk-size=1")
        assert "Error from server (Expired)" in done.stderr
        assert done.stdout == "pod/db-0\n"


class TestEviction:
    """Each step of the eviction subresource."""

    def test_a_budget_is_drawn_on_once_and_its_status_says_who(self, server: ApiServer) -> None:
        evict(server.store, "shop", WEB, eviction(WEB), [])
        status = server.store.get(BUDGETS, "shop", "web")["status"]
        assert status["disruptionsAllowed"] == 0
        with pytest.raises(ApiError, match="violate the pod's disruption budget") as refused:
            evict(server.store, "shop", "web-5d5b-aaaac", eviction("web-5d5b-aaaac"), [])
        assert refused.value.code == 429
        assert refused.value.retry_after == 0
        assert refused.value.causes[0]["reason"] == "DisruptionBudget"
        assert "needs 1 healthy pods" in refused.value.causes[0]["message"]

    def test_a_dry_run_reserves_nothing(self, server: ApiServer) -> None:
        for pod in (WEB, "web-5d5b-aaaac"):
            evict(server.store, "shop", pod, eviction(pod), ["All"])
        assert not any(pod["metadata"].get("deletionTimestamp") for pod in server.store.all(PODS))
        with pytest.raises(ApiError, match="Non-matching dry-run"):
            evict(server.store, "shop", WEB, eviction(WEB, dryRun=["All"]), ["Some"])

    def test_two_budgets_are_an_error_of_the_server(self, server: ApiServer) -> None:
        server.store.load([budget("shop", "web2", "web", maxUnavailable=2)])
        with pytest.raises(ApiError, match="more than one PodDisruptionBudget") as refused:
            evict(server.store, "shop", WEB, eviction(WEB), [])
        assert (refused.value.code, refused.value.reason) == (500, "")

    def test_another_uid_is_a_conflict_and_costs_the_budget(self, server: ApiServer) -> None:
        with pytest.raises(ApiError, match="Precondition failed: UID") as refused:
            evict(server.store, "shop", WEB, eviction(WEB, "other"), [])
        assert refused.value.code == 409
        assert WEB in server.store.get(BUDGETS, "shop", "web")["status"]["disruptedPods"]

    def test_a_stale_budget_says_later(self) -> None:
        store = Cluster(manifests()).store
        store.update(BUDGETS, "shop", "web", lambda found: found["spec"].update(maxUnavailable=2))
        with pytest.raises(ApiError) as refused:
            evict(store, "shop", WEB, eviction(WEB), [])
        assert (refused.value.code, refused.value.retry_after) == (429, 10)

    def test_a_terminating_or_pending_pod_costs_nothing(self) -> None:
        store = Cluster([*manifests(), bare_pod("shop", "waits", None, labels={"app": "web"})]).store
        evict(store, "shop", "waits", eviction("waits"), [])
        assert store.find(PODS, "shop", "waits") is None
        evict(store, "shop", WEB, eviction(WEB), [])
        before = store.get(BUDGETS, "shop", "web")
        evict(store, "shop", WEB, eviction(WEB, uid("Pod", "shop", WEB)), [])
        assert store.get(BUDGETS, "shop", "web") == before

    @pytest.mark.parametrize(
        ("policy", "least", "passes"), [(None, 1, True), (None, 2, False), ("AlwaysAllow", 2, True)]
    )
    def test_an_unhealthy_pod(self, policy: str | None, least: int, passes: bool) -> None:
        more = {"unhealthyPodEvictionPolicy": policy} if policy else {}
        objects = [m for m in manifests() if m["kind"] != "PodDisruptionBudget"]
        sick = next(m for m in objects if m["metadata"]["name"] == WEB)
        sick["status"]["conditions"] = []
        store = Cluster([*objects, budget("shop", "web", "web", minAvailable=least, **more)]).store
        if not passes:
            with pytest.raises(ApiError, match="disruption budget"):
                evict(store, "shop", WEB, eviction(WEB), [])
            return
        evict(store, "shop", WEB, eviction(WEB), [])
        assert store.get(BUDGETS, "shop", "web")["status"]["disruptedPods"] == {}


@pytest.mark.parametrize(
    ("spec", "replicas", "desired", "allowed"),
    [
        ({"minAvailable": "50%"}, 7, 4, 3),
        ({"maxUnavailable": "30%"}, 7, 4, 3),
        ({"minAvailable": 2}, 3, 2, 1),
        ({"maxUnavailable": 0}, 3, 3, 0),
    ],
)
def test_what_a_budget_allows(spec: dict[str, Any], replicas: int, desired: int, allowed: int) -> None:
    objects = [
        node("n1", cpu="16"),
        *deployment("shop", "web", ["n1"] * replicas),
        budget("shop", "web", "web", **spec),
    ]
    status = Cluster(objects).store.get(BUDGETS, "shop", "web")["status"]
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (desired, allowed)


class TestLife:
    """Controllers make pods again as the real ones do."""

    def test_a_replica_set_replaces_at_once_and_a_stateful_set_when_the_name_is_free(self, server: ApiServer) -> None:
        evict(server.store, "shop", WEB, eviction(WEB), [])
        evict(server.store, "shop", "db-0", eviction("db-0"), [])
        server.cluster.settle()
        history = [(kind, found["metadata"]["name"]) for _, kind, name, found in server.store.events if name == "pods"]
        new = next(n for k, n in reversed(history) if k == "ADDED" and n.startswith("web-"))
        assert history.index(("ADDED", new)) < history.index(("DELETED", WEB))
        assert [k for k, n in history if n == "db-0" and k != "MODIFIED"] == ["ADDED", "DELETED", "ADDED"]
        status = server.store.get(BUDGETS, "shop", "web")["status"]
        assert (status["disruptionsAllowed"], status["disruptedPods"]) == (1, {})

    def test_a_rollout_replaces_the_replica_set(self, server: ApiServer) -> None:
        roll_out(server.store, "shop", "web", "7f7f")
        server.cluster.settle()
        assert sorted(rs["metadata"]["name"] for rs in server.store.all(REPLICA_SETS)) == ["web-5d5b", "web-7f7f"]
        assert sum(name.startswith("web-7f7f-") for name in names(server)) == 2
        assert not any(name.startswith("web-5d5b-") for name in names(server))


def test_a_pod_of_high_priority_preempts_on_any_of_the_nodes_that_are_equally_good() -> None:
    """Two nodes are full of one pod each, and alike: chance decides, as where filters run in parallel."""
    nodes = {preempted(seed) for seed in range(8)}
    assert nodes == {"n1", "n2"}


def preempted(seed: int) -> str:
    """Return the node on which a pod of high priority preempts the only other pod."""
    urgent = bare_pod("shop", "urgent", None, cpu="4")
    urgent["spec"]["priority"] = 1000
    low = [bare_pod("shop", f"low-{name}", name, cpu="4") for name in ("n1", "n2")]
    objects = [namespace("shop"), node("n1", cpu="4"), node("n2", cpu="4"), *low, urgent]
    scheduler = ByFramework(default_profile(K36), random.Random(seed), preempts=True)
    cluster = Cluster(objects, scheduler=scheduler, pace=Pace(grace=0.1))
    with ApiServer(cluster):
        cluster.settle()
        left = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.store.all(PODS)}
    node_of = left.pop("urgent")
    assert left == {f"low-{n}": n for n in ("n1", "n2") if n != node_of}
    return node_of
