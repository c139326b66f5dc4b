"""Moves of pods that a cluster of `tests.support.api_server` really has."""

from __future__ import annotations

from typing import Any

from stowplan.models.plan import MoveDocument, OwnerDocument, PodReference
from tests.support.api_server.errors import Object


class Moving:
    """Makes moves of the pods of some manifests, numbered in the order in which they are asked for."""

    def __init__(self, manifests: list[Object]) -> None:
        self.pods = {
            f"{m['metadata']['namespace']}/{m['metadata']['name']}": m for m in manifests if m["kind"] == "Pod"
        }
        self.made = 0

    def move(self, pod: str, target: str | None, **more: Any) -> MoveDocument:
        """Move ``namespace/name`` to a node, or away; a pod without a node is placed."""
        self.made += 1
        found = self.pods[pod]
        meta, source = found["metadata"], found["spec"].get("nodeName")
        labels = meta["labels"]
        reference = next(iter(meta.get("ownerReferences", ())), None)
        owner = None
        if reference is not None:
            about = {key: reference[key] for key in ("kind", "name", "uid")}
            owner = OwnerDocument(api_version=reference["apiVersion"], **about)
        content: dict[str, Any] = {
            "id": f"m{self.made:04}",
            "kind": "place" if source is None else "remove" if target is None else "evict",
            "pod": PodReference(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"]),
            "source": source,
            "target": target,
            "same_name": owner is not None and owner.kind == "StatefulSet",
            "owner": owner,
            "template_hash": labels.get("pod-template-hash") or labels.get("controller-revision-hash") or "",
            "requests": found["spec"]["containers"][0]["resources"]["requests"],
        }
        return MoveDocument(**content | more)
