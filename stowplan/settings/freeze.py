"""Which pods stay on their node: those that the user freezes, and those that the executor cannot evict."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.selectors import LabelSelector, parse_selector
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.plans.movability.causes import BY_ANY_EXECUTOR, WAIVABLE, Cause
from stowplan.plans.movability.movable import Movability

OWNER = "owner:"
"""Prefix of the kind of a controller in ``--may-move``."""

EVERYTHING = "everything"
"""What ``may_move`` says where nothing but being tied to its node keeps a pod; no option takes it."""

Stays = Callable[[Pod], str | None]
"""Returns why a pod stays on its node, or ``None`` if it may leave."""


def who_stays(snapshot: Snapshot, settings: Settings, *, detailed: bool = False) -> Stays:
    """Return a function that returns why a bound pod stays on its node: by the user's request, or by the executor.

    Parameters
    ----------
    detailed
        Whether to include details of the pod, rather than one text for all pods of a cause.

    Raises
    ------
    InputError
        If a value of ``freeze`` or ``may_move`` cannot be used.
    """
    frozen = Freeze(settings.freeze, settings.freeze_bare)
    movability = make_movability(snapshot, settings)

    def stays(pod: Pod) -> str | None:
        if reason := frozen(pod):
            return reason
        blocker = movability.blocker(pod)
        return None if blocker is None else str(blocker) if detailed else blocker.phrase

    return stays


def make_movability(snapshot: Snapshot, settings: Settings) -> Movability:
    """Return which pods the executor of the settings can evict, given the restrictions to ignore.

    Raises
    ------
    InputError
        If a value of ``--may-move`` is not a restriction, or a restriction of an executor and none is given.
    """
    if EVERYTHING in settings.may_move:
        return Movability(snapshot, None, waived=BY_ANY_EXECUTOR - {Cause.TIED})
    owners = [word.removeprefix(OWNER) for word in settings.may_move if word.startswith(OWNER)]
    if "" in owners:
        raise InputError("must name the kind of a controller, such as owner:CloneSet", field="--may-move")
    causes = [parse_cause(word) for word in settings.may_move if not word.startswith(OWNER)]
    if settings.executor is None and not BY_ANY_EXECUTOR.issuperset(causes):
        raise InputError("waives a restriction of an executor; give --executor too", field="--may-move")
    return Movability(snapshot, settings.executor, waived=causes, owners=owners, drained=settings.drain)


def idle_owners(snapshot: Snapshot, settings: Settings) -> list[str]:
    """Return a note for each kind of controller in ``--may-move`` that no pod is of, which is rarely intended."""
    kinds = {owner.kind for pod in snapshot.pods if (owner := pod.metadata.controller)}
    return [
        f"--may-move {word} lets no pod go: none is of a {word.removeprefix(OWNER)}"
        for word in settings.may_move
        if word.startswith(OWNER) and word.removeprefix(OWNER) not in kinds
    ]


def parse_cause(word: str) -> Cause:
    """Return a restriction that can be ignored, by name.

    Raises
    ------
    InputError
        If no restriction has that name.
    """
    if word not in WAIVABLE:
        names = ", ".join([*(cause.value for cause in Cause if cause in WAIVABLE), f"{OWNER}KIND"])
        raise InputError(f"{word!r} is not a reason that can be waived; must be one of {names}", field="--may-move")
    return Cause(word)


class Freeze:
    """Selects pods that stay on their node, by namespace or by label selector.

    Parameters
    ----------
    words
        Each a namespace, or a label selector as kubectl takes it: ``app=db,tier in (a, b),!canary``.
    bare
        Also pods without a controller, which would not be replaced.

    Raises
    ------
    InputError
        With the value that is neither.
    """

    def __init__(self, words: Sequence[str], bare: bool = False) -> None:
        if "" in words:
            raise InputError("must name a namespace or a label selector", field="--freeze")
        self.bare = bare
        self.namespaces = {word for word in words if not _is_selector(word)}
        self.selectors = [(word, _selector(word)) for word in words if _is_selector(word)]

    def __call__(self, pod: Pod) -> str | None:
        """Return why a pod stays, or ``None``."""
        if pod.namespace in self.namespaces:
            return f"frozen namespace {pod.namespace}"
        for word, selector in self.selectors:
            if selector.matches(pod.metadata.labels):
                return f"frozen by {word}"
        return "frozen: no controller" if self.bare and pod.metadata.controller is None else None

    def unmatched(self, snapshot: Snapshot) -> list[str]:
        """Return the values of ``--freeze`` that match no pod, which is rarely intended."""
        namespaces = {pod.namespace for pod in snapshot.pods}
        idle = sorted(self.namespaces - namespaces)
        return idle + [w for w, s in self.selectors if not any(s.matches(pod.metadata.labels) for pod in snapshot.pods)]


def _is_selector(word: str) -> bool:
    return any(sign in word for sign in "=!(,")


def _selector(word: str) -> LabelSelector:
    try:
        return parse_selector(word)
    except ValueError as error:
        raise InputError(str(error), field="--freeze") from None
