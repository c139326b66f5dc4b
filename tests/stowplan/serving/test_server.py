"""The extender as schedulers meet it: a process of its own, asked over HTTP by our framework's own client."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import random
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from benchmarks.serving import Load, measure
from stowplan.applying.extender_client import tell_extender, trust
from stowplan.applying.options import Halt
from stowplan.cli import run
from stowplan.emitters.emission import EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.plan import Plan
from stowplan.plugins_compat.extenders.answers import ExtenderError
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import schedule
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K36
from stowplan.serving.journal import LeaseJournal
from stowplan.serving.protocol import BadRequest, read_question
from stowplan.serving.server import Server
from tests.support.clusters import Manifest, node, pod, snapshot
from tests.support.extender import Running, serving, waiting
from tests.support.plans import move, plan

_POD, _NODE = TypeAdapter(Pod), TypeAdapter(Node)
NODES = [_NODE.validate_python(node(f"n{i}")) for i in (1, 2, 3)]


def web_plan(**more: Any) -> Plan:
    """Return a plan that sends two of a workload to n2 and one to n3, and then a named pod to n1."""
    return plan(
        [
            move("shop/web-a", "n1", "n2"),
            move("shop/web-b", "n1", "n2"),
            move("shop/web-c", "n1", "n3"),
        ],
        [move("shop/db-0", "n2", "n1", same_name=True, hash="")],
        **more,
    )


def ask(server: Running, manifest: Manifest, **more: Any) -> tuple[list[str], dict[str, int]]:
    """Ask as the scheduler does: filter, then prioritize what is left."""
    client = server.client(**more)
    asked = _POD.validate_python(manifest)
    passed = client.filter(asked, NODES).passed
    scores = client.prioritize(asked, [n for n in NODES if n.name in passed])
    client.close()
    return list(passed), scores


def best(scores: dict[str, int]) -> str | None:
    """Return the node with the best score, if the scores prefer one."""
    (found,) = [name for name, score in scores.items() if score == 10] or [None]
    return found


# -- answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cached", [True, False], ids=["names", "objects"])
def test_prioritize_prefers_the_node_and_lets_all_pass(tmp_path: Path, cached: bool) -> None:
    with serving(web_plan(), tmp_path) as server:
        for name, target in (("web-x", "n2"), ("web-y", "n2"), ("web-x", "n2"), ("web-z", "n3"), ("web-w", None)):
            passed, scores = ask(server, waiting(name, "web"), nodeCacheCapable=cached)
            assert passed == ["n1", "n2", "n3"]
            assert best(scores) == target
            assert set(scores) == {"n1", "n2", "n3"}
        assert best(ask(server, waiting("new", "other"))[1]) is None
        assert best(ask(server, waiting("db-0", "db"))[1]) == "n1"  # the second wave is open by now


@pytest.mark.parametrize("cached", [True, False], ids=["names", "objects"])
def test_filter_lets_one_node_pass(tmp_path: Path, cached: bool) -> None:
    with serving(web_plan(), tmp_path, "--mode", "filter") as server:
        assert ask(server, waiting("web-x", "web"), nodeCacheCapable=cached) == (["n2"], {"n2": 10})
        assert ask(server, waiting("new"), nodeCacheCapable=cached) == (
            ["n1", "n2", "n3"],
            {"n1": 0, "n2": 0, "n3": 0},
        )
        client = server.client(nodeCacheCapable=cached)
        filtered = client.filter(_POD.validate_python(waiting("web-y", "web")), [NODES[0], NODES[2]])
        client.close()
        assert filtered.passed == ["n3"]  # a token whose node is in sight comes first
        assert filtered.unresolvable == {"n1": "plan plan-7f3a has another node for this pod"}
        assert not filtered.failed


def test_a_replacement_that_has_to_wait_for_its_pod_waits(tmp_path: Path) -> None:
    """Its node is closed while the old pod is there; any other node would be the wrong one."""
    made = plan(
        [move("shop/web-a", "n1", "n2", waits=True), move("shop/api-a", "n1", "n2")],
    )
    with serving(made, tmp_path) as server:
        client = server.client()
        elsewhere = [NODES[0], NODES[2]]
        assert client.filter(_POD.validate_python(waiting("web-x", "web")), elsewhere).passed == []
        assert client.filter(_POD.validate_python(waiting("api-x", "api")), elsewhere).passed == ["n1", "n3"]
        assert client.filter(_POD.validate_python(waiting("web-x", "web")), NODES).passed == ["n2"]
        client.close()


def test_a_pod_that_waits_goes_nowhere_before_its_wave(tmp_path: Path) -> None:
    first, second = move("shop/api-a", "n1", "n2"), move("shop/web-a", None, "n2", uid="pod-web-a")
    with serving(plan([first], [second]), tmp_path) as server:
        client = server.client()
        held = client.filter(_POD.validate_python(waiting("web-a", "web")), NODES)
        assert held.passed == []
        assert {*held.unresolvable.values()} == {"plan plan-7f3a places this pod in wave 2"}
        assert client.filter(_POD.validate_python(waiting("web-b", "web")), NODES).passed == ["n1", "n2", "n3"]
        client.close()


def test_a_pod_that_the_plan_leaves_waiting_does_not_take_the_room_of_others(tmp_path: Path) -> None:
    with serving(plan([move("shop/api-a", "n1", "n2")]), tmp_path) as server:
        client = server.client()
        left = waiting("web-b", "web", creationTimestamp="2020-01-01T00:00:00Z")
        held = client.filter(_POD.validate_python(left), NODES)
        assert held.passed == ["n1", "n3"]
        assert held.unresolvable == {"n2": "plan plan-7f3a has the room of this node for other pods"}
        fresh = waiting("web-c", "web", creationTimestamp="2099-01-01T00:00:00Z")
        assert client.filter(_POD.validate_python(fresh), NODES).passed == ["n1", "n2", "n3"]
        client.close()


@pytest.mark.parametrize("mode", ["prioritize", "filter"])
def test_our_own_scheduler_puts_every_pod_where_the_plan_has_it(tmp_path: Path, mode: str) -> None:
    """Steered by the configuration that is emitted for it, against plugins that would rather have n1."""
    made = web_plan()
    with serving(made, tmp_path, "--mode", mode) as server:
        (file,) = emit_extender(made, EmitOptions(url=server.url)).files
        pods = [{**waiting(f"web-{i}", "web"), "spec": pod("x", cpu="2")["spec"]} for i in range(3)] + [
            pod("stranger", cpu="100m", namespace="shop")
        ]
        for manifest in pods[:3]:
            field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
            prefers = {"weight": 100, "preference": {"matchFields": [field]}}
            affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [prefers]}}
            manifest["spec"] = {**manifest["spec"], "affinity": affinity}
        cluster = snapshot(nodes=[node("n1", "64", "64Gi"), node("n2"), node("n3")], pods=pods)
        profile = make_profiles(yaml.safe_load(file.content), K36)["default-scheduler"]
        framework = Framework(replace(profile, tie_break="first"), ClusterState(cluster, K36, Signatures(cluster.pods)))
        landed = [cluster.nodes[d.node].name for d in schedule(framework, cluster.pods) if d.node is not None]
        for extender in framework.extenders.all:
            extender.close()
        assert landed == ["n2", "n2", "n3", "n1"]


def test_many_at_once_share_no_token(tmp_path: Path) -> None:
    """Forty pods of one owner ask at the same time, each twice, for three tokens."""
    with serving(web_plan(), tmp_path) as server, ThreadPoolExecutor(16) as pool:
        pods = [waiting(f"web-{i // 2}", "web") for i in range(80)]
        targets = list(pool.map(lambda manifest: best(ask(server, manifest)[1]), pods))
        held = {p["metadata"]["name"]: t for p, t in zip(pods, targets, strict=True)}
        assert targets == [held[p["metadata"]["name"]] for p in pods]
        assert sorted(t for t in held.values() if t) == ["n2", "n2", "n3"]


# -- bad requests ---------------------------------------------------------------------------------------------


def question(**content: Any) -> bytes:
    """Return a body."""
    return json.dumps({"Pod": waiting("web-x", "web"), "NodeNames": ["n1", "n2"], **content}).encode()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "is not JSON: Input data was truncated"),
        (b"{", "is not JSON: Input data was truncated"),
        (b"\xff\xfe", "is not JSON"),
        (b'{"x":' + b"[" * 100_000, "is not JSON: maximum recursion depth"),
        (b"[]", "is not a request of a scheduler: Expected `object`, got `array`"),
        (b"{}", "is not a request of a scheduler: it has no Pod"),
        (question(Pod=None), "it has no Pod"),
        (question(Pod={}), "Object missing required field `metadata` - at `$.Pod`"),
        (question(Pod={"metadata": {}}), "the Pod has no name"),
        (question(NodeNames=None), "it has neither NodeNames nor Nodes"),
        (question(NodeNames=[1]), "Expected `str`, got `int` - at `$.NodeNames[0]`"),
        (question(Nodes={"items": [{}]}), "missing required field `metadata`"),
        (question(Pod={"metadata": {"name": "x", "labels": {"a": 1}}}), "Expected `str`, got `int`"),
    ],
)
def test_a_question_that_cannot_be_understood(body: bytes, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_question(body)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


KEYS = ["Pod", "Nodes", "NodeNames", "metadata", "items", "labels", "name", "uid", "ownerReferences"]
JSON = st.recursive(
    st.none() | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
)


@given(body=st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=300, deadline=None)
def test_no_body_is_more_than_a_bad_request(body: bytes) -> None:
    with contextlib.suppress(BadRequest):
        assert read_question(body).asker.name


def mangled(rng: random.Random) -> bytes:
    """Return a good question with some of its bytes changed, cut or doubled."""
    body = bytearray(question(Nodes={"items": [node("n1")]} if rng.random() < 0.3 else None))
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(body) + 1)
        match rng.randrange(4):
            case 0:
                body[at:at] = bytes([rng.randrange(256)])
            case 1:
                del body[at : at + rng.randint(1, 40)]
            case 2:
                body[at:at] = body[at : at + rng.randint(1, 40)]
            case 3:
                body[at:at] = rng.choice([b"{", b"[", b'"', b"\x00", b"\\ud800", b"1e999", b"null", b"\xff"])
        body = body or bytearray(b"x")
    return bytes(body)


def test_mangled_requests_are_answered_and_counted(tmp_path: Path) -> None:
    rng = random.Random(7)
    with serving(web_plan(), tmp_path) as server, httpx.Client(timeout=10) as http:
        codes = [
            http.post(f"{server.url}/{rng.choice(['filter', 'prioritize'])}", content=mangled(rng)) for _ in range(400)
        ]
        assert {answer.status_code for answer in codes} == {200, 400}
        bad = [answer.text for answer in codes if answer.status_code == 400]
        assert all(text.count("\n") == 1 for text in bad)
        counted = metrics(http, server)
        assert sum(v for k, v in counted.items() if k.startswith("stowplan_bad_requests_total")) == len(bad)
        assert best(ask(server, waiting("web-z", "web"))[1]) is not None
        assert not any("Traceback" in line for line in server.said)


def test_broken_http_is_answered_too(tmp_path: Path) -> None:
    rng = random.Random(7)
    with serving(web_plan(), tmp_path) as server:
        host, port = server.url.split("/")[2].split(":")
        good = b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        for _ in range(150):
            data = bytearray(good)
            for _ in range(rng.randint(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            with socket.create_connection((host, int(port)), timeout=10) as peer:
                peer.sendall(bytes(data))
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
        assert best(ask(server, waiting("web-z", "web"))[1]) == "n2"


BREAKING = [
    (
        b"POST /v1/waves/" + b"1" * 5000 + b" HTTP/1.1\r\nHost: [::1]\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\n\r\n",
        "wave",
    ),
    (
        b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: gzip\r\n"
        b"Content-Length: 8\r\n\r\nnonsense",
        "body",
    ),
    (
        b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: deflate\r\n"
        b"Content-Length: 8\r\n\r\nnonsense",
        "body",
    ),
    (b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", "http"),
    (b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\nabc", "http"),
    (b"P@ST /v1/filter HTTP/1.1\r\nHost: x\r\n\r\n", "http"),
    (b"\x16\x03\x01\x02\x00", "http"),
]


@pytest.mark.parametrize(("sent", "reason"), BREAKING, ids=range(len(BREAKING)))
def test_what_breaks_below_the_question_is_a_bad_request(hardy: Running, sent: bytes, reason: str) -> None:
    counted = f'stowplan_bad_requests_total{{reason="{reason}"}}'
    with httpx.Client() as http:
        before = metrics(http, hardy).get(counted, 0)
        answer = raw(hardy, sent)
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
        text = answer.partition(b"\r\n\r\n")[2].decode()
        assert text.count("\n") == 1
        assert len(text) < 300
        assert metrics(http, hardy)[counted] == before + 1
    assert not any("Traceback" in line for line in hardy.said)


@pytest.mark.parametrize("length", [b"Content-Length: 300", b"Transfer-Encoding: chunked"])
def test_a_client_that_leaves_within_its_body_is_no_trouble_of_ours(hardy: Running, length: bytes) -> None:
    counted = 'stowplan_bad_requests_total{reason="body"}'
    with httpx.Client() as http:
        before = metrics(http, hardy).get(counted, 0)
        raw(hardy, b"POST /v1/filter HTTP/1.1\r\nHost: x\r\n" + length + b"\r\n\r\n80\r\n{")
        deadline = time.monotonic() + 5
        while (after := metrics(http, hardy)).get(counted, 0) == before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert after[counted] == before + 1
        assert not [name for name in after if 'code="500"' in name]
    assert not any("Traceback" in line for line in hardy.said)


@pytest.fixture(scope="module")
def hardy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve a plan to clients that behave badly."""
    with serving(web_plan(), tmp_path_factory.mktemp("hardy")) as server:
        yield server


