"""What a release consists of: the same bytes from the same sources, and a plugin that krew's index takes."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kubectl import needs_kubectl

ROOT = Path(__file__).parents[2]
KREW = ROOT / "deploy" / "krew"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
URL = "https://downloads.example/stowplan"
EPOCH = "1700000000"

Manifest = dict[str, Any]


# -- the same twice ---------------------------------------------------------------------------------------------------


def copied(folder: Path, age: int) -> Path:
    """Return the sources in another folder, with other times of files."""
    names = [
        path for path in ROOT.iterdir() if not path.name.startswith(".") and path.name not in {"dist", "build", "site"}
    ]
    folder.mkdir()
    for path in [*names, ROOT / ".ci"]:
        if path.is_dir():
            shutil.copytree(path, folder / path.name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, folder)
    for path in folder.rglob("*"):
        os.utime(path, (age, age), follow_symlinks=False)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def test_distributions_are_the_same_twice(tmp_path: Path) -> None:
    made = []
    for number, umask in ((1, 0o022), (2, 0o077)):
        source = copied(tmp_path / f"checkout-{number}", 1_000_000_000 + number)
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(source / "dist")]
        env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
        subprocess.run(command, cwd=source, env=env, umask=umask, check=True, capture_output=True)
        made.append(digests(source / "dist"))
    assert made[0] == made[1]
    assert [name.partition("-")[0] for name in made[0]] == ["stowplan", "stowplan"]


# -- krew -------------------------------------------------------------------------------------------------------------


def krew(folder: Path, url: str = URL) -> subprocess.CompletedProcess[str]:
    command = [str(KREW / "build"), VERSION, url, str(folder)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    done = krew(tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    return tmp_path / "dist"


@pytest.fixture
def manifest(made: Path) -> Manifest:
    found: Manifest = yaml.safe_load((made / "stowplan.yaml").read_text())
    return found


def _files(found: Manifest) -> bool:
    """Whether a license is installed, and nothing from or to outside the plugin's folder."""
    for one in found["spec"]["platforms"]:
        paths = [Path(file[end]) for file in one["files"] for end in ("from", "to")]
        licensed = any(Path(file["from"]).name.upper().startswith("LICENSE") for file in one["files"])
        if not licensed or any(".." in path.parts or path.is_absolute() for path in paths):
            return False
    return True


def _selectors(found: Manifest) -> bool:
    """Whether each platform is chosen by system and processor alone, and no system by two of them."""
    seen: list[str] = []
    for one in found["spec"]["platforms"]:
        selector = one["selector"]
        keys = set(selector.get("matchLabels", {})) | {e["key"] for e in selector.get("matchExpressions", ())}
        if not keys or not keys <= {"os", "arch"}:
            return False
        for expression in selector.get("matchExpressions", ()):
            seen += expression["values"] if expression["key"] == "os" else []
        seen += [selector["matchLabels"]["os"]] if "os" in selector.get("matchLabels", {}) else []
    return len(seen) == len(set(seen)) and set(seen) <= {"darwin", "linux", "windows"}


def _platforms(test: Callable[[Manifest], object]) -> Callable[[Manifest], bool]:
    return lambda found: bool(found["spec"]["platforms"]) and all(test(one) for one in found["spec"]["platforms"])


