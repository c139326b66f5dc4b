"""The eviction subresource, step by step as ``registry/core/pod/storage/eviction.go`` takes them."""

from __future__ import annotations

from tests.support.api_server.errors import ApiError, Object, success, too_many_requests
from tests.support.api_server.resources import BUDGETS, PODS
from tests.support.api_server.selectors import selects
from tests.support.api_server.store import Store, timestamp

MOST_DISRUPTED = 2000
REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(store: Store, namespace: str, name: str, eviction: Object, dry_run: list[str]) -> Object:
    """Evict a pod, or raise what upstream answers.

    Parameters
    ----------
    dry_run
        What the request's query says of ``dryRun``.
    """
    with store.changed:
        if eviction.get("kind") != "Eviction" or not eviction.get("apiVersion", "").startswith("policy/"):
            raise ApiError(400, "BadRequest", "the object provided is no Eviction")
        if eviction.get("metadata", {}).get("name") != name:
            raise ApiError(400, "BadRequest", "name in URL does not match name in Eviction object")
        options = _options(eviction.get("deleteOptions") or {}, dry_run)
        pod = store.get(PODS, namespace, name)
        if not _disrupts(pod):
            store.delete(PODS, namespace, name, options)
            return success()
        budgets = [budget for budget in store.all(BUDGETS, namespace) if _covers(budget, pod)]
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(500, "", message)
        if budgets and not _spared(budgets[0], pod):
            _check_and_decrement(store, budgets[0], name, bool(options.get("dryRun")))
        if not options.get("dryRun"):
            store.update(PODS, namespace, name, _mark) if _precondition_holds(pod, options) else None
        store.delete(PODS, namespace, name, options)
        return success()


def _options(options: Object, dry_run: list[str]) -> Object:
    stated = options.get("dryRun") or []
    if stated and dry_run and stated != dry_run:
        raise ApiError(
            400, "BadRequest", f"Non-matching dry-run options in request and content: {dry_run} and {stated}"
        )
    return {**options, "dryRun": stated or dry_run}


def _disrupts(pod: Object) -> bool:
    """Say whether evicting a pod can cost anything that a budget counts."""
    over = pod.get("status", {}).get("phase") in {"Succeeded", "Failed", "Pending"}
    return not over and not pod["metadata"].get("deletionTimestamp")


def _covers(budget: Object, pod: Object) -> bool:
    return selects(budget["spec"].get("selector"), pod["metadata"].get("labels") or {})


def is_ready(pod: Object) -> bool:
    """Say whether a pod has the condition ``Ready``."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _spared(budget: Object, pod: Object) -> bool:
    """Say whether the budget lets an unhealthy pod go without being drawn on."""
    if is_ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _check_and_decrement(store: Store, budget: Object, pod: str, dry_run: bool) -> None:
    name, status = budget["metadata"]["name"], budget.get("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        message = f"The disruption budget {name} is still being processed by the server."
        raise too_many_requests(REFUSAL, 10, {"reason": "DisruptionBudget", "message": message})
    allowed = status.get("disruptionsAllowed", 0)
    for wrong, why in (
        (allowed < 0, "pdb disruptions allowed is negative"),
        (
            len(status.get("disruptedPods") or {}) > MOST_DISRUPTED,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ),
    ):
        if wrong:
            raise ApiError(403, "Forbidden", f'poddisruptionbudgets.policy "{name}" is forbidden: {why}')
    if allowed == 0:
        desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        message = f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        raise too_many_requests(REFUSAL, 0, {"reason": "DisruptionBudget", "message": message})
    if dry_run:
        return

    def draw(found: Object) -> None:
        found["status"]["disruptionsAllowed"] = allowed - 1
        found["status"].setdefault("disruptedPods", {})[pod] = timestamp()

    store.update(BUDGETS, budget["metadata"]["namespace"], name, draw)


def _precondition_holds(pod: Object, options: Object) -> bool:
    wanted = (options.get("preconditions") or {}).get("uid")
    return wanted is None or wanted == pod["metadata"]["uid"]


def _mark(pod: Object) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    pod.setdefault("status", {}).setdefault("conditions", []).append(condition)
