"""``stowplan serve`` among clients that mean harm: what they cannot open, hold, or keep others from."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from aiohttp import web

from stowplan.applying.extender_client import tell_extender, trust
from stowplan.applying.options import Halt
from stowplan.cli import run
from stowplan.emitters.emission import EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.models.plan import Plan
from stowplan.serving import bodies, listener
from stowplan.serving.journal import LeaseJournal
from stowplan.serving.listener import Listener
from stowplan.serving.options import Serving
from stowplan.serving.server import Server
from tests.support.extender import Running, serving, waiting
from tests.support.plans import move, plan

BODY = json.dumps({"Pod": waiting("web-x", "web"), "NodeNames": ["n1", "n2"]}).encode()
MIB = 2**20


def two_waves() -> Plan:
    """Return a plan whose second wave somebody may want to open."""
    return plan([move("shop/web-a", "n1", "n2")], [move("shop/web-b", "n1", "n3")])


def address(server: Running) -> tuple[str, int]:
    """Return host and port of a server."""
    host, _, port = server.url.split("/")[2].partition(":")
    return host, int(port)


def opened(server: Running, **headers: str) -> httpx.Response:
    """Try to open the second wave."""
    return httpx.post(f"{server.url}/waves/2", content=b"{}", headers=headers)


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("headers", "status", "said"),
    [
        ({**JSON, "Origin": "http://evil.example"}, 403, "a page of 'http://evil.example' asks, and pages may not"),
        ({**JSON, "Origin": "null"}, 403, "a page of 'null' asks"),
        ({**JSON, "Host": "evil.example:8888"}, 403, "Host 'evil.example:8888' is no name of this server; --host-name"),
        ({**JSON, "Host": "[evil"}, 403, "Host '[evil' is no name of this server"),
        ({}, 415, "the request is no JSON; send Content-Type: application/json"),
        ({"Content-Type": "text/plain"}, 415, "the request is no JSON"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "the request is no JSON"),
    ],
)
def test_a_page_in_a_browser_opens_no_wave(victim: Running, headers: dict[str, str], status: int, said: str) -> None:
    answer = opened(victim, **headers)
    assert (answer.status_code, answer.text.count("\n")) == (status, 1)
    assert said in answer.text
    assert httpx.get(f"{victim.url}/leases").json()["open"] == 1


def test_a_page_in_a_browser_takes_no_token(victim: Running) -> None:
    headers = {**JSON, "Origin": "http://evil.example"}
    for verb in ("filter", "prioritize"):
        assert httpx.post(f"{victim.url}/{verb}", content=BODY, headers=headers).status_code == 403
    assert httpx.get(f"{victim.url}/leases", headers={"Host": "evil.example"}).status_code == 403
    assert httpx.get(f"{victim.url}/leases").json()["leases"] == []


def test_what_is_no_json_opens_no_wave(victim: Running) -> None:
    answer = httpx.post(f"{victim.url}/waves/2", content=b"wave=2", headers=JSON)
    assert answer.status_code == 400
    assert "the body is not JSON" in answer.text


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve a plan whose second wave must stay closed."""
    with serving(two_waves(), tmp_path_factory.mktemp("victim")) as server:
        yield server


def test_a_wave_is_opened_under_each_of_our_names(tmp_path: Path) -> None:
    with serving(two_waves(), tmp_path, "--host-name", "Stowplan.kube-system.svc") as server:
        for host in ("localhost:8888", "127.0.0.1", "[::1]:8888", "10.0.0.5", "stowplan.kube-system.svc:8888"):
            assert opened(server, **JSON, Host=host).status_code == 200, host


# -- certificates ---------------------------------------------------------------------------------------------


def issue(folder: Path, *names: str, authority: trustme.CA | None = None) -> trustme.CA:
    """Write an authority and a certificate for each name."""
    made = authority or trustme.CA()
    made.cert_pem.write_to_path(folder / "ca.crt")
    for name in names:
        issued = made.issue_cert("localhost", "127.0.0.1", common_name=name)
        file = name.replace(":", "-")
        issued.private_key_pem.write_to_path(folder / f"{file}.key")
        issued.cert_chain_pems[0].write_to_path(folder / f"{file}.crt")
    return made


def shown_by(server: Running, authority: Path) -> bytes:
    """Return the certificate that a server shows."""
    context = ssl.create_default_context(cafile=str(authority))
    with (
        socket.create_connection(address(server), timeout=10) as peer,
        context.wrap_socket(peer, server_hostname="127.0.0.1") as secured,
    ):
        return secured.getpeercert(binary_form=True) or b""


