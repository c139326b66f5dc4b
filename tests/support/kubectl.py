"""The real kubectl, run by tests against the API server of `tests.support.api_server`."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.api_server import ApiServer


def missing_kubectl() -> str | None:
    """Say that there is no kubectl, or ``None``."""
    if shutil.which("kubectl") is None:
        return "kubectl is not installed; on Debian: apt-get install kubernetes-client"
    return None


needs_kubectl = pytest.mark.skipif(missing_kubectl() is not None, reason=str(missing_kubectl()))


@dataclass(frozen=True)
class Client:
    """A user of a server: an own home with a kubeconfig."""

    server: ApiServer
    home: Path
    kubeconfig: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kubeconfig", self.server.kubeconfig(self.home))

    @property
    def environment(self) -> dict[str, str]:
        """What programs of this user find in their environment."""
        return {**os.environ, "HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig)}

    def run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl."""
        command = ["kubectl", *arguments]
        return subprocess.run(command, env=self.environment, input=text, capture_output=True, text=True, timeout=60)
