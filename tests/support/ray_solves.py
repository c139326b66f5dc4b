"""The command line solving in a Ray cluster, killed and begun again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.ray_clusters import workers

STOWPLAN = Path(sys.executable).parent / "stowplan"


class Solve:
    """``solve --backend ray:ADDRESS --checkpoint FILE`` of a generated cluster.

    Parameters
    ----------
    folder
        Where the cluster, the checkpoint and the answers lie.
    """

    def __init__(self, folder: Path, address: str, nodes: int = 60, pods: int = 600) -> None:
        self.dump, self.checkpoint, self.answer = (
            folder / name for name in ("cluster.json", "checkpoint.json", "answer.json")
        )
        made = subprocess.run(
            [STOWPLAN, "generate", "--nodes", str(nodes), "--pods", str(pods)], capture_output=True, check=True
        )
        self.dump.write_bytes(made.stdout)
        self.address = address

    def begin(self, seconds: float) -> subprocess.Popen[bytes]:
        """Begin the command."""
        words = ["solve", self.dump, "-t", str(seconds), "-o", "json", "-q"]
        words += ["--backend", f"ray:{self.address}", "--checkpoint", self.checkpoint]
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
        assert await_no_workers(), "the workers of a killed process live on"
        return self.kept() or found

    def kept(self) -> list[int] | None:
        """Return the values of the answer in the checkpoint."""
        if not self.checkpoint.exists():
            return None
        answers = json.loads(self.checkpoint.read_bytes())["answers"]  # whole at any time
        return next((answer["values"] for answer in answers.values()), None)

    def finished(self, seconds: float = 5.0) -> dict[str, Any]:
        """Let the command finish, have its answer verified, and return values and notes."""
        process = self.begin(seconds)
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()
        verified = subprocess.run([STOWPLAN, "verify", self.answer, self.dump], capture_output=True, check=False)
        assert verified.returncode == 0, (verified.stdout + verified.stderr).decode()
        notes = json.loads(self.answer.read_bytes())["notes"]
        assert await_no_workers(), "workers live on"
        return {"values": self.kept(), "notes": notes}


def await_no_workers(seconds: float = 20.0) -> bool:
    """Wait until no process does jobs."""
    until = time.monotonic() + seconds
    while workers() and time.monotonic() < until:
        time.sleep(0.1)
    return not workers()