RULES: dict[str, tuple[Callable[[Manifest], object], Callable[[Manifest], object]]] = {
    "the version of the API": (
        lambda m: m["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2",
        lambda m: m.update(apiVersion="v1"),
    ),
    "the kind": (lambda m: m["kind"] == "Plugin", lambda m: m.update(kind="Plugins")),
    "a name that is safe, and the file's": (
        lambda m: re.fullmatch(r"[\w-]+", m["metadata"]["name"]) and m["metadata"]["name"] == "stowplan",
        lambda m: m["metadata"].update(name="kubectl/stowplan"),
    ),
    "a semantic version with v": (
        lambda m: re.fullmatch(r"v\d+\.\d+\.\d+(-[\w.]+)?", m["spec"]["version"]),
        lambda m: m["spec"].update(version="0.1.0"),
    ),
    "a short description of one line": (
        lambda m: m["spec"]["shortDescription"].strip() and "\n" not in m["spec"]["shortDescription"],
        lambda m: m["spec"].update(shortDescription="two\nlines"),
    ),
    "an archive of a known form": (
        _platforms(lambda one: re.fullmatch(r"https://\S+\.(zip|tar\.gz)", one["uri"])),
        lambda m: m["spec"]["platforms"][0].update(uri="https://x.example/plugin.tar.xz"),
    ),
    "a digest": (
        _platforms(lambda one: re.fullmatch(r"[0-9a-f]{64}", one["sha256"])),
        lambda m: m["spec"]["platforms"][0].update(sha256="@SHA256@"),
    ),
    "a program": (_platforms(lambda one: one["bin"]), lambda m: m["spec"]["platforms"][0].update(bin="")),
    "a license, and files within the folder": (_files, lambda m: m["spec"]["platforms"][0]["files"].pop()),
    "platforms that are told apart": (
        _selectors,
        lambda m: m["spec"]["platforms"].append(m["spec"]["platforms"][0]),
    ),
    "no field that is unknown": (
        lambda m: (
            m["spec"].keys() <= {"version", "shortDescription", "description", "homepage", "caveats", "platforms"}
        ),
        lambda m: m["spec"].update(shortdescription="x"),
    ),
}
"""What the index refuses: each rule, and what breaks it. Source: krew, ``internal/index/validation/validate.go``."""


@pytest.mark.parametrize("rule", RULES)
def test_the_manifest_keeps_to_a_rule(rule: str, manifest: Manifest) -> None:
    kept, breaking = RULES[rule]
    assert kept(manifest)
    breaking(manifest)
    assert not kept(manifest), "the rule would not notice"


def test_the_manifest_is_whole(made: Path, manifest: Manifest) -> None:
    assert "@" not in (made / "stowplan.yaml").read_text()
    (platform,) = manifest["spec"]["platforms"]
    archive = made / platform["uri"].rpartition("/")[2]
    assert platform["uri"].startswith(URL + "/")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    with tarfile.open(archive) as packed:
        assert sorted(packed.getnames()) == sorted(file["from"] for file in platform["files"])


def test_the_archive_is_the_same_twice(made: Path, tmp_path: Path) -> None:
    assert krew(tmp_path / "again").returncode == 0
    assert digests(made) == digests(tmp_path / "again")


@pytest.mark.parametrize(
    "url", ["http://downloads.example/x", "https://downloads.example/", "https://a b", "https://a|b"]
)
def test_an_address_that_cannot_be_one_is_refused(url: str, tmp_path: Path) -> None:
    done = krew(tmp_path / "dist", url)
    assert done.returncode == 1
    assert "must begin with https:// and not end with /" in done.stderr
    assert not (tmp_path / "dist").exists()


@needs_kubectl
def test_kubectl_runs_the_plugin_that_was_unpacked(made: Path, tmp_path: Path) -> None:
    with tarfile.open(next(made.glob("*.tar.gz"))) as packed:
        packed.extractall(tmp_path / "krew", filter="data")
    path = f"{tmp_path / 'krew'}:{Path(sys.executable).parent}:/usr/bin:/bin"
    kubectl = shutil.which("kubectl") or ""

    def run(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PATH": path, "HOME": str(tmp_path)}
        return subprocess.run([kubectl, "stowplan", *arguments], env=env, capture_output=True, text=True, check=False)

    assert run(path, "--version").stdout.strip() == VERSION
    assert "no such command" in run(path, "compere").stderr.lower()
    without = run(f"{tmp_path / 'krew'}:/usr/bin:/bin", "--version")
    assert without.returncode == 1
    assert without.stderr.startswith("kubectl-stowplan: stowplan is not in PATH; install it: pipx install stowplan\n")
