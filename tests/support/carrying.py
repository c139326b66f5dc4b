"""Plans carried out: a small cluster behind a real API server, and scripts run against it by a real shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stowplan.emitters.emission import File
from stowplan.emitters.pin import GATE
from stowplan.models.plan import MoveDocument, OwnerDocument, Plan, PodReference
from tests.support.api_server import ApiServer, ByTokens, Cluster
from tests.support.api_server.manifests import deployment, namespace, node, stateful_set
from tests.support.api_server.resources import PODS
from tests.support.plans import plan

Manifest = dict[str, Any]


def cluster() -> list[Manifest]:
    """Return three nodes, a Deployment with three pods on the first, a StatefulSet on the second."""
    nodes = [node(f"n{i}") for i in (1, 2, 3)]
    return [
        namespace("shop"),
        *nodes,
        *deployment("shop", "web", ["n1", "n1", "n1"]),
        *stateful_set("shop", "db", ["n2"]),
    ]


def of(manifests: list[Manifest], name: str, target: str | None, ident: str, **more: Any) -> MoveDocument:
    """Return the move of a pod as the manifests have it."""
    pod = next(m for m in manifests if m["kind"] == "Pod" and m["metadata"]["name"] == name)
    meta = pod["metadata"]
    (owner,) = meta.get("ownerReferences") or [None]
    labels = meta["labels"]
    kind = "remove" if target is None else "evict" if pod["spec"].get("nodeName") else "place"
    content: dict[str, Any] = {
        "id": ident,
        "kind": kind,
        "pod": PodReference(namespace=meta["namespace"], name=name, uid=meta["uid"]),
        "source": pod["spec"].get("nodeName"),
        "target": target,
        "same_name": bool(owner and owner["kind"] == "StatefulSet"),
        "owner": owner and OwnerDocument(kind=owner["kind"], name=owner["name"], uid=owner["uid"]),
        "template_hash": labels.get("pod-template-hash") or labels.get("controller-revision-hash") or "",
        "requests": {"cpu": "1"},
        "why": "for balance",
    }
    return MoveDocument(**content | more)


def two_waves(manifests: list[Manifest], **more: Any) -> Plan:
    """Return a plan that parks a pod, moves a named one there and back, and has two waves."""
    web, db = [m["metadata"]["name"] for m in manifests if m["kind"] == "Pod"][:3], "db-0"
    return plan(
        [of(manifests, web[0], "n2", "m0001"), of(manifests, db, "n3", "m0002")],
        [
            of(manifests, web[0], "n3", "m0003", source="n2", follows="m0001"),
            of(manifests, db, "n1", "m0004", source="n3", follows="m0002"),
            of(manifests, web[1], "n2", "m0005"),
        ],
        **more,
    )


Runner = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def served(
    manifests: list[Manifest], made: Plan, file: File, folder: Path, **more: Any
) -> Iterator[tuple[ApiServer, Runner]]:
    """Serve a cluster, and yield what runs a script against it."""
    script = folder / file.name
    script.write_text(file.content)
    living = Cluster(manifests, **{"scheduler": ByTokens(made.tokens), **more})
    with ApiServer(living) as server:
        settings = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "KUBECONFIG": str(server.kubeconfig(folder)),
            "STOWPLAN_INTERVAL": "0.1",
            "STOWPLAN_PAUSE": "1",
        }

        def run(*arguments: str, shell: str = "sh", other: File | None = None) -> subprocess.CompletedProcess[str]:
            words = ["busybox", "sh"] if shell == "busybox" else [shell]
            if other is not None:
                (folder / other.name).write_text(other.content)
            path = script if other is None else folder / other.name
            return subprocess.run(
                [*words, str(path), *arguments], cwd=folder, env=settings, capture_output=True, text=True, timeout=90
            )

        yield server, run


def gated(
    affinity: Manifest | None = None, gates: tuple[str, ...] = (GATE,), manifests: list[Manifest] | None = None
) -> list[Manifest]:
    """Return the cluster with pods of the Deployment that come up behind our gate."""
    manifests = cluster() if manifests is None else manifests
    for manifest in manifests:
        if manifest["kind"] in ("ReplicaSet", "StatefulSet"):
            spec = manifest["spec"]["template"]["spec"]
            spec["schedulingGates"] = [{"name": name} for name in gates]
            if affinity is not None:
                spec["affinity"] = affinity
    return manifests


def where(server: ApiServer) -> list[tuple[str, str]]:
    """Return the owner and the node of every pod."""
    return sorted(
        (pod["metadata"]["ownerReferences"][0]["name"], pod["spec"].get("nodeName", ""))
        for pod in server.store.all(PODS)
        if pod["metadata"].get("ownerReferences")
    )
