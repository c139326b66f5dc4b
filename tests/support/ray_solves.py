"""The command line solving in a Ray cluster, killed and begun again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stowplan.optimizer.distributed.cluster import leave
from tests.support.ray_clusters import NodesOnOneMachine

STOWPLAN = Path(sys.executable).parent / "stowplan"


class Solve:
    """``solve --backend ray:ADDRESS --checkpoint FILE`` of a generated cluster.

    Parameters
    ----------
    folder
        Where the cluster, the checkpoint and the answers lie.
    """

    def __init__(self, folder: Path, cluster: NodesOnOneMachine, nodes: int = 60, pods: int = 600) -> None:
        self.dump, self.checkpoint, self.answer = (
            folder / name for name in ("cluster.json", "checkpoint.json", "answer.json")
        )
        made = subprocess.run(
            [STOWPLAN, "generate", "--nodes", str(nodes), "--pods", str(pods)], capture_output=True, check=True
        )
        self.dump.write_bytes(made.stdout)
        self.cluster = cluster
        leave()  # the command needs the processors that workers of this process hold

    def begin(self, seconds: float, backend: str = "") -> subprocess.Popen[bytes]:
        """Begin the command, in the cluster unless another backend is named."""
        words = ["solve", self.dump, "-t", str(seconds), "-o", "json", "-q"]
        words += ["--backend", backend or f"ray:{self.cluster.address}", "--checkpoint", self.checkpoint]
        with self.answer.open("wb") as target:
            return subprocess.Popen([STOWPLAN, *words], stdout=target, stderr=subprocess.PIPE)

    def killed_when_something_was_found(self, seconds: float = 60.0) -> list[int]:
        """Kill the command once its checkpoint holds an answer; return the values of that answer."""
        process = self.begin(seconds)
        until = time.monotonic() + seconds
        while not (found := self.kept()):
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < until, "nothing was found"
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert self.cluster.await_no_workers(), "the workers of a killed process live on"
        return self.kept() or found

    def kept(self) -> list[int] | None:
        """Return the values of the answer in the checkpoint."""
        if not self.checkpoint.exists():
            return None
        answers = json.loads(self.checkpoint.read_bytes())["answers"]  # whole at any time
        return next((answer["values"] for answer in answers.values()), None)

    def survived(self, kill: Callable[[], None], number: int, seconds: float, apart: float) -> dict[str, Any]:
        """Kill something several times while the command runs, and let it finish as `finished` does."""
        process = self.begin(seconds)
        until = time.monotonic() + 60
        while not self.cluster.workers():
            assert process.poll() is None, "ended before a worker began"
            assert time.monotonic() < until, "no worker began"
            time.sleep(0.1)
        for _ in range(number):
            time.sleep(apart)
            kill()
        return self._ended(process)

    def interrupted(self, seconds: float) -> dict[str, Any]:
        """Send the command a SIGINT once workers are there, and let it end as `finished` does, within half a minute."""
        process = self.begin(seconds)
        while len(self.cluster.workers()) < 2 or not self.kept():
            assert process.poll() is None, "ended before it was interrupted"
            time.sleep(0.1)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        found = self._ended(process)
        assert time.monotonic() - sent < 30
        assert json.loads(self.answer.read_bytes())["interrupted"] is True
        return found

    def finished(self, seconds: float = 5.0) -> dict[str, Any]:
        """Let the command finish, have its answer verified, and return values and notes."""
        return self._ended(self.begin(seconds))

    def _ended(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()
        verified = subprocess.run([STOWPLAN, "verify", self.answer, self.dump], capture_output=True, check=False)
        assert verified.returncode == 0, (verified.stdout + verified.stderr).decode()
        notes = json.loads(self.answer.read_bytes())["notes"]
        assert self.cluster.await_no_workers(), "workers live on"
        return {"values": self.kept(), "notes": notes, "said": said.decode()}
