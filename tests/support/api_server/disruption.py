"""The disruption controller: what budgets allow, as ``pkg/controller/disruption`` works it out."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from tests.support.api_server.errors import Object
from tests.support.api_server.eviction import is_ready
from tests.support.api_server.resources import BUDGETS, BY_KIND, DEPLOYMENTS, PODS
from tests.support.api_server.selectors import selects
from tests.support.api_server.store import Store

DELETION_TIMEOUT = timedelta(minutes=2)
SCALED = ("ReplicaSet", "StatefulSet", "ReplicationController", "Deployment")


def sync_budgets(store: Store) -> None:
    """Bring the status of every budget up to date."""
    with store.changed:
        for budget in store.all(BUDGETS):
            meta = budget["metadata"]
            status = _status(store, budget)
            if status == budget.get("status"):
                continue
            store.update(BUDGETS, meta["namespace"], meta["name"], lambda found, s=status: found.update(status=s))


def _status(store: Store, budget: Object) -> Object:
    spec, meta = budget["spec"], budget["metadata"]
    pods = [
        pod
        for pod in store.all(PODS, meta["namespace"])
        if selects(spec.get("selector"), pod["metadata"].get("labels") or {})
    ]
    disrupted = _still_disrupted(budget, {pod["metadata"]["name"]: pod for pod in pods})
    healthy = sum(
        1
        for pod in pods
        if not pod["metadata"].get("deletionTimestamp") and pod["metadata"]["name"] not in disrupted and is_ready(pod)
    )
    counted = _expected_and_desired(store, spec, pods)
    expected, desired = counted if counted is not None else (0, 0)
    return {
        "observedGeneration": meta.get("generation", 1),
        "disruptedPods": disrupted,
        "disruptionsAllowed": max(0, healthy - desired) if expected > 0 else 0,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    }


def _still_disrupted(budget: Object, pods: dict[str, Object]) -> dict[str, str]:
    """Return those evictions that were granted and are not yet to be seen in the pod itself."""
    kept = {}
    for name, since in (budget.get("status", {}).get("disruptedPods") or {}).items():
        granted = datetime.strptime(since, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        pod = pods.get(name)
        if pod and not pod["metadata"].get("deletionTimestamp") and datetime.now(UTC) - granted < DELETION_TIMEOUT:
            kept[name] = since
    return kept


def _expected_and_desired(store: Store, spec: Object, pods: list[Object]) -> tuple[int, int] | None:
    """Return how many pods there should be and must be, or ``None`` if a controller cannot be asked for its scale."""
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if isinstance(least, int):
        return len(pods), least
    expected = _scale(store, pods)
    if expected is None:
        return None
    if most is not None:
        return expected, max(0, expected - _amount(most, expected))
    return expected, _amount(least if least is not None else 1, expected)


def _amount(value: int | str, of: int) -> int:
    """Return a number or a percentage of ``of``, rounded up."""
    return value if isinstance(value, int) else math.ceil(int(value.rstrip("%")) * of / 100)


def _scale(store: Store, pods: list[Object]) -> int | None:
    """Return how many pods their controllers want together; pods without a controller are not counted."""
    scales: dict[str, int] = {}
    for pod in pods:
        owner = next((o for o in pod["metadata"].get("ownerReferences") or () if o.get("controller")), None)
        if owner is None:
            continue
        if owner["kind"] not in SCALED:
            return None
        found = store.find(BY_KIND[owner["kind"]], pod["metadata"]["namespace"], owner["name"])
        if found is None or found["metadata"]["uid"] != owner["uid"]:
            return None
        above = next((o for o in found["metadata"].get("ownerReferences") or () if o.get("controller")), None)
        if above is not None and above["kind"] == "Deployment":
            deployment = store.find(DEPLOYMENTS, pod["metadata"]["namespace"], above["name"])
            found = deployment or found
        scales[found["metadata"]["uid"]] = found["spec"].get("replicas", 1)
    return sum(scales.values())
