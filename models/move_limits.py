"""Limits on the moves of all pods and of some, as users write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stowplan.models.kubernetes.selectors import LabelSelector

NAMESPACE, WORKLOAD, POD = "ns=", "workload=", "pod="
POD_FORMS = f"{NAMESPACE}NAMESPACE, {WORKLOAD}NAMESPACE/NAME, {POD}NAMESPACE/NAME, or a label selector"
"""What names some pods."""
_FORMS = f"{NAMESPACE}NAMESPACE:N, {WORKLOAD}NAMESPACE/NAME:N, or SELECTOR:N"
_GROUP = re.compile("[:=!(,]")
_WHOLE = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """Limits as the command line gives them.

    Parameters
    ----------
    total
        Maximum number of all pods to move, or what the user gave in its place.
    groups
        Limits on some pods, as `read_group` reads them.
    """

    total: Any
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The pods of a namespace, of a workload, or with certain labels, or one pod; one of them is given.

    Parameters
    ----------
    name
        The group as the user named it.
    """

    name: str
    namespace: str | None = None
    workload: tuple[str, str] | None = None
    pod: tuple[str, str] | None = None
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class LimitedGroup:
    """A limit on the moves of some pods.

    Parameters
    ----------
    limit
        Maximum number of them to move.
    """

    pods: PodGroup
    limit: int


def read_move_limits(words: Sequence[str]) -> MoveLimits:
    """Divide limits into the one on all pods and those on some.

    Raises
    ------
    ValueError
        If there are several on all pods, or one on some pods cannot be read.
    """
    totals = [word for word in words if not _GROUP.search(word)]
    if len(totals) > 1:
        raise ValueError(f"limits all moves to {totals[0]} and to {totals[1]}; give one number, and others as {_FORMS}")
    groups = known_groups(tuple(word for word in words if _GROUP.search(word)))
    total = int(totals[0]) if totals and _WHOLE.fullmatch(totals[0]) else totals[0] if totals else None
    return MoveLimits(total, groups)


def known_groups(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return limits on some pods if all of them can be read.

    Raises
    ------
    ValueError
        With the first one that cannot.
    """
    for word in words:
        read_group(word)
    return words


def read_group(word: str) -> LimitedGroup:
    """Return a limit on the moves of some pods.

    Raises
    ------
    ValueError
        If it is none.
    """
    name, colon, number = word.rpartition(":")
    if not colon or not name or not re.fullmatch(r"\d+", number):
        raise ValueError(f"is {word!r}; must be {_FORMS}, with N from 0")
    try:
        return LimitedGroup(read_pods(name), int(number))
    except ValueError as error:
        raise ValueError(f"is {word!r}: {error}") from None


def read_pods(word: str) -> PodGroup:
    """Return the pods that a word names: ``ns=shop``, ``workload=shop/web``, ``pod=shop/web-0``, or ``tier=db,!new``.

    Raises
    ------
    ValueError
        If it names none.
    """
    if word.startswith(NAMESPACE):
        if word == NAMESPACE:
            raise ValueError(f"{word!r} must be {NAMESPACE}NAMESPACE")
        return PodGroup(word, namespace=word.removeprefix(NAMESPACE))
    for prefix in (WORKLOAD, POD):
        if word.startswith(prefix):
            namespace, _, name = word.removeprefix(prefix).partition("/")
            if not namespace or not name:
                raise ValueError(f"{word!r} must be {prefix}NAMESPACE/NAME")
            both = (namespace, name)
            return PodGroup(word, workload=both) if prefix == WORKLOAD else PodGroup(word, pod=both)
    # Imported here, since the help of commands, which reads settings, needs no Kubernetes objects.
    from stowplan.models.kubernetes.selectors import parse_selector

    try:
        return PodGroup(word, selector=parse_selector(word))
    except ValueError as error:
        raise ValueError(f"{error}; must be {POD_FORMS}") from None
