"""Which pods stay where they are: those that the user freezes, and those that the executor cannot move."""

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
"""What ``--may-move`` says before the kind of a controller."""

EVERYTHING = "everything"
"""What ``may_move`` says where nothing but being tied to its node keeps a pod; no option takes it."""

Stays = Callable[[Pod], str | None]
"""Returns why a pod stays on its node, or ``None`` if it may leave."""


def who_stays(snapshot: Snapshot, settings: Settings, *, detailed: bool = False) -> Stays:
    """Return what says why a bound pod stays where it is: the user, or the executor.

    Parameters
    ----------
    detailed
        Name what is particular about the pod too, instead of the words that pods of one cause share.

    Raises
    ------
    InputError
        If a freeze, or a kind of reason to waive, is none.
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
    """Return who can be moved by the settings' executor, with what ``--may-move`` waives.

    Raises
    ------
    InputError
        If a word of ``--may-move`` names nothing that can be waived, or a restriction of an executor and there is none.
    """
    if EVERYTHING in settings.may_move:
        return Movability(snapshot, None, waived=BY_ANY_EXECUTOR - {Cause.TIED})
    owners = [word.removeprefix(OWNER) for word in settings.may_move if word.startswith(OWNER)]
    if "" in owners:
        raise InputError("must name the kind of a controller, such as owner:CloneSet", field="--may-move")
    causes = [parse_cause(word) for word in settings.may_move if not word.startswith(OWNER)]
    if settings.executor is None and not BY_ANY_EXECUTOR.issuperset(causes):
        raise InputError("waives a restriction of an executor; give --executor too", field="--may-move")
    return Movability(snapshot, settings.executor, waived=causes, owners=owners)


def parse_cause(word: str) -> Cause:
    """Return a kind of reason that can be waived, by name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if word not in WAIVABLE:
        names = ", ".join([*(cause.value for cause in Cause if cause in WAIVABLE), f"{OWNER}KIND"])
        raise InputError(f"{word!r} is not a reason that can be waived; must be one of {names}", field="--may-move")
    return Cause(word)


class Freeze:
    """Decides which pods stay where they are, by namespace or by label selector.

    Parameters
    ----------
    words
        Each a namespace, or a label selector as kubectl takes it: ``app=db,tier in (a, b),!canary``.
    bare
        Also pods that no controller would make again.

    Raises
    ------
    InputError
        With the word that is neither.
    """

    def __init__(self, words: Sequence[str], bare: bool = False) -> None:
        if "" in words:
            raise InputError("must name a namespace or a label selector", field="--freeze")
        self.bare = bare
        self.namespaces = {word for word in words if not _is_selector(word)}
        self.selectors = [(word, _selector(word)) for word in words if _is_selector(word)]

    def __call__(self, pod: Pod) -> str | None:
        """Return why a pod is to stay, or ``None``."""
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
