"""Extenders over real HTTP: what is asked, what the answers change, and what happens when they are wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from stowplan.models.errors import InputError
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import examine, schedule
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K36
from tests.support.clusters import node, pod, snapshot

Answer = Callable[[dict[str, Any]], Any]


class Server:
    """An extender that answers what the test says and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                verb = self.path.rsplit("/", 1)[-1]
                owner.asked.append((verb, question))
                answer = owner.answers[verb](question)
                status, body = (answer, b"") if isinstance(answer, int) else (200, answer)
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/scheduler"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture
def scheduler(server: Server) -> Iterator[Callable[..., Framework]]:
    made: list[Framework] = []

    def make(cluster: Snapshot | None = None, *, binds_for_real: bool = False, **extender: Any) -> Framework:
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [{"urlPrefix": server.url, "httpTimeout": "2s", **extender}],
        }
        profile = replace(make_profiles(config, K36)["default-scheduler"], tie_break="first")
        cluster = cluster or three_nodes()
        state = ClusterState(cluster, K36, Signatures(cluster.pods))
        made.append(Framework(profile, state, binds_for_real=binds_for_real))
        return made[-1]

    yield make
    for framework in made:
        for extender in framework.extenders.all:
            extender.close()


def three_nodes(**spec: Any) -> Snapshot:
    return snapshot(nodes=[node(f"n{i}") for i in range(3)], pods=[pod("a", **spec)])


def test_a_filter_turns_nodes_down_with_reasons(server: Server, scheduler: Callable[..., Framework]) -> None:
    server.answers["filter"] = lambda question: {
        "Nodes": {"items": [item for item in question["Nodes"]["items"] if item["metadata"]["name"] == "n1"]},
        "FailedNodes": {"n0": "too loud"},
        "FailedAndUnresolvableNodes": {"n2": "on fire"},
    }
    framework = scheduler(filterVerb="filter")
    diagnosis = examine(framework, framework.state.snapshot.pods[0]).diagnosis
    assert diagnosis.feasible.tolist() == [1]
    assert [diagnosis.codes[0], diagnosis.codes[2]] == [Code.UNSCHEDULABLE, Code.UNRESOLVABLE]
    assert diagnosis.why(0).reasons == ("too loud",)
    assert diagnosis.summary() == ["1 on fire", "1 too loud"]
    ((verb, question),) = server.asked
    assert verb == "filter"
    assert question["Pod"]["metadata"]["name"] == "a"
    assert question["Nodes"]["items"][0]["status"]["allocatable"]["memory"] == str(8 * 2**30)


def test_an_extender_with_a_node_cache_gets_names_only(server: Server, scheduler: Callable[..., Framework]) -> None:
    server.answers["filter"] = lambda question: {"NodeNames": question["NodeNames"][1:]}
    framework = scheduler(filterVerb="filter", nodeCacheCapable=True)
    assert examine(framework, framework.state.snapshot.pods[0]).diagnosis.feasible.tolist() == [1, 2]


def test_scores_are_weighted_and_stretched(server: Server, scheduler: Callable[..., Framework]) -> None:
    server.answers["prioritize"] = lambda question: [{"Host": "n2", "Score": 7}]
    framework = scheduler(prioritizeVerb="prioritize", weight=3)
    scored = examine(framework, framework.state.snapshot.pods[0])
    assert scored.node == 2
    assert (scored.total - scored.total[0]).tolist() == [0, 0, 7 * 3 * 10]


def test_an_uninteresting_pod_is_not_asked_about(server: Server, scheduler: Callable[..., Framework]) -> None:
    server.answers["filter"] = lambda question: {"nodenames": []}
    managed = {"filterVerb": "filter", "managedResources": [{"name": "example.com/gpu"}], "nodeCacheCapable": True}
    framework = scheduler(**managed)
    assert len(examine(framework, framework.state.snapshot.pods[0]).diagnosis.feasible) == 3
    assert not server.asked
    wants = three_nodes(extended={"example.com/gpu": "1"})
    gpus = [node(f"n{i}", extended={"example.com/gpu": "1"}) for i in range(3)]
    framework = scheduler(replace(wants, nodes=snapshot(nodes=gpus).nodes), **managed)
    assert not len(examine(framework, wants.pods[0]).diagnosis.feasible)


def test_a_resource_of_an_extender_alone_is_not_counted_by_the_filter(
    server: Server, scheduler: Callable[..., Framework]
) -> None:
    server.answers["filter"] = lambda question: {"NodeNames": question["NodeNames"]}
    wants = three_nodes(extended={"example.com/gpu": "1"})
    managed = {"filterVerb": "filter", "nodeCacheCapable": True}
    resource = {"name": "example.com/gpu"}
    framework = scheduler(wants, **managed, managedResources=[resource])
    assert not len(examine(framework, wants.pods[0]).diagnosis.feasible)
    framework = scheduler(wants, **managed, managedResources=[{**resource, "ignoredByScheduler": True}])
    assert len(examine(framework, wants.pods[0]).diagnosis.feasible) == 3


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (500, "HTTP status 500"),
        (b"<html>", "the answer is not JSON"),
        ([1], "the answer is not an object"),
        ({"Error": "out of coffee"}, "out of coffee"),
        ({"nodenames": ["n7"]}, "'n7' was not in the question"),
    ],
)
def test_a_bad_answer_fails_the_pod_unless_the_extender_may_be_ignored(
    answer: Any, said: str, server: Server, scheduler: Callable[..., Framework]
) -> None:
    server.answers["filter"] = lambda question: answer
    framework = scheduler(filterVerb="filter", nodeCacheCapable=True)
    (decision,) = schedule(framework, framework.state.snapshot.pods)
    assert decision.node is None
    assert said in decision.message
    framework = scheduler(filterVerb="filter", nodeCacheCapable=True, ignorable=True)
    (decision,) = schedule(framework, framework.state.snapshot.pods)
    assert decision.node == 0


