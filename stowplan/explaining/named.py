"""What an explanation is asked about."""

from __future__ import annotations

from typing import Literal

from stowplan.models.errors import InputError


def named(what: str | None) -> tuple[Literal["pod", "node", "all"], str]:
    """Return what a word names, and the name of that: ``[pod/]namespace/name``, ``node/name``, or all pending pods.

    Raises
    ------
    InputError
        If it names none of them.
    """
    if what is None:
        return "all", ""
    match what.split("/"):
        case ["node", name] if name:
            return "node", name
        case [namespace, name] if namespace and name:
            return "pod", what
        case ["pod", namespace, name] if namespace and name:
            return "pod", f"{namespace}/{name}"
        case _:
            raise InputError(f"is {what!r}; must be a pod as NAMESPACE/NAME, or a node as node/NAME", field="POD|NODE")
