"""Annotations by which owners speak about evictions, read as the tools that defined them do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from stowplan.models.kubernetes import Pod
from stowplan.models.moments import parse_time

EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_TO_EVICT_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DISRUPTION_COST = "karpenter.sh/disruption-cost"
EVICTION_COST = "scheduling.koordinator.sh/eviction-cost"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

NEVER = 2**31 - 1
"""The eviction cost that forbids an eviction: the largest 32-bit number."""

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER, _UNIT = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)", r"(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"\+?(?:{_NUMBER}{_UNIT})+")
_PIECE = re.compile(rf"({_NUMBER})({_UNIT})")
_COST = re.compile(r"0|[1-9][0-9]*|-[0-9]+")


def cost(annotations: Mapping[str, str], key: str) -> int | None:
    """Return a cost, or ``None`` if it is not given.

    Costs are 32-bit numbers. One that is no such number, or has a plus sign or leading zeros, counts as 0, as for the
    ReplicaSet controller, koordinator and Karpenter.
    """
    text = annotations.get(key)
    if text is None:
        return None
    if not _COST.fullmatch(text):
        return 0
    value = int(text)
    return value if -(2**31) <= value <= NEVER else 0


def duration(text: str) -> timedelta | None:
    """Read a positive duration as Go writes it, such as ``1h30m``, or return ``None``."""
    if not _DURATION.fullmatch(text):
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))
    try:
        return timedelta(seconds=seconds) if seconds > 0 else None
    except OverflowError:
        return timedelta.max


def undisturbed(text: str, pod: Pod, now: datetime | None) -> bool:
    """Whether what ``karpenter.sh/do-not-disrupt`` says protects a pod.

    ``true`` protects it for good, a duration for so long after its start. Anything else means nothing.

    Parameters
    ----------
    now
        ``None`` if nothing is known about the present; then no duration has run out.
    """
    if text == "true":
        return True
    wanted = duration(text)
    if wanted is None:
        return False
    started = pod.status.start_time if pod.status else None
    since = parse_time(started) if started else None
    return since is None or now is None or now - since < wanted