def raw(server: Running, sent: bytes) -> bytes:
    """Send bytes and nothing more; return what comes back."""
    host, port = server.url.split("/")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        peer.sendall(sent)
        if sent.endswith(b"{"):
            return b""
        peer.settimeout(5)
        return b"".join(iter(lambda: peer.recv(65536), b""))


def metrics(http: httpx.Client, server: Running) -> dict[str, float]:
    """Return the metrics by name and labels."""
    text = http.get(server.url.removesuffix("/v1") + "/metrics").text
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_what_is_not_there_and_what_is_too_large(tmp_path: Path) -> None:
    with serving(web_plan(), tmp_path, "--max-body", "10Ki") as server, httpx.Client(timeout=10) as http:
        base = server.url.removesuffix("/v1")
        assert http.get(f"{base}/v1/filter").status_code == 405
        assert http.post(f"{base}/v1/bind", content=b"{}").status_code == 404
        large = http.post(f"{base}/v1/filter", content=b" " * 20_000)
        assert large.status_code == 413
        assert large.text.count("\n") == 1
        assert http.post(f"{base}/v1/waves/9", json={}).status_code == 400
        counted = metrics(http, server)
        for code in (404, 405, 413):
            assert counted[f'stowplan_bad_requests_total{{reason="http-{code}"}}'] == 1
        assert counted['stowplan_bad_requests_total{reason="wave"}'] == 1