def test_a_right_is_for_those_whose_certificate_names_them(tmp_path: Path) -> None:
    """Of three clients of one authority, one may ask, one may open waves, and one may do nothing."""
    clients = ("system:kube-scheduler", "stowplan-apply", "somebody")
    issue(tmp_path, "server", *clients)
    ca, crt, key = (str(tmp_path / name) for name in ("ca.crt", "server.crt", "server.key"))
    names = ("--tls-client-name", "ask=system:kube-scheduler", "--tls-client-name", "waves=stowplan-apply")
    with serving(two_waves(), tmp_path, "--tls-cert", crt, "--tls-key", key, "--tls-client-ca", ca, *names) as server:
        may: dict[str, list[int]] = {}
        for client in clients:
            file = tmp_path / client.replace(":", "-")
            context = trust(ca, f"{file}.crt", f"{file}.key")
            assert context is not None
            with httpx.Client(verify=context) as http:
                asked = http.post(f"{server.url}/filter", content=BODY, headers=JSON)
                wave = http.post(f"{server.url}/waves/2", json={}, headers={"Host": "any.name"})
                may[client] = [asked.status_code, wave.status_code, http.get(f"{server.url}/leases").status_code]
                if client == "somebody":
                    assert asked.text == "the certificate of localhost, somebody may not ask\n"
                    assert "somebody may not open waves" in wave.text
        assert may == {
            "system:kube-scheduler": [200, 403, 200],
            "stowplan-apply": [403, 200, 200],
            "somebody": [403, 403, 403],
        }
        with pytest.raises(Halt, match=r"does not open wave 2: HTTP 403 the certificate of .* may not open waves"):
            tell_extender(
                server.url, two_waves(), 2, trust(ca, str(tmp_path / "somebody.crt"), str(tmp_path / "somebody.key"))
            )


def test_probes_work_where_clients_need_certificates(tmp_path: Path) -> None:
    issue(tmp_path, "server")
    ca, crt, key = (str(tmp_path / name) for name in ("ca.crt", "server.crt", "server.key"))
    secured = ("--tls-cert", crt, "--tls-key", key, "--tls-client-ca", ca)
    with serving(two_waves(), tmp_path, *secured, "--health-bind", "127.0.0.1:0") as server:
        (line,) = (line for line in server.said if "health and metrics at" in line)
        health = line.rpartition(" ")[2]
        assert httpx.get(f"{health}/healthz").text == "ok\n"
        assert httpx.get(f"{health}/readyz").text == "ok\n"
        assert "stowplan_tokens" in httpx.get(f"{health}/metrics").text
        assert httpx.post(f"{health}/v1/waves/2", json={}).status_code == 404
        context = trust(ca, crt, key)
        assert context is not None
        assert httpx.get(f"{server.url.removesuffix('/v1')}/metrics", verify=context).status_code == 404


def test_renewed_certificates_are_read_and_the_last_good_pair_stays(tmp_path: Path) -> None:
    authority = issue(tmp_path, "server")
    ca, crt, key = (tmp_path / name for name in ("ca.crt", "server.crt", "server.key"))
    with serving(two_waves(), tmp_path, "--tls-cert", str(crt), "--tls-key", str(key)) as server:

        def reread(words: str) -> None:
            server.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 10
            while not any(words in line for line in server.said) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert any(words in line for line in server.said), server.said

        first = shown_by(server, ca)
        issue(tmp_path, "server", authority=authority)
        reread("certificates are read again")
        second = shown_by(server, ca)
        assert second != first
        key.write_text("nothing")
        reread("server.crt: cannot be used: ")
        assert shown_by(server, ca) == second
        base = server.url.removesuffix("/v1")
        context = ssl.create_default_context(cafile=str(ca))
        assert "stowplan_certificates_current 0.0" in httpx.get(f"{base}/metrics", verify=context).text
        crt.unlink()
        reread("server.crt: no such file; the certificates read before stay in use")
        assert shown_by(server, ca) == second
        assert server.end() == 0


def test_certificates_are_looked_at_without_a_signal(tmp_path: Path) -> None:
    authority = issue(tmp_path, "server")
    ca, crt, key = (tmp_path / name for name in ("ca.crt", "server.crt", "server.key"))
    with serving(two_waves(), tmp_path, "--tls-cert", str(crt), "--tls-key", str(key)) as server:
        first = shown_by(server, ca)
        issue(tmp_path, "server", authority=authority)
        deadline = time.monotonic() + 15
        while shown_by(server, ca) == first and time.monotonic() < deadline:
            time.sleep(0.25)
        assert shown_by(server, ca) != first


