"""``stowplan serve`` as a process of its own, and what a scheduler asks it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stowplan.models.plan import Plan
from stowplan.plugins_compat.extenders.client import HTTPExtender
from stowplan.plugins_compat.extenders.config import ExtenderConfig
from tests.support.clusters import Manifest

COMMAND = (sys.executable, "-c", "from stowplan.cli import main; main()")


@dataclass
class Running:
    """A server that listens."""

    process: subprocess.Popen[str]
    url: str
    said: list[str]

    def client(self, **more: Any) -> HTTPExtender:
        """Return our framework's own client of it."""
        verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 20, "nodeCacheCapable": True}
        return HTTPExtender(ExtenderConfig.model_validate({"urlPrefix": self.url, **verbs, **more}))

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it, and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=20)


@contextmanager
def serving(plan: Plan, folder: Path, *options: str) -> Iterator[Running]:
    """Serve a plan; its state is in the folder."""
    path = folder / "plan.json"
    path.write_text(plan.model_dump_json(by_alias=True))
    process = subprocess.Popen(
        [*COMMAND, "serve", str(path), "--bind", "127.0.0.1:0", "--state", str(folder / "leases"), *options],
        stderr=subprocess.PIPE,
        text=True,
        cwd=os.getcwd(),
    )
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line.strip())
        if " serving http" in line:
            break
    else:
        raise AssertionError(f"did not start: {said}")
    reader = threading.Thread(target=lambda: said.extend(map(str.strip, process.stderr or ())))
    reader.start()
    try:
        yield Running(process, said[-1].rpartition(" ")[2], said)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join()
        process.stderr.close()


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
