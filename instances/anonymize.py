"""Clusters without their names: every name, image, value of a label, uid, and address becomes another one.

Equal ones stay equal, wherever they occur, and their order stays, so that whatever compares names decides as before.
Quantities, priorities, times, and the structure stay as they are, and so does the vocabulary of Kubernetes: kinds,
effects, operators, resources, storage drivers, and labels, annotations, and taints of Kubernetes' own domains.
What is not read for placement, such as the environment of containers, is not written at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from stowplan.models.errors import InputError
from stowplan.models.kubernetes.devices import GPU_MODEL
from stowplan.models.kubernetes.images import normalized
from stowplan.models.kubernetes.meta import ISOLATION, TEMPLATE_LABELS, always_kept
from stowplan.models.kubernetes.storage import MIGRATED_PLUGINS

Manifest = dict[str, Any]

NODE, NAMESPACE, POD, IMAGE, KEY, VALUE, UID, NAME = "node", "ns", "pod", "image", "key", "value", "uid", "name"
CATEGORIES = (NODE, NAMESPACE, POD, IMAGE, KEY, UID, NAME, VALUE)
"""What pseudonyms begin with. A string that is of several categories goes by the first of them."""

KEPT_WORDS = frozenset(
    {
        *("", "true", "false", "default", "kube-system", "kube-public", "kube-node-lease", "default-scheduler"),
        *("0.0.0.0", "127.0.0.1", "::", "any", "system-cluster-critical", "system-node-critical"),
    }
)

OWN_DOMAIN = re.compile(r"(^|\.)(kubernetes\.io|k8s\.io)/")
"""Keys in a domain of Kubernetes."""

VOCABULARY = frozenset(
    {
        *("apiVersion", "kind", "operator", "effect", "phase", "whenUnsatisfiable", "protocol", "preemptionPolicy"),
        *("restartPolicy", "type", "status", "qosClass", "volumeMode", "accessModes", "action", "medium", "reason"),
        *("nodeAffinityPolicy", "nodeTaintsPolicy", "volumeBindingMode", "provisioner", "driver", "attacher"),
        *("unhealthyPodEvictionPolicy", "minAvailable", "maxUnavailable", "declaredFeatures", "kubeletVersion"),
        *("creationTimestamp", "deletionTimestamp", "startTime", "lastHeartbeatTime", "maximumVolumeSize", "drivers"),
    }
)
"""Fields whose texts are words of the API, quantities, or times."""

AMOUNTS = frozenset({"requests", "limits", "overhead", "allocatable", "capacity", "allocatedResources"})
"""Fields that are quantities by resource."""

LABELS = frozenset({"labels", "matchLabels", "nodeSelector"})
"""Fields that are values by label."""

KEYS = frozenset({"key", "topologyKey", "topologyKeys", "matchLabelKeys", "mismatchLabelKeys"})
VALUES = frozenset({"value", "values"})

DELIMITERS = re.compile(r"(__|[|,])")
"""What is between several values in one: zones of a volume, models of devices, volumes of a pod."""

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
AWS = "aws://"
"""What the volume IDs of in-tree AWS disks may begin with; a zone follows."""

SELECTOR_HEADS = ("ns=", "workload=")
"""What selectors of settings may begin with, besides labels."""

_TOKEN = re.compile(r"[^\s=,:!()]+")

Rename = Callable[[str, str], str]
"""Takes a category and a text; returns the text to write instead."""


class Pseudonyms:
    """The other names of one cluster.

    Parameters
    ----------
    cluster
        A ``List`` as `stowplan.instances.manifest_list.manifest_list` makes it.
    """

    def __init__(self, cluster: Manifest) -> None:
        found: dict[str, str] = {}

        def note(category: str, text: str) -> str:
            if text not in found or CATEGORIES.index(category) < CATEGORIES.index(found[text]):
                found[text] = category
            return text

        _List(note).walked(cluster)
        self._named: dict[str, str] = {}
        for category in CATEGORIES:
            # A namespace is mostly compared as a part of "namespace/name".
            texts = [text for text, of in found.items() if of == category]
            texts.sort(key=lambda text: f"{text}/" if category == NAMESPACE else text)
            width = len(str(len(texts)))
            for i, text in enumerate(texts):
                self._named[text] = f"{category}-{i:0{width}}" + (":t" if category == IMAGE else "")
        self._cluster = cluster

    def cluster(self) -> Manifest:
        """Return the cluster with its other names."""
        return self.renamed(self._cluster)

    def renamed(self, cluster: Manifest) -> Manifest:
        """Return a part of the cluster with its other names."""
        return _List(self._rename).walked(cluster)

    def of(self, text: str) -> str:
        """Return what a name of the cluster is called now; a text that is none of its names stays."""
        return self._named.get(text, text)

    def key(self, key: str) -> str:
        """Return what ``namespace/name`` is called now."""
        namespace, slash, name = key.partition("/")
        return f"{self.of(namespace)}{slash}{self.of(name)}"

    def selector(self, text: str) -> str:
        """Return a selector of pods with other names: a namespace, ``app=db``, ``tier in (a, b)``, ``ns=shop:5``."""
        if text in self._named:
            return self._named[text]
        head = next((word for word in SELECTOR_HEADS if text.startswith(word)), "")
        return head + _TOKEN.sub(lambda found: self._word(found[0]), text.removeprefix(head))

    def inside(self, value: Any, fields: Collection[str], field: str = "") -> Any:
        """Return plain data in which the texts of some fields, and of all that is below them, are other names."""
        named = field in fields
        match value:
            case str():
                return self.of(value) if named or "/" in value else value  # with a slash, it is the key of a label
            case Mapping():
                return {
                    self.of(key) if named else key: self.inside(one, fields, field if named else key)
                    for key, one in value.items()
                }
            case list() | tuple():
                return [self.inside(one, fields, field) for one in value]
        return value

    def _word(self, word: str) -> str:
        """Return a word of a selector with other names: a key, a value, or ``namespace/name``; operators stay."""
        if word in ("in", "notin") or NUMBER.fullmatch(word):
            return word
        return self.of(word) if word in self._named else self.key(word)

    def _rename(self, category: str, text: str) -> str:
        del category
        return self._named[text]


class _List:
    """Walks through the objects of a list, and renames whatever is a name by its field."""

    def __init__(self, rename: Rename) -> None:
        self.rename = rename

    def walked(self, cluster: Manifest) -> Manifest:
        return {**cluster, "items": [self.object(item) for item in cluster["items"]]}

    def object(self, item: Manifest) -> Manifest:
        kind = item["kind"]
        category = {"Node": NODE, "CSINode": NODE, "Namespace": NAMESPACE, "Pod": POD}.get(kind, NAME)
        name = item["metadata"]["name"]
        # A CSIDriver is known by the name of its driver, which is a product.
        named = name if kind == "CSIDriver" else self.text(category, name)
        walked: Manifest = self.value("", {key: one for key, one in item.items() if key != "metadata"})
        meta = self.value("", {key: one for key, one in item["metadata"].items() if key != "name"})
        return {**walked, "metadata": {"name": named, **meta}}

    def value(self, field: str, value: Any) -> Any:
        """Return the value of a field with other names."""
        if isinstance(value, dict):
            return self.mapping(field, value)
        if isinstance(value, list):
            return [self.value(field, one) for one in value]
        return self.string(field, value) if isinstance(value, str) else value

    def mapping(self, field: str, value: dict[str, Any]) -> dict[str, Any]:
        if field in AMOUNTS:
            return value
        if field in LABELS or (field == "selector" and all(isinstance(one, str) for one in value.values())):
            return {self.key(key): self.label_value(key, one) for key, one in value.items()}
        if field == "annotations":
            return {self.annotation_key(key): self.annotation(key, one) for key, one in value.items()}
        if field == "disruptedPods":
            return {self.text(POD, key): one for key, one in value.items()}
        if field == "drivers":
            return {
                key: self.value("topologyKeys" if key == "topologyKeys" else field, one) for key, one in value.items()
            }
        if set(value) >= {"operator", "key"} or "effect" in value:
            return {key: self.requirement(value, key, one) for key, one in value.items()}
        if "names" in value and "sizeBytes" in value:
            return {**value, "names": [self.text(IMAGE, one) for one in value["names"]]}
        return {key: self.value(key, one) for key, one in value.items()}

    def requirement(self, whole: dict[str, Any], field: str, value: Any) -> Any:
        """Return a field of a requirement, a taint, or a toleration; numbers that are compared stay."""
        if field in VALUES and whole.get("operator") not in ("Gt", "Lt"):
            texts = value if isinstance(value, list) else [value]
            found = [self.label_value(whole.get("key", ""), one) for one in texts]
            return found if isinstance(value, list) else found[0]
        return self.value(field, value) if field not in VALUES else value

    def string(self, field: str, value: str) -> str:
        if field in VOCABULARY:
            return value
        if field in KEYS:
            return self.key(value)
        if field == "image":
            return self.text(IMAGE, normalized(value)) if value else value
        if field == "volumeID" and value.startswith(AWS):
            return AWS + "/".join(self.text(VALUE, part) for part in value.removeprefix(AWS).split("/"))
        category = {
            "nodeName": NODE,
            "nominatedNodeName": NODE,
            "namespace": NAMESPACE,
            "namespaces": NAMESPACE,
            "uid": UID,
            "values": VALUE,
            "value": VALUE,
        }.get(field, NAME)
        return self.text(category, value)

    def key(self, key: str) -> str:
        """Return the key of a label or a taint; those of Kubernetes' own domains stay."""
        kept = OWN_DOMAIN.search(key) or key in TEMPLATE_LABELS or always_kept(key) or key == "metadata.name"
        return key if kept else self.text(KEY, key)

    def label_value(self, key: str, value: str) -> str:
        """Return a value of a label. Numbers stay, since requirements may compare them."""
        if NUMBER.fullmatch(value) and key not in TEMPLATE_LABELS:
            return value
        parts = DELIMITERS.split(value) if "__" in value or key == GPU_MODEL else [value]
        return "".join(part if DELIMITERS.fullmatch(part) else self.text(VALUE, part) for part in parts)

    def annotation_key(self, key: str) -> str:
        """Return the key of an annotation; those that are read in every cluster are vocabulary."""
        return key if always_kept(key) else self.text(KEY, key)

    def annotation(self, key: str, value: str) -> str:
        """Return the value of an annotation: numbers stay, and what is JSON is walked through."""
        if key == MIGRATED_PLUGINS or ISOLATION in key.lower() or NUMBER.fullmatch(value):
            return value
        if value[:1] in ("{", "["):
            try:
                return json.dumps(self.value("", json.loads(value)))
            except (json.JSONDecodeError, RecursionError):
                return self.text(VALUE, value)
        parts = DELIMITERS.split(value)
        return "".join(part if DELIMITERS.fullmatch(part) else self.text(VALUE, part) for part in parts)

    def text(self, category: str, text: str) -> str:
        if text in KEPT_WORDS:
            return text
        return self.rename(category, text)


def require_kubernetes(cluster: Manifest) -> None:
    """Refuse a cluster without objects of Kubernetes.

    Raises
    ------
    InputError
        If there is no node.
    """
    if not any(item["kind"] == "Node" for item in cluster["items"]):
        raise InputError("no Node object was found; only clusters of Kubernetes can be anonymized")
