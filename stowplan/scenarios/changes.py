"""Changes of a scenario, as files hold them and as the command line says them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from stowplan.models.document import Document
from stowplan.models.move_limits import POD_FORMS, read_pods
from stowplan.models.quantity import parse_quantity

Rule = Literal["spread", "anti-affinity", "affinity", "node-affinity", "taints", "host-ports", "gates"]
"""Rules of pods that can be dropped."""
RULES: tuple[Rule, ...] = get_args(Rule)

SHORT = {
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "node": "kubernetes.io/hostname",
}
"""Words for labels of nodes that most clusters have."""

_AMOUNT = re.compile(r"[^=]+=[^=]+")
T = TypeVar("T")


def _known_pods(word: str) -> str:
    read_pods(word)
    return word


def _known_amounts(amounts: dict[str, str]) -> dict[str, str]:
    for amount in amounts.values():
        if parse_quantity(amount) < 0:
            raise ValueError(f"is {amount}; must not be negative")
    return amounts


Pods = Annotated[str, Field(min_length=1), AfterValidator(_known_pods)]
"""``ns=NAMESPACE``, ``workload=NAMESPACE/NAME``, ``pod=NAMESPACE/NAME``, or a label selector."""
Nodes = Annotated[str, Field(min_length=1)]
"""Name of a node, or a label selector; the words of `SHORT` are short for labels."""
Count = Annotated[int, Field(ge=1, le=100_000)]
Amounts = Annotated[dict[str, str], Field(min_length=1), AfterValidator(_known_amounts)]
WorkloadName = Annotated[str, Field(pattern=r"^[^/\s:@]+/[^/\s:@]+$")]


class _Change(Document):
    model_config = ConfigDict(frozen=True)


class AddedNodes(_Change):
    """Nodes like another one, with DaemonSet and static pods like its own; ``labels`` are those that differ."""

    like: Nodes
    count: Count = 1
    labels: dict[str, str] = Field(default_factory=dict)


class ResizedNodes(_Change):
    """Other allocatable amounts of nodes, by resource."""

    nodes: Nodes
    allocatable: Amounts


class DroppedRule(_Change):
    """A rule that some pods, or all, no longer have."""

    rule: Rule
    pods: Pods | None = None


class MaxSkew(_Change):
    """Another ``maxSkew`` of the hard spread constraints of some pods, or of all; of one topology key, or of all."""

    max_skew: Count
    pods: Pods | None = None
    topology_key: str | None = None


class PodsAndNodes(_Change):
    """Some pods, and the nodes that they must be on or must not be on."""

    pods: Pods
    nodes: Nodes


class Room(_Change):
    """Room for more pods of a workload; ``each`` is a topology key, if so many shall fit in each of its domains."""

    workload: WorkloadName
    count: Count
    each: str | None = None


def read_added(words: Sequence[str]) -> tuple[AddedNodes, ...]:
    """Read nodes that are added, such as ``worker-1:2,zone=b``; raise ``ValueError`` where a word is none."""
    return tuple(map(_added, words))


def read_resized(words: Sequence[str]) -> tuple[ResizedNodes, ...]:
    """Read nodes of another size, such as ``pool=b:cpu=16``; raise ``ValueError`` where a word is none."""
    return tuple(map(_resized, words))


def read_dropped(words: Sequence[str]) -> tuple[DroppedRule, ...]:
    """Read rules that are dropped, such as ``spread:app=web``; raise ``ValueError`` where a word is none."""
    return tuple(map(_dropped, words))


def read_skews(words: Sequence[str]) -> tuple[MaxSkew, ...]:
    """Read values of ``maxSkew``, such as ``app=web:2``; raise ``ValueError`` where a word is none."""
    return tuple(map(_skew, words))


def read_pods_and_nodes(words: Sequence[str]) -> tuple[PodsAndNodes, ...]:
    """Read pods and nodes, such as ``app=web@zone=a``; raise ``ValueError`` where a word is none."""
    return tuple(map(_pods_and_nodes, words))


def read_rooms(words: Sequence[str]) -> tuple[Room, ...]:
    """Read room to keep, such as ``payments/api:3@zone``; raise ``ValueError`` where a word is none."""
    return tuple(map(_room, words))


def read_weights(words: Sequence[str]) -> dict[str, float]:
    """Read weights, such as ``imbalance.moves=5``; raise ``ValueError`` where a word is none."""
    return dict(map(_weight, words))


def given_or_none(weights: Any) -> Any:
    """Return the weights that were given, none if nothing was."""
    return weights or {}


def _made(cls: type[T], word: str, form: str, **values: Any) -> T:
    """Return a change, or say what form it must have."""
    try:
        return cls(**values)
    except ValueError as error:
        told = error.errors()[0].get("ctx", {}).get("error") if isinstance(error, ValidationError) else None
        raise ValueError(f"is {word!r}; {told or f'must be {form}'}") from None


def _pairs(word: str, text: str, form: str) -> dict[str, str]:
    parts = text.split(",")
    if not all(_AMOUNT.fullmatch(part) for part in parts):
        raise ValueError(f"is {word!r}; must be {form}")
    return dict(part.split("=") for part in parts)


def _number(word: str, text: str, form: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError(f"is {word!r}; must be {form}")
    return int(text)


def _added(word: str) -> AddedNodes:
    form = "NODE, NODE:N, or NODE:N,KEY=VALUE with the labels that differ"
    head, _, labels = word.partition(",")
    like, colon, number = head.partition(":")
    given = _pairs(word, labels, form) if labels else {}
    count = _number(word, number, form) if colon else 1
    return _made(AddedNodes, word, form, like=like, count=count, labels=given)


def _resized(word: str) -> ResizedNodes:
    form = "NODES:RESOURCE=AMOUNT, such as worker-1:cpu=16,memory=64Gi"
    nodes, _, amounts = word.rpartition(":")
    return _made(ResizedNodes, word, form, nodes=nodes, allocatable=_pairs(word, amounts, form))


def _dropped(word: str) -> DroppedRule:
    rule, colon, pods = word.partition(":")
    form = f"RULE or RULE:PODS, where RULE is one of {', '.join(RULES)}, and PODS is {POD_FORMS}"
    return _made(DroppedRule, word, form, rule=rule, pods=pods if colon else None)


def _skew(word: str) -> MaxSkew:
    form = f"N or PODS:N, where N is 1 or more, and PODS is {POD_FORMS}"
    pods, colon, number = word.rpartition(":")
    return _made(MaxSkew, word, form, max_skew=_number(word, number, form), pods=pods if colon else None)


def _pods_and_nodes(word: str) -> PodsAndNodes:
    pods, _, nodes = word.partition("@")
    return _made(PodsAndNodes, word, f"PODS@NODES, where PODS is {POD_FORMS}", pods=pods, nodes=nodes)


def _room(word: str) -> Room:
    form = "NAMESPACE/NAME:N or NAMESPACE/NAME:N@KEY, such as payments/api:3@zone"
    workload, _, rest = word.rpartition(":")
    number, at, key = rest.partition("@")
    return _made(Room, word, form, workload=workload, count=_number(word, number, form), each=key if at else None)


def _weight(word: str) -> tuple[str, float]:
    path, _, number = word.rpartition("=")
    try:
        return path, float(number)
    except ValueError:
        raise ValueError(f"is {word!r}; must be TIER.TERM=WEIGHT, such as imbalance.moves=5") from None
