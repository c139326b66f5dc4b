"""The server: HTTP on one side, the store on the other."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.api_server.cluster import Cluster
from tests.support.api_server.errors import ApiError, Object, forbidden, no_such_page, success
from tests.support.api_server.eviction import evict
from tests.support.api_server.faults import Cut, Faults, Request
from tests.support.api_server.lists import Lists, selected
from tests.support.api_server.patches import patch
from tests.support.api_server.resources import Discovery, Resource


@dataclass(frozen=True, slots=True)
class Eviction:
    """An eviction that was asked for, and the HTTP code of the answer."""

    at: float
    namespace: str
    name: str
    uid: str
    dry_run: bool
    code: int


@dataclass(frozen=True, slots=True)
class _Address:
    """What a path names: a kind, and perhaps a namespace, an object, a subresource."""

    resource: Resource
    namespace: str | None
    name: str | None
    subresource: str | None


class ApiServer:
    """An API server on a free port of the loopback interface. Use it as a context manager.

    Parameters
    ----------
    without
        Plural names of kinds that the server does not know.
    forbids
        Plural names of kinds that the user may not list.
    minor
        The release that it claims to be: 1.``minor``.

    Attributes
    ----------
    evictions
        All evictions that were asked for, dry runs included, in the order of their answers.
    """

    def __init__(
        self, cluster: Cluster, *, without: Iterable[str] = (), forbids: Iterable[str] = (), minor: int = 32
    ) -> None:
        self.cluster, self.store = cluster, cluster.store
        self.discovery = Discovery(without, minor)
        self.forbids = set(forbids)
        self.faults, self.lists = Faults(), Lists()
        self.evictions: list[Eviction] = []
        self.requests: list[Request] = []
        self.over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.api = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def kubeconfig(self, folder: Path, contexts: tuple[str, ...] = ("test",)) -> Path:
        """Write a kubeconfig with some contexts, of which the first is current."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": self.address}}],
            "users": [{"name": "tester", "user": {"token": "t"}}],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": "tester"}} for name in contexts],
            "current-context": contexts[0],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(content))
        return path

    def __enter__(self) -> ApiServer:
        self.cluster.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.cluster.__exit__()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # a client was killed
            super().handle()

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_PUT(self) -> None:
        self._handle("PUT")

    def do_PATCH(self) -> None:
        self._handle("PATCH")

    def do_DELETE(self) -> None:
        self._handle("DELETE")

    def log_message(self, *args: object) -> None:
        pass

    @property
    def api(self) -> ApiServer:
        api: ApiServer = self.server.api  # type: ignore[attr-defined]
        return api

    def _handle(self, method: str) -> None:
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        body = self._body()
        address = address_of(self.api.discovery, url.path)
        request = Request(_wish(method, address, query), url.path, _parsed(body))
        self.api.requests.append(request)
        answer = success()
        try:
            try:
                self.api.faults.strike(request, after=False)
                if request.wish == "watch" and address is not None:
                    self._watch(address, query)
                    return
                answer = self._answer(request, method, address, query, body)
                self.api.faults.strike(request, after=True)
            except ApiError as error:
                answer = error.body()
            self._send(answer)
        except Cut as end:
            self._send(answer, end.share)
        except ConnectionError:
            self.close_connection = True

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _answer(
        self, request: Request, method: str, address: _Address | None, query: dict[str, str], body: bytes
    ) -> Object:
        api = self.api
        if address is None:
            return self._page(request)
        resource, namespace, name = address.resource, address.namespace, address.name
        if name is None and method == "GET":
            if resource.plural in api.forbids:
                raise forbidden("list", resource.plural, resource.group)
            return api.lists.answer(api.faults.stale or api.store, resource, namespace, query)
        if name is None and method == "POST":
            return api.store.create(resource, {**_parsed(body), "metadata": _in(namespace, _parsed(body))})
        if name is None:
            raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        where = namespace or ""
        if address.subresource == "eviction" and method == "POST":
            return self._evict(where, name, _parsed(body), query)
        if address.subresource not in (None, "status", "scale"):
            raise no_such_page()
        match method:
            case "GET":
                return (api.faults.stale or api.store).get(resource, where, name)
            case "DELETE":
                options = _parsed(body) or {}
                seconds = query.get("gracePeriodSeconds")
                api.store.delete(
                    resource, where, name, {**({"gracePeriodSeconds": int(seconds)} if seconds else {}), **options}
                )
                return success()
            case "PATCH":
                kind = self.headers.get("Content-Type", "")
                return api.store.update(resource, where, name, lambda found: _replace(found, patch(found, body, kind)))
            case "PUT":
                return api.store.update(resource, where, name, lambda found: _replace(found, _parsed(body)))
        raise no_such_page()

    def _page(self, request: Request) -> Object:
        document = self.api.discovery.document(request.path)
        if document is not None:
            return document
        if request.path.endswith("/selfsubjectaccessreviews"):
            return {**(request.body or {}), "status": {"allowed": True}}
        raise no_such_page()

    def _evict(self, namespace: str, name: str, body: Object, query: dict[str, str]) -> Object:
        options = body.get("deleteOptions") or {}
        dry_run = [query["dryRun"]] if "dryRun" in query else []
        uid = (options.get("preconditions") or {}).get("uid", "")
        with self.api.store.changed:
            code = 201
            try:
                return evict(self.api.store, namespace, name, body, dry_run)
            except ApiError as error:
                code = error.code
                raise
            finally:
                dry = bool(dry_run or options.get("dryRun"))
                self.api.evictions.append(Eviction(time.monotonic(), namespace, name, uid, dry, code))

    def _send(self, answer: Object, share: float = 1.0) -> None:
        """Send an answer, or a share of it and then the end of the connection."""
        data = json.dumps(answer).encode()
        failed = answer.get("kind") == "Status" and answer.get("status") == "Failure"
        if share > 0:
            self.send_response(answer["code"] if failed else (201 if self.command == "POST" else 200))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if failed and (seconds := answer.get("details", {}).get("retryAfterSeconds")):
                self.send_header("Retry-After", str(seconds))
            self.end_headers()
            self.wfile.write(data[: int(len(data) * share)])
        if share < 1:
            self.wfile.flush()
            self.close_connection = True

    def _watch(self, address: _Address, query: dict[str, str]) -> None:
        """Stream what happens from a revision on, until the client has enough."""
        store = self.api.store
        start = int(query.get("resourceVersion") or 0)
        deadline = time.monotonic() + float(query.get("timeoutSeconds") or 600)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen = 0
        while time.monotonic() < deadline and not self.api.over.is_set():
            with store.changed:
                if len(store.events) == seen:
                    store.changed.wait(0.1)
                fresh = store.events[seen:]
                seen += len(fresh)
            for revision, kind, name, found in fresh:
                meta = found["metadata"]
                there = address.namespace in (None, meta.get("namespace")) and address.name in (None, meta["name"])
                if revision > start and name == address.resource.name and there and selected(found, query):
                    line = json.dumps({"type": kind, "object": found}).encode() + b"\n"
                    self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def address_of(discovery: Discovery, path: str) -> _Address | None:
    """Return what a path names, or ``None`` if it is none of a kind that is served."""
    parts = path.strip("/").split("/")
    if parts[:2] == ["api", "v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = None
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    if not rest or (resource := discovery.find(group, version, rest[0])) is None:
        return None
    return _Address(resource, namespace, rest[1] if len(rest) > 1 else None, rest[2] if len(rest) > 2 else None)


def _wish(method: str, address: _Address | None, query: dict[str, str]) -> str:
    if address is None:
        return "discover"
    if method == "GET" and query.get("watch") in {"true", "1"}:
        return "watch"
    if address.subresource == "eviction":
        return "evict"
    if method == "GET":
        return "get" if address.name else "list"
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else {}
    except ValueError:
        return {}


def _in(namespace: str | None, manifest: Object) -> Object:
    return {**manifest.get("metadata", {}), **({"namespace": namespace} if namespace else {})}


def _replace(found: Object, new: Object) -> None:
    """Take over a new content; what the server keeps stays.

    A version that is not the current one is a conflict, and nobody changes the affinity of a pod that has its node.
    """
    version = new.get("metadata", {}).get("resourceVersion")
    if version and version != found["metadata"].get("resourceVersion"):
        raise ApiError(409, "Conflict", "the object has been modified; please apply your changes to the latest version")
    if found.get("spec", {}).get("nodeName") and new["spec"].get("affinity") != found["spec"].get("affinity"):
        raise ApiError(422, "Invalid", "spec: Forbidden: pod updates may not change fields other than a few")
    kept = {key: found["metadata"][key] for key in ("uid", "name", "creationTimestamp") if key in found["metadata"]}
    found.clear()
    found.update(new)
    found["metadata"].update(kept)