# -- state ----------------------------------------------------------------------------------------------------


def everything(server: Running) -> dict[str, Any]:
    """Return who holds what."""
    content: dict[str, Any] = httpx.get(f"{server.url}/leases").json()
    return content


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_forgets_nothing(tmp_path: Path, number: int) -> None:
    with serving(web_plan(), tmp_path) as server:
        for name in ("web-x", "web-y"):
            ask(server, waiting(name, "web"))
        before = everything(server)
        assert server.end(number) == (0 if number == signal.SIGTERM else -number)
    with serving(web_plan(), tmp_path) as server:
        assert everything(server) == before
        assert best(ask(server, waiting("web-y", "web"))[1]) == "n2"
        assert best(ask(server, waiting("web-z", "web"))[1]) == "n3"
        assert "2 handed out" in server.said[0]


def test_killed_under_load_no_answer_was_given_that_is_not_on_the_disk(tmp_path: Path) -> None:
    made = plan([move(f"shop/web-{i}", "n1", f"n{2 + i % 2}") for i in range(60)])
    answers: dict[str, str | None] = {}

    def one(server: Running, name: str) -> None:
        with contextlib.suppress(ExtenderError):  # cut off in the middle: nothing was promised
            answers[name] = best(ask(server, waiting(name, "web"))[1])

    for round_ in range(4):
        with serving(made, tmp_path) as server, ThreadPoolExecutor(8) as pool:
            for name, target in dict(answers).items():
                assert best(ask(server, waiting(name, "web"))[1]) == target
            asked = [pool.submit(one, server, f"web-{round_}-{i}") for i in range(20)]
            asked[5 + 3 * round_].result()
            server.end(signal.SIGKILL)
    assert sorted(set(filter(None, answers.values()))) == ["n2", "n3"]


