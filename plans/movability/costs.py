"""Cost of a pod's move, relative to other pods, by annotations of its owner.

Three annotations put a price on an eviction. All are 32-bit numbers, of which 0 is the usual price, a lower one asks to
be taken first and a higher one last:

- ``scheduling.koordinator.sh/eviction-cost`` ranks evictions of pods of one priority. Its largest value forbids them.
- ``karpenter.sh/disruption-cost`` is added, divided by 2²⁷, to the 1 that a pod's eviction costs Karpenter, which
  keeps the sum between −10 and 10.
- ``controller.kubernetes.io/pod-deletion-cost`` ranks the pods of one ReplicaSet when it scales down. Karpenter takes
  it where its own annotation is missing.

Two of them only rank, and users write anything from 1 to a million. So a cost is read by its magnitude: with ``x`` the
cost and ``s`` its sign, the weight is ``10^(s·log₂(1 + |x|)/31)``, which rises with the cost over its whole range, from
0.1 to 10, and is 1 for a cost of 0.
"""

from __future__ import annotations

import math

from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plans.movability.annotations import DELETION_COST, DISRUPTION_COST, EVICTION_COST, cost

ORDER = (EVICTION_COST, DISRUPTION_COST, DELETION_COST)
"""The first of these that a pod has is heeded."""

LARGEST = 10.0
"""Weight of the highest cost; that of the lowest is its inverse."""

BITS = 31


def move_weight(pod: Pod) -> float:
    """Return the cost of a pod's move: 0.1 to 10, in hundredths, and 1 without annotations."""
    annotations = pod.metadata.annotations
    if not annotations:
        return 1.0
    price = next((price for key in ORDER if (price := cost(annotations, key)) is not None), 0)
    return weight_of(price)


def weight_of(price: int) -> float:
    """Return the weight of a cost."""
    magnitude = min(BITS, math.log2(1 + abs(price)))
    return round(math.pow(LARGEST, math.copysign(magnitude / BITS, price)), 2)


def has_costs(snapshot: Snapshot) -> bool:
    """Whether any pod of a snapshot has a cost."""
    return any(key in pod.metadata.annotations for pod in snapshot.pods if pod.metadata.annotations for key in ORDER)
