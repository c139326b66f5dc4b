"""``stowplan serve`` as a process of its own, and what a scheduler asks it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from stowplan.models.plan import Plan
from stowplan.plugins_compat.extenders.client import HTTPExtender
from stowplan.plugins_compat.extenders.config import ExtenderConfig
from tests.support.clusters import Manifest

COMMAND = (sys.executable, "-c", "from stowplan.cli import main; main()")

needs_curl = pytest.mark.skipif(
    shutil.which("curl") is None, reason="curl is not installed, with which scripts of shell ask the server"
)


@dataclass
class Running:
    """A server that listens.

    Parameters
    ----------
    words
        Its command line.
    """

    words: Sequence[str]
    process: subprocess.Popen[str] = field(init=False)
    url: str = field(init=False)
    said: list[str] = field(default_factory=list)
    _readers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._start()

    def client(self, **more: Any) -> HTTPExtender:
        """Return our framework's own client of it."""
        verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 20, "nodeCacheCapable": True}
        return HTTPExtender(ExtenderConfig.model_validate({"urlPrefix": self.url, **verbs, **more}))

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it, and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def fall(self) -> None:
        """Kill it, and start it again at its address, with the state that it left."""
        self.close()
        self._start("--bind", urlsplit(self.url).netloc)

    def close(self) -> None:
        """Kill it if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join()
        if self.process.stderr is not None:
            self.process.stderr.close()

    def _start(self, *more: str) -> None:
        command = [*self.words, *more]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=os.getcwd())
        stderr = self.process.stderr
        assert stderr is not None
        said: list[str] = []
        for line in stderr:
            said.append(line.strip())
            if " serving http" in line:
                break
        else:
            raise AssertionError(f"did not start: {said}")
        self.url = said[-1].rpartition(" ")[2]
        self.said += said
        reader = threading.Thread(target=lambda: self.said.extend(map(str.strip, stderr)))
        reader.start()
        self._readers = [reader]


@contextmanager
def serving(plan: Plan, folder: Path, *options: str) -> Iterator[Running]:
    """Serve a plan; its state is in the folder."""
    path = folder / "plan.json"
    path.write_text(plan.model_dump_json(by_alias=True))
    words = [*COMMAND, "serve", str(path), "--bind", "127.0.0.1:0", "--state", str(folder / "leases")]
    running = Running([*words, *options])
    try:
        yield running
    finally:
        running.close()


def waiting(name: str, owner: str = "", hashed: str = "h1", namespace: str = "shop", **meta: Any) -> Manifest:
    """Return a pod as the scheduler sends it."""
    owners: Sequence[Manifest] = ()
    if owner:
        owners = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}
        ]
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"pod-{name}",
            "labels": {"pod-template-hash": hashed},
            "ownerReferences": [*owners],
            **meta,
        },
        "spec": {"containers": [{"name": "main"}]},
    }