def test_a_line_that_was_cut_short_is_cut_off(tmp_path: Path) -> None:
    with serving(web_plan(), tmp_path) as server:
        ask(server, waiting("web-x", "web"))
        before = everything(server)
        server.end()
    state = tmp_path / "leases"
    whole = state.read_bytes()
    state.write_bytes(whole + b'{"change":"grant","at":1.0,"uid":"pod-web-y"')
    with serving(web_plan(), tmp_path) as server:
        assert everything(server) == before
    assert state.read_bytes() == whole


def test_a_journal_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(web_plan(), tmp_path) as server:
        ask(server, waiting("web-x", "web"))
        state = tmp_path / "leases"
        start = ["serve", str(tmp_path / "plan.json"), "--bind", "127.0.0.1:0", "--state", str(state)]
        assert run(start) == 1
        assert "leases: is in use by another server" in capsys.readouterr().err
        server.end()
    whole = state.read_bytes()
    (tmp_path / "plan.json").write_text(web_plan(id="other").model_dump_json(by_alias=True))
    assert run(start) == 1
    assert "leases: is of plan plan-7f3a of 2026-11-21T10:00:00Z, not of other" in capsys.readouterr().err
    (tmp_path / "plan.json").write_text(web_plan().model_dump_json(by_alias=True))
    state.write_bytes(whole.replace(b'"grant"', b'"grunt"'))
    assert run(start) == 1
    assert "leases: line 2: is damaged: Invalid enum value 'grunt'" in capsys.readouterr().err
    state.write_bytes(whole + whole.splitlines()[1] + b"\n")
    assert run(start) == 1
    assert "leases: line 3: is damaged: pod 'shop/web-x' has a token already" in capsys.readouterr().err
    for strange in ("hello\n", "hello", web_plan().model_dump_json(), "{}\n", "\n"):
        state.write_text(strange)
        assert run(start) == 1
        assert "leases: contains no leases" in capsys.readouterr().err
        assert state.read_text() == strange


