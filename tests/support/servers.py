"""Servers for tests: one that answers what it is told to, and a real Prometheus with a made-up past."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.ports import free_port

Answer = tuple[int, str]


@contextmanager
def answering(answer: Callable[[str, dict[str, str]], Answer]) -> Iterator[str]:
    """Serve ``answer(path, headers)`` on a free port; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(self.path, dict(self.headers))
            data = body.encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", body)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def missing_prometheus() -> str | None:
    """Say which program a real Prometheus needs and is not installed, or ``None``."""
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            return f"{program} is not installed; on Debian: apt-get install prometheus"
    return None


@contextmanager
def prometheus(folder: Path, past: str) -> Iterator[str]:
    """Run a Prometheus server whose history is ``past``, in OpenMetrics form; yield its address."""
    (folder / "past.om").write_text(past)
    (folder / "prometheus.yml").write_text("global: {}\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "past.om", "data"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    port = free_port()
    options = [
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(["prometheus", *options], cwd=folder, stdout=log, stderr=log)
        try:
            _await_ready(f"http://127.0.0.1:{port}/-/ready", process, folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def _await_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with opener.open(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"Prometheus did not come up:\n{log.read_text()[-2000:]}")