def test_a_hangup_does_not_end_it(tmp_path: Path) -> None:
    with serving(two_waves(), tmp_path) as server:
        server.process.send_signal(signal.SIGHUP)
        assert httpx.get(f"{server.url.removesuffix('/v1')}/healthz").status_code == 200
        assert server.process.poll() is None


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        (["--bind", ":0"], True),
        (["--bind", "0.0.0.0:0"], True),
        (["--bind", "[::1]:0"], False),
        (["--bind", "localhost:0"], False),
    ],
)
def test_a_server_open_to_everybody_warns(tmp_path: Path, options: list[str], warns: bool) -> None:
    with serving(two_waves(), tmp_path, *options) as server:
        assert any("warning: every client that reaches" in line for line in server.said) is warns


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tls-client-name", "ask=x"], "--tls-client-name: needs --tls-client-ca, whose certificates have names"),
        (["--tls-client-name", "scheduler"], "--tls-client-name: is 'scheduler'; must be ask=NAME or waves=NAME"),
        (
            ["--tls-client-name", "waves=x"],
            "--tls-client-name: says who may open waves, and not who may ask; add ask=NAME",
        ),
        (["--health-bind", "x"], "--health-bind: 'x' is not an address, such as 127.0.0.1:8888"),
        (["--max-bodies", "1Mi"], "--max-bodies: is 1048576; must be at least --max-body"),
    ],
)
def test_options_that_cannot_be_used(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(two_waves().model_dump_json(by_alias=True))
    assert run(["serve", str(path), "--state", str(tmp_path / "leases"), "--bind", "127.0.0.1:0", *options]) == 1
    assert said in capsys.readouterr().err.splitlines()[-1]


# -- connections and memory -----------------------------------------------------------------------------------


def test_clients_that_say_nothing_keep_nobody_out(tmp_path: Path) -> None:
    with serving(two_waves(), tmp_path, "--max-connections", "8") as server, ExitStack() as silent:
        files = Path(f"/proc/{server.process.pid}/fd")
        before = len(list(files.iterdir()))
        peers = [silent.enter_context(socket.create_connection(address(server), timeout=5)) for _ in range(40)]
        for i, peer in enumerate(peers[20:]):
            peer.sendall(b"POST /v1/filter HTTP/1.1\r\nHo"[: i + 1])  # half a header is no request either
        begun = time.monotonic()
        assert httpx.post(f"{server.url}/filter", content=BODY, headers=JSON).status_code == 200
        assert time.monotonic() - begun < 2
        text = httpx.get(f"{server.url.removesuffix('/v1')}/metrics").text
        dropped = float(text.split('stowplan_connections_dropped_total{why="displaced"}')[1].split()[0])
        assert dropped >= 32
        assert len(list(files.iterdir())) <= before + 8


def test_twenty_unfinished_bodies_take_no_memory_from_others(tmp_path: Path) -> None:
    with serving(two_waves(), tmp_path) as server, ExitStack() as stack:
        announced = b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (50 * MIB)
        for _ in range(20):
            peer = stack.enter_context(socket.create_connection(address(server), timeout=5))
            peer.sendall(announced)
            try:
                for _ in range(48):
                    peer.sendall(b" " * MIB)
            except OSError:  # turned away, and not read any more
                continue
        assert httpx.post(f"{server.url}/filter", content=BODY, headers=JSON).status_code == 200
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        assert int(status.split("VmHWM:")[1].split()[0]) < 400 * 1024


@contextmanager
def quickened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let clients have tenths of seconds where they have tens of seconds."""
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.2)
    monkeypatch.setattr(listener, "EXCHANGE_SECONDS", 0.6)
    monkeypatch.setattr(listener, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.3)
    yield


@dataclass
class Scene:
    """A listener in this process, its server, and clients of it."""

    listener: Listener
    server: Server
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect."""
        host, _, port = self.listener.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        self.writers.append(writer)
        return reader, writer

    def dropped(self, why: str) -> float:
        """Return how many connections were closed for a reason."""
        registry = self.server.metrics.registry
        return registry.get_sample_value("stowplan_connections_dropped_total", {"why": why}) or 0.0


def within(tmp_path: Path, scenario: Callable[[Scene], Awaitable[None]], limit: int = 16, **more: Any) -> None:
    """Run a scenario."""

    async def whole() -> None:
        server = Server(two_waves(), LeaseJournal(tmp_path / "leases"), Serving(**more))
        server.restore()
        runner = web.AppRunner(server.app(), shutdown_timeout=0.1)
        await runner.setup()
        scene = Scene(Listener(("127.0.0.1", 0), "--bind", runner, server.metrics, limit), server)
        try:
            await asyncio.wait_for(scenario(scene), 20)
        finally:
            scene.listener.close()
            for writer in scene.writers:
                writer.transport.abort()
            await runner.cleanup()
            server.journal.close()
            await asyncio.sleep(0.05)  # connections that are lost are told so

    asyncio.run(whole())


@pytest.mark.parametrize("sent", [b"", b"POST /v1/filter HTTP/1.1\r\nHost: x\r\n"], ids=["nothing", "half a header"])
def test_silence_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    async def scenario(scene: Scene) -> None:
        reader, writer = await scene.connect()
        writer.write(sent)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        assert scene.dropped("silent") == 1

    with quickened(monkeypatch):
        within(tmp_path, scenario)


def test_a_second_request_that_does_not_arrive_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(scene: Scene) -> None:
        reader, writer = await scene.connect()
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in await reader.readuntil(b"ok\n")
        await asyncio.sleep(0.4)  # longer than a header may take: between requests there is no hurry
        writer.write(b"GET /hea")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        assert scene.dropped("silent") == 1

    with quickened(monkeypatch):
        within(tmp_path, scenario)


def test_a_body_that_trickles_is_answered_with_408(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        reader, writer = await scene.connect()
        writer.write(b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        answer = asyncio.create_task(reader.readuntil(b"in time\n"))
        while not answer.done():
            writer.write(b" ")
            await asyncio.sleep(0.05)
        assert (await answer).startswith(b"HTTP/1.1 408 ")
        assert scene.server.bodies.held == 0

    with quickened(monkeypatch):
        within(tmp_path, scenario)


def test_a_client_that_does_not_take_its_answer_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = json.dumps({"Pod": waiting("new"), "NodeNames": [f"node-{i:0200d}" for i in range(60_000)]}).encode()

    async def scenario(scene: Scene) -> None:
        _, writer = await scene.connect()
        head = b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(question) + question)
        while not scene.dropped("slow"):
            await asyncio.sleep(0.02)
        assert scene.server.bodies.held == 0

    with quickened(monkeypatch):
        monkeypatch.setattr(listener, "EXCHANGE_SECONDS", 2.0)
        monkeypatch.setattr(bodies, "BODY_SECONDS", 10.0)
        within(tmp_path, scenario)


def test_where_all_are_being_answered_a_new_client_is_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(scene: Scene) -> None:
        slow = [await scene.connect() for _ in range(2)]
        for _, writer in slow:
            writer.write(b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        while scene.server.under_way < 2:
            await asyncio.sleep(0.01)
        reader, _ = await scene.connect()
        assert await reader.read(1) == b""
        assert scene.dropped("full") == 1
        for reader, writer in slow:  # those under way stay
            writer.write(b"12345678")
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 400 ")

    within(tmp_path, scenario, limit=2)


def test_bodies_have_room_for_so_much_and_small_ones_always(tmp_path: Path) -> None:
    async def scenario(scene: Scene) -> None:
        large = await scene.connect()
        head = b"POST /v1/filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
        large[1].write(head % (2 * MIB) + b" " * (2 * MIB - 100))
        while scene.server.bodies.held < 3 * MIB // 2:
            await asyncio.sleep(0.01)
        for size, status in ((MIB, b"HTTP/1.1 503 "), (len(BODY), b"HTTP/1.1 200 ")):
            reader, writer = await scene.connect()
            writer.write(head % size + BODY + b" " * (size - len(BODY)))
            assert (await reader.readuntil(b"\r\n")).startswith(status)
        large[1].transport.abort()
        while scene.server.bodies.held:
            await asyncio.sleep(0.01)

    within(tmp_path, scenario, max_body=2 * MIB, max_bodies=2 * MIB)


# -- what is emitted ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://stowplan.kube-system.svc:8888/v1", True),
        ("http://stowplan:8888/v1", True),
        ("http://10.0.0.5:8888/v1", False),
        ("http://[::1]:8888/v1", False),
        ("http://localhost:8888/v1", False),
    ],
)
def test_names_that_a_scheduler_may_not_resolve_are_warned_of(url: str, warned: bool) -> None:
    emission = emit_extender(two_waves(), EmitOptions(url=url))
    assert any("cannot resolve the name of a Service" in note for note in emission.notes) is warned
    assert "httpTimeout: 200ms" in emission.files[0].content
