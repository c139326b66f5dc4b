"""Containers of our images, run by runc as hardened as the manifests want them, without a daemon."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "build" / "image"
USER = 65532
PACKAGES = "usr/local/lib/python3.11/dist-packages"


def missing(name: str) -> str | None:
    """Say why an image cannot be run here, or ``None``."""
    for program in ("runc", "umoci"):
        if shutil.which(program) is None:
            return f"{program} is not installed; on Debian: apt-get install runc umoci"
    if os.geteuid() != 0:
        return "containers are made by root alone"
    if not (IMAGES / name / "index.json").exists():
        return f"build/image/{name} is not there: make image"
    return None


@dataclass(frozen=True)
class Image:
    """An image, unpacked."""

    name: str
    folder: Path

    @classmethod
    def unpacked(cls, name: str, version: str, folder: Path) -> Image:
        """Unpack an image."""
        command = ["umoci", "unpack", "--image", f"{IMAGES / name}:{version}", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
        return cls(name, folder)

    @property
    def files(self) -> Path:
        """What becomes the root."""
        return self.folder / "rootfs"

    @property
    def config(self) -> dict[str, Any]:
        """The runtime configuration that umoci makes of the image."""
        found: dict[str, Any] = json.loads((self.folder / "config.json").read_text())
        return found

    def outdated(self) -> list[str]:
        """Return the modules that are others in the checkout."""
        package = ROOT / "stowplan"
        pairs = ((self.files / PACKAGES / "stowplan" / f.relative_to(package), f) for f in _modules(package))
        return [str(ours) for packed, ours in pairs if not packed.exists() or packed.read_bytes() != ours.read_bytes()]


def _modules(package: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(package, followlinks=True):
        yield from (Path(folder) / name for name in names if name.endswith(".py"))


@dataclass
class Container:
    """One container, as a pod of the *restricted* standard has it: no capabilities, a root that cannot be written.

    Parameters
    ----------
    command, args
        As in a manifest: the first replaces the image's entry point.
    mounts
        By their place inside, folders or files outside, and whether they can be written. ``/tmp`` is a tmpfs.
    """

    image: Image
    args: Sequence[str] = ()
    command: Sequence[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, tuple[Path, bool]] = field(default_factory=dict)

    def configuration(self) -> dict[str, Any]:
        """Return the configuration that runc gets: the image's own, hardened. It shares the network of the test."""
        found = self.image.config
        process, linux = found["process"], found["linux"]
        begin = process["args"] if self.command is None else list(self.command)
        env = [f"{key}={value}" for key, value in self.env.items()]
        process |= {"terminal": False, "args": [*begin, *self.args], "env": [*process["env"], *env]}
        process["capabilities"] = {kind: [] for kind in process["capabilities"]}
        found["root"] = {"path": str(self.image.files), "readonly": True}
        linux["namespaces"] = [space for space in linux["namespaces"] if space["type"] != "network"]
        tmp = {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]}
        bound = [
            {
                "destination": inside,
                "type": "bind",
                "source": str(outside),
                "options": ["rbind", "nosuid", "nodev", "rw" if writable else "ro"],
            }
            for inside, (outside, writable) in self.mounts.items()
        ]
        found["mounts"] = [*found["mounts"], tmp, *bound]
        return found

    @contextmanager
    def started(self, folder: Path) -> Iterator[subprocess.Popen[str]]:
        """Start it, and end it with SIGTERM, or with SIGKILL where that is not enough."""
        name = f"stowplan-{uuid.uuid4().hex[:12]}"
        bundle = folder / name
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(self.configuration()))
        command = ["runc", "--root", str(folder / "runc"), "run", "--bundle", str(bundle), name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    subprocess.run([*command[:3], "delete", "--force", name], check=False)
                    process.kill()

    def run(self, folder: Path, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        with self.started(folder) as process:
            out, err = process.communicate(timeout=seconds)
            return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def writable(folder: Path) -> Path:
    """Make a folder that the user of the images may write, as ``fsGroup`` does with a volume."""
    folder.mkdir(parents=True)
    os.chown(folder, USER, USER)
    return folder


def of_pod(
    spec: dict[str, Any],
    name: str,
    image: Image,
    volumes: Mapping[str, Path],
    env: Mapping[str, str],
    instead: Mapping[str, str],
) -> Container:
    """Return a container of a pod, as its manifest describes it.

    Parameters
    ----------
    volumes
        What each volume is; one without is an empty folder in memory.
    env
        Values of variables that a cluster would look up, and more.
    instead
        What is replaced in arguments.
    """
    (found,) = (c for c in [*spec.get("initContainers", ()), *spec["containers"]] if c["name"] == name)
    security = spec["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"]) == (USER, USER)
    named = {variable["name"] for variable in found.get("env", ())}
    assert named <= env.keys()

    def word(text: str) -> str:
        text = re.sub(r"\$\((\w+)\)", lambda match: env[match[1]] if match[1] in named else match[0], text)
        for old, new in instead.items():
            text = text.replace(old, new)
        return text

    mounts = {
        mount["mountPath"]: (volumes[mount["name"]], not mount.get("readOnly", False))
        for mount in found["volumeMounts"]
        if mount["name"] in volumes
    }
    command = found.get("command")
    return Container(image, [word(text) for text in found["args"]], command, env, mounts)
