"""What kube-scheduler asks an extender, and how it is answered: ``k8s.io/kube-scheduler/extender/v1``.

The types of that API name no keys, so Go writes the names of fields capitalized, as in the source. Only what is read
here is decoded; nodes that come as whole objects go back unread.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from stowplan.models.kubernetes.meta import TEMPLATE_LABELS
from stowplan.models.moments import parse_time
from stowplan.serving.ledger import Asker

BEST = 10
"""The highest score an extender can give."""


class BadRequest(Exception):
    """A question that cannot be understood; ``str()`` says why, ``reason`` in a word for the metrics."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(" ".join(message.split()))
        self.reason = reason


class _Owner(msgspec.Struct):
    uid: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata


class _NodeList(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _Named(msgspec.Struct):
    name: str


class _Node(msgspec.Struct):
    metadata: _Named


class _Arguments(msgspec.Struct):
    pod: _Pod | None = msgspec.field(default=None, name="Pod")
    nodes: _NodeList | None = msgspec.field(default=None, name="Nodes")
    node_names: list[str] | None = msgspec.field(default=None, name="NodeNames")


_ARGUMENTS = msgspec.json.Decoder(_Arguments)
_NODE = msgspec.json.Decoder(_Node)


@dataclass(frozen=True)
class Question:
    """A pod, and the nodes it could go to.

    Parameters
    ----------
    objects
        The nodes as they came, by name, if they came as objects.
    """

    asker: Asker
    nodes: Sequence[str]
    objects: Mapping[str, msgspec.Raw] | None = None


def read_question(body: bytes | bytearray) -> Question:
    """Read what the scheduler sends to filter and to prioritize.

    Raises
    ------
    BadRequest
        If it is no such thing.
    """
    try:
        arguments = _ARGUMENTS.decode(body)
        listed = arguments.nodes.items or [] if arguments.nodes is not None else None
        objects = None if listed is None else {_NODE.decode(raw).metadata.name: raw for raw in listed}
    except msgspec.ValidationError as error:
        raise BadRequest("fields", f"is not a request of a scheduler: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest("json", f"is not JSON: {error}") from None
    if arguments.pod is None:
        raise BadRequest("fields", "is not a request of a scheduler: it has no Pod")
    names = list(objects) if objects is not None else arguments.node_names
    if names is None:
        raise BadRequest("fields", "is not a request of a scheduler: it has neither NodeNames nor Nodes")
    return Question(_asker(arguments.pod.metadata), names, objects)


def _asker(metadata: _Metadata) -> Asker:
    if not metadata.name:
        raise BadRequest("fields", "is not a request of a scheduler: the Pod has no name")
    namespace = metadata.namespace or "default"
    labels = metadata.labels or {}
    owner = next((owner.uid for owner in metadata.owner_references or () if owner.controller), "")
    hashes = frozenset(labels[key] for key in TEMPLATE_LABELS if key in labels)
    uid = metadata.uid or f"{namespace}/{metadata.name}"
    created = parse_time(metadata.creation_timestamp) if metadata.creation_timestamp else None
    since = math.inf if created is None else created.timestamp()
    return Asker(uid, namespace, metadata.name, owner, hashes, since)


def all_pass(question: Question) -> bytes:
    """Answer a filter that every node will do."""
    return _filtered(question, question.nodes, {})


def without(question: Question, closed: Collection[str], why: str) -> bytes:
    """Answer a filter that some nodes will not do, in a way that preemption cannot mend."""
    passed = [name for name in question.nodes if name not in closed]
    return _filtered(question, passed, {name: why for name in question.nodes if name in closed})


def only(question: Question, target: str | None, why: str) -> bytes:
    """Answer a filter that one node alone will do, or none; the others fail in a way that preemption cannot mend."""
    passed = [name for name in question.nodes if name == target]
    return _filtered(question, passed, {name: why for name in question.nodes if name != target})


def _filtered(question: Question, passed: Sequence[str], failed: Mapping[str, str]) -> bytes:
    objects = question.objects
    items = None if objects is None else {"items": [objects[name] for name in passed]}
    names = passed if objects is None else None
    answer = {
        "Nodes": items,
        "NodeNames": names,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": failed,
        "Error": "",
    }
    return msgspec.json.encode(answer)


def scores(question: Question, target: str | None) -> bytes:
    """Answer a prioritize: the best score for one node, if any, and 0 for all others."""
    return msgspec.json.encode([{"Host": name, "Score": BEST if name == target else 0} for name in question.nodes])
