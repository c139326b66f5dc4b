"""The order in which preemption considers victims, tie by tie as upstream's sort leaves it.

Upstream orders pods by priority and then by start time, and reads the clock for a pod that has not started, anew at
every comparison. So of two such pods the one that is asked about first always counts as the more important: the
comparison contradicts itself, and the outcome is what the sorting algorithm of the Go library makes of it. Up to
`SHORT` pods that is an insertion sort, which is followed here step by step; for more, such pods keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.plugins_compat.framework.pod_index import Occupant

SHORT = 12
"""Elements that Go's sort orders by insertion."""

GAP = 6
"""Distance of the first pass that Go's sort made before release 1.19."""


def by_importance(occupants: Sequence[Occupant], *, first_pass: bool) -> list[Occupant]:
    """Return the occupants of a node, the most important first.

    Parameters
    ----------
    first_pass
        The release was built with a Go library whose sort compares elements `GAP` apart before it inserts.
    """
    if len(occupants) > SHORT:
        return sorted(occupants, key=lambda one: (-one.signature.pod.priority, one.started))
    order = list(occupants)
    if first_pass and len(order) > 1:
        for i in range(GAP, len(order)):
            if _more_important(order[i], order[i - GAP]):
                order[i], order[i - GAP] = order[i - GAP], order[i]
    for i in range(1, len(order)):
        for j in range(i, 0, -1):
            if not _more_important(order[j], order[j - 1]):
                break
            order[j], order[j - 1] = order[j - 1], order[j]
    return order


def _more_important(one: Occupant, other: Occupant) -> bool:
    priorities = one.signature.pod.priority, other.signature.pod.priority
    if priorities[0] != priorities[1]:
        return priorities[0] > priorities[1]
    return one.started < other.started or not (one.has_started or other.has_started)
