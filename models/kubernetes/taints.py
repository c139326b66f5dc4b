"""Taints on nodes and the tolerations of pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from stowplan.models.kubernetes.base import Name, kube

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@kube
class Taint:
    """What a node asks pods to tolerate."""

    key: Name
    effect: Effect
    value: Name = ""


@kube
class Toleration:
    """What a pod accepts. An empty key with ``Exists`` accepts everything; an empty effect accepts all effects.

    ``toleration_seconds`` is how long a pod stays under a NoExecute taint; without it, for good. No filter reads it.
    """

    key: Name = ""
    operator: Literal["Equal", "Exists", "Gt", "Lt", ""] = "Equal"
    value: Name = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers ``taint``.

        ``Gt`` and ``Lt`` belong to a feature gate that is off in every supported release, so they cover nothing.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "Equal" | "":
                return self.value == taint.value
            case "Exists":
                return True
            case _:
                return False


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any of the tolerations covers ``taint``."""
    return any(toleration.tolerates(taint) for toleration in tolerations)
