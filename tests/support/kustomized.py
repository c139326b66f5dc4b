"""The manifests of ``deploy/``, as the real kubectl renders them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]
DEPLOY = Path(__file__).parents[2] / "deploy"
FOLDERS = ("base", "overlays/plan", "overlays/apply", "overlays/serve")


def rendered(folder: Path, *, warns: bool = False) -> list[Manifest]:
    """Return what ``kubectl apply -k`` would send.

    Parameters
    ----------
    warns
        Whether it may warn of a field that newer releases call otherwise, as older ones need it.
    """
    command = ["kubectl", "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert warns or done.stderr == ""
    return list(yaml.safe_load_all(done.stdout))


def all_rendered() -> list[Manifest]:
    """Return the manifests of all folders."""
    return [manifest for folder in FOLDERS for manifest in rendered(DEPLOY / folder)]


def pod_of(manifest: Manifest) -> Manifest | None:
    """Return the template of the pods that a workload makes."""
    spec = manifest.get("spec") or {}
    spec = (spec.get("jobTemplate") or {}).get("spec") or spec
    template: Manifest | None = spec.get("template")
    return template


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Iterate over names of workloads and specs of their pods."""
    for manifest in manifests:
        if template := pod_of(manifest):
            yield manifest["metadata"]["name"], template["spec"]