def crowded() -> Snapshot:
    """Two nodes, each with a less important pod in the way."""
    bound = [pod(f"low-{i}", f"n{i}", cpu="4", priority=i) for i in range(2)]
    for i, manifest in enumerate(bound):
        manifest["metadata"]["uid"] = f"uid-{i}"
    return snapshot(nodes=[node(f"n{i}") for i in range(2)], pods=[*bound, pod("a", cpu="4", priority=10)])


def preempting(framework: Framework) -> tuple[int | None, list[str], str]:
    cluster = framework.state.snapshot
    framework.state.fill(p for p in cluster.pods if p.node_name)
    decision = next(iter(schedule(framework, [p for p in cluster.pods if not p.node_name])))
    return decision.node, [victim.name for victim in decision.victims], decision.message


def test_an_extender_has_a_say_in_preemption(server: Server, scheduler: Callable[..., Framework]) -> None:
    framework = scheduler(crowded())
    assert preempting(framework)[:2] == (0, ["low-0"])  # without one, the less important victim
    server.answers["preempt"] = lambda question: {
        "nodeNameToMetaVictims": {
            "n1": {"Pods": question["NodeNameToVictims"]["n1"]["Pods"][:1] and [{"UID": "uid-1"}]}
        }
    }
    framework = scheduler(crowded(), preemptVerb="preempt")
    assert preempting(framework)[:2] == (1, ["low-1"])
    server.answers["preempt"] = lambda question: {"NodeNameToMetaVictims": question["NodeNameToMetaVictims"]}
    framework = scheduler(crowded(), preemptVerb="preempt", nodeCacheCapable=True)
    assert preempting(framework)[:2] == (0, ["low-0"])
    server.answers["preempt"] = lambda question: {"nodeNameToMetaVictims": {}}
    framework = scheduler(crowded(), preemptVerb="preempt")
    assert preempting(framework)[:2] == (None, [])


def test_a_bad_answer_about_preemption(server: Server, scheduler: Callable[..., Framework]) -> None:
    server.answers["preempt"] = lambda question: {"nodeNameToMetaVictims": {"n0": {"pods": [{"uid": "who"}]}}}
    node_taken, _, message = preempting(scheduler(crowded(), preemptVerb="preempt"))
    assert node_taken is None
    assert "names pod 'who' on node 'n0'" in message
    assert preempting(scheduler(crowded(), preemptVerb="preempt", ignorable=True))[:2] == (0, ["low-0"])


def test_nobody_there(scheduler: Callable[..., Framework]) -> None:
    framework = scheduler(urlPrefix="http://127.0.0.1:9/none", filterVerb="filter")
    (decision,) = schedule(framework, framework.state.snapshot.pods)
    assert "http://127.0.0.1:9/none/filter: " in decision.message
    framework = scheduler(urlPrefix="http://127.0.0.1:9/none", prioritizeVerb="prioritize", weight=1)
    (decision,) = schedule(framework, framework.state.snapshot.pods)
    assert decision.node == 0  # scores that do not come are no scores


def test_the_bind_verb_is_called_only_when_asked_for(server: Server, scheduler: Callable[..., Framework]) -> None:
    server.answers["bind"] = lambda question: {}
    framework = scheduler(bindVerb="bind")
    (decision,) = schedule(framework, framework.state.snapshot.pods)
    assert decision.node == 0
    assert not server.asked
    framework = scheduler(bindVerb="bind", binds_for_real=True)
    (decision,) = schedule(framework, framework.state.snapshot.pods)
    assert decision.node == 0
    assert server.asked == [("bind", {"PodName": "a", "PodNamespace": "default", "PodUID": "", "Node": "n0"})]


def test_a_refused_binding_undoes_the_placement(server: Server, scheduler: Callable[..., Framework]) -> None:
    server.answers["bind"] = lambda question: {"error": "no"}
    framework = scheduler(bindVerb="bind", binds_for_real=True)
    (decision,) = schedule(framework, framework.state.snapshot.pods)
    assert decision.node is None
    assert not framework.state.requested.any()


@pytest.mark.parametrize(
    ("extender", "field", "said"),
    [
        ({}, "extenders[0].urlPrefix", "is missing"),
        ({"urlPrefix": "http://x", "prioritizeVerb": "p"}, "extenders[0]", "must have a positive weight"),
        ({"urlPrefix": "http://x", "httpTimeout": "soon"}, "extenders[0].httpTimeout", "is not a duration"),
        ({"urlPrefix": "http://x", "filter": "f"}, "extenders[0].filter", "is an unknown field"),
    ],
)
def test_a_bad_extender_is_named(extender: dict[str, Any], field: str, said: str) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    }
    with pytest.raises(InputError) as caught:
        make_profiles(config, K36)
    assert caught.value.field == field
    assert said in caught.value.problem