@pytest.mark.parametrize("length", [0, 1, 40, -1])
def test_a_journal_whose_first_line_was_cut_short_is_begun_again(tmp_path: Path, length: int) -> None:
    with serving(web_plan(), tmp_path) as server:
        server.end()
    state = tmp_path / "leases"
    header = state.read_bytes()
    state.write_bytes(header[:length])
    with serving(web_plan(), tmp_path) as server:
        ask(server, waiting("web-x", "web"))
        server.end()
    assert state.read_bytes().startswith(header + b'{"change":"grant"')


def test_without_a_disk_nothing_is_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written is not answered, for nobody who waits, and not later either."""

    async def scenario() -> None:
        server = Server(web_plan(), LeaseJournal(tmp_path / "leases"))
        server.restore()
        async with TestClient(TestServer(server.app())) as client:
            assert (await client.post("/v1/filter", data=question())).status == 200

            def full(lines: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            monkeypatch.setattr(server.journal, "_write", full)
            bodies = [question(Pod=waiting(f"web-{i}", "web")) for i in range(3)]
            answers = await asyncio.gather(*(client.post("/v1/filter", data=body) for body in bodies))
            # The third of them finds no token left, and nothing has to be written for it.
            assert [answer.status for answer in answers] == [500, 500, 200]
            assert await answers[0].text() == "the journal cannot be written: No space left on device\n"
            assert (await client.post("/v1/filter", data=question())).status == 500
            assert (await client.get("/readyz")).status == 503
            assert (await client.get("/healthz")).status == 200
            assert (await client.post("/v1/filter", data=question(Pod=waiting("new")))).status == 200
        server.journal.close()

    asyncio.run(scenario())
    with serving(web_plan(), tmp_path) as server:
        assert [lease["pod"] for lease in everything(server)["leases"]] == ["shop/web-x"]


# -- running it -----------------------------------------------------------------------------------------------


def test_health_and_metrics(tmp_path: Path) -> None:
    with serving(web_plan(), tmp_path) as server, httpx.Client() as http:
        base = server.url.removesuffix("/v1")
        assert http.get(f"{base}/healthz").text == "ok\n"
        assert http.get(f"{base}/readyz").text == "ok\n"
        ask(server, waiting("web-x", "web"))
        ask(server, waiting("new"))
        counted = metrics(http, server)
        assert counted['stowplan_requests_total{code="200",verb="filter"}'] == 2
        assert counted['stowplan_request_seconds_count{verb="prioritize"}'] == 2
        assert counted["stowplan_leases_granted_total"] == 1
        assert counted['stowplan_tokens{state="free",wave="1"}'] == 2
        assert counted['stowplan_tokens{state="leased",wave="1"}'] == 1
        assert counted['stowplan_answers_total{token="none",verb="filter"}'] == 1
        assert counted["stowplan_wave_open"] == 1
        assert http.post(f"{base}/v1/waves/2", json={}).json() == {"open": 2}
        assert metrics(http, server)['stowplan_requests_total{code="200",verb="waves"}'] == 1
        assert metrics(http, server)["stowplan_wave_open"] == 2
        assert counted['stowplan_plan_expires_timestamp_seconds{plan="plan-7f3a"}'] > 4e9


def test_a_wave_of_another_plan_is_not_opened(tmp_path: Path) -> None:
    with serving(web_plan(), tmp_path) as server, httpx.Client() as http:
        at = f"{server.url}/waves/2"
        for named, said in (
            ({"plan": "plan-1"}, "not plan-1 of 2026-11-21T10:00:00Z"),
            ({"plan": "plan-7f3a", "createdAt": "2026-11-20T10:00:00Z"}, "not plan-7f3a of 2026-11-20T10:00:00Z"),
        ):
            answer = http.post(at, params=named, json={})
            assert answer.status_code == 409
            told = f"plan plan-7f3a of 2026-11-21T10:00:00Z is served here, {said}; serve that one\n"
            assert answer.text == told
        assert everything(server)["open"] == 1
        assert http.post(at, params={"plan": "plan-7f3a", "createdAt": "2026-11-21T10:00:00Z"}, json={}).json() == {
            "open": 2
        }


def test_an_expired_plan_is_served_to_nobody(tmp_path: Path) -> None:
    with serving(web_plan(expires_at="2026-11-21T10:00:01Z"), tmp_path) as server, httpx.Client() as http:
        why = "plan plan-7f3a expired at 2026-11-21T10:00:01Z"
        assert f"stowplan: warning: {why}: no pod is steered; make a new one" in server.said
        answer = http.post(f"{server.url}/waves/1", json={})
        assert (answer.status_code, answer.text) == (409, f"{why}; make a new one\n")
        answer = http.get(f"{server.url.removesuffix('/v1')}/readyz")
        assert (answer.status_code, answer.text) == (503, f"{why}\n")


def test_a_request_under_way_is_answered_before_the_end(tmp_path: Path) -> None:
    with serving(web_plan(), tmp_path) as server:
        host, port = server.url.split("/")[2].split(":")
        body = question()
        with socket.create_connection((host, int(port)), timeout=10) as peer:
            peer.sendall(b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body))
            peer.sendall(body[:10])
            ask(server, waiting("web-x", "web"))  # by now the first half has arrived
            server.process.send_signal(signal.SIGTERM)
            peer.sendall(body[10:])
            assert peer.recv(100).startswith(b"HTTP/1.1 200")
        assert server.process.wait(timeout=20) == 0
    assert "stowplan: ending" in server.said


def test_tls(authority: Path) -> None:
    at = {name: str(authority / name) for name in ("ca.crt", "server.crt", "server.key", "client.crt", "client.key")}
    secured = ("--tls-cert", at["server.crt"], "--tls-key", at["server.key"])
    trust = {"caFile": at["ca.crt"]}
    with serving(web_plan(), authority, *secured) as server:
        assert server.url.startswith("https://")
        assert best(ask(server, waiting("web-x", "web"), tlsConfig=trust)[1]) == "n2"
        with pytest.raises(Exception, match="certificate verify failed"):
            ask(server, waiting("web-x", "web"))
    with serving(web_plan(), authority, *secured, "--tls-client-ca", at["ca.crt"]) as server:
        own = {**trust, "certFile": at["client.crt"], "keyFile": at["client.key"]}
        assert best(ask(server, waiting("web-x", "web"), tlsConfig=own)[1]) == "n2"
        with pytest.raises(Exception, match=r"(?i)certificate required|disconnected|reset"):
            ask(server, waiting("web-x", "web"), tlsConfig=trust)


def test_apply_shows_a_certificate(authority: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("ca.crt", "server.crt", "server.key", "client.crt", "client.key")
    ca, server_crt, server_key, crt, key = (str(authority / name) for name in names)
    options = ("--tls-cert", server_crt, "--tls-key", server_key, "--tls-client-ca", ca)
    with serving(web_plan(), authority, *options) as server:
        with pytest.raises(Halt, match=r"does not answer.*(?i:certificate required|disconnected|reset)"):
            tell_extender(server.url, web_plan(), 2, trust(ca, None, None))
        with pytest.raises(Halt, match="certificate verify failed"):
            tell_extender(server.url, web_plan(), 2, trust(None, crt, key))
        tell_extender(server.url, web_plan(), 2, trust(ca, crt, key))
        shown = httpx.get(f"{server.url}/leases", verify=trust(ca, crt, key) or True).json()
        assert shown["open"] == 2
    start = ["apply", str(authority / "plan.json")]
    for more, said in (
        (["--serve-ca", ca], "--serve: is missing; --serve-ca, --serve-cert, and --serve-key need it"),
        (["--serve", server.url, "--serve-key", key], "--serve-cert: is missing; --serve-key is its key"),
        (["--serve", server.url, "--serve-ca", "x"], "x: no such file"),
        (["--serve", server.url, "--serve-ca", ca, "--serve-cert", key], "client.key: cannot be used: "),
        (["--serve", server.url, "--serve-ca", key], "client.key: cannot be used: "),
    ):
        assert run([*start, *more]) == 1, more
        assert said in capsys.readouterr().err


NO_SERVER = ["foo", "foo:1/v1", "ftp://h/v1", "http:///v1", "http://h", "http://h/v2", "http://h/v1/filter"]
NO_SERVER += [
    "http://h:x/v1",
    "http://h:99999/v1",
    "http://[::1/v1",
    "http://h/v1?x",
    "http://u@h/v1",
    "http://h /v1",
    "",
]


@pytest.mark.parametrize("url", NO_SERVER)
def test_an_address_where_no_server_can_be(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(web_plan().model_dump_json(by_alias=True))
    for command, option in ((["emit", "--to", "extender"], "--url"), (["apply"], "--serve")):
        assert run([*command, str(path), option, url]) == 1
        printed = capsys.readouterr()
        told = f"{option}: {url!r} is not a URL of stowplan serve, such as http://127.0.0.1:8888/v1"
        assert told in printed.err
        assert not printed.out


def test_options_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(web_plan().model_dump_json(by_alias=True))
    start = ["serve", str(path), "--state", str(tmp_path / "leases")]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for options, said in (
            (["--bind", "8888"], "--bind: '8888' is not an address, such as 127.0.0.1:8888"),
            (["--bind", f"127.0.0.1:{taken.getsockname()[1]}"], "address already in use"),
            (["--tls-cert", "x"], "--tls-cert: needs both --tls-cert and --tls-key"),
            (["--tls-cert", "x", "--tls-key", "y"], "x: no such file"),
            (["--tls-cert", str(path), "--tls-key", str(path)], "plan.json: cannot be used: "),
            (["--max-body", "many"], "--max-body: is 'many'; must be a quantity"),
            (["--state", str(tmp_path / "no" / "leases")], "leases: cannot be opened: No such file or directory"),
        ):
            assert run([*start, *options]) == 1, options
            message = capsys.readouterr().err.splitlines()[-1]
            assert said in message, message


def test_the_benchmark_finds_no_wrong_answer() -> None:
    observed = asyncio.run(measure(Load(8), seconds=1.5, nodes=20, mode="filter", owners=20))
    assert not observed.wrong
    assert len(observed.seconds) > 100
    assert any(observed.held.values())
