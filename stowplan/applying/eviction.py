"""One eviction: look, write down, ask, and understand the answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from stowplan.applying.journal import now
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ObservedObject, look_at_pod
from stowplan.applying.records import AnswerRecord, IntentRecord
from stowplan.cluster.kubectl import ClusterError, Kubectl, NoAnswer, Refusal
from stowplan.models.plan import MOVE_ANNOTATION, PLAN_ANNOTATION, MoveDocument

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts at one pod: the pause doubles from the first to the longest."""

FOR_NOW = {"TooManyRequests", "Timeout", "ServerTimeout", "ServiceUnavailable", "InternalError", ""}
"""Reasons of a refusal that may be gone later. Conflict and NotFound are told by a second look at the pod."""
FOR_GOOD = "more than one PodDisruptionBudget"
"""What the message of an internal error says if no later attempt will fare better."""


def eviction_path(namespace: str, name: str) -> str:
    """Return the path of a pod's eviction subresource."""
    return f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"


def eviction(
    version: str, namespace: str, name: str, uid: str, *, plan: str, move: str, dry_run: bool = False
) -> dict[str, object]:
    """Return an ``Eviction`` that is valid for the pod of this uid only.

    Its annotations name plan and move: the audit log of an API server keeps them at the level ``Request``.
    """
    options: dict[str, object] = {"preconditions": {"uid": uid}}
    if dry_run:
        options["dryRun"] = ["All"]
    about = {PLAN_ANNOTATION: plan, MOVE_ANNOTATION: move}
    meta = {"name": name, "namespace": namespace, "annotations": about}
    return {"apiVersion": version, "kind": "Eviction", "metadata": meta, "deleteOptions": options}


def eviction_version(kubectl: Kubectl) -> str:
    """Return the ``apiVersion`` of ``Eviction`` that the server takes, as its discovery says."""
    for resource in json.loads(kubectl.raw("/api/v1")).get("resources", ()):
        if resource.get("name") == "pods/eviction":
            return f"{resource.get('group') or 'policy'}/{resource.get('version') or 'v1beta1'}"
    raise ClusterError("the server has no pods/eviction")


@dataclass
class Evictor:
    """Evicts pods one by one, and writes down what comes of it.

    Parameters
    ----------
    scale
        Factor on pauses between attempts.
    """

    kubectl: Kubectl
    ledger: ApplyLedger
    version: str
    scale: float = 1.0
    _failures: dict[str, int] = field(default_factory=dict)

    def evict(self, move: MoveDocument) -> float | None:
        """Take one attempt at a move; return seconds to wait before the next, or ``None`` if its result is final.

        The pod is looked at first. If it has left or is leaving there is nothing to ask for: either a former attempt
        got through and its answer was lost, or it was deleted otherwise. Asking with the uid makes sure that no other
        pod of the same name is ever evicted.
        """
        namespace = move.pod.namespace
        try:
            pod = look_at_pod(self.kubectl, namespace, self.ledger.name(move))
        except ClusterError as error:
            return self._again(move, error)
        uid = self.ledger.uid(move) or (pod.uid if pod is not None else "")
        if _left(pod, uid):
            asked = self.ledger.progress[move.id].intent is not None
            self._answer(move, "gone", "" if asked else "another client deleted the pod")
            return None
        name = self.ledger.name(move)
        self.ledger.write(IntentRecord(at=now(), move=move.id, namespace=namespace, name=name, uid=uid))
        body = eviction(self.version, namespace, name, uid, plan=self.ledger.plan.id, move=move.id)
        try:
            self.kubectl.post(eviction_path(namespace, name), body, f"evict pod {namespace}/{name}")
        except Refusal as error:
            return self._refused(move, uid, error)
        except NoAnswer as error:
            return self._look_again(move, uid, "unknown", error)
        self._answer(move, "evicted")
        return None

    def _refused(self, move: MoveDocument, uid: str, error: Refusal) -> float | None:
        if error.reason in {"Conflict", "NotFound"}:
            return self._look_again(move, uid, "later", error)
        if error.reason in FOR_NOW and FOR_GOOD not in error.message:
            return self._again(move, error, "later")
        self._answer(move, "refused", error.message)
        return None

    def _look_again(self, move: MoveDocument, uid: str, otherwise: str, error: ClusterError) -> float | None:
        """Tell by the pod what an answer did not."""
        try:
            pod = look_at_pod(self.kubectl, move.pod.namespace, self.ledger.name(move))
        except ClusterError:
            return self._again(move, error, otherwise)
        if _left(pod, uid):
            self._answer(move, "gone", error.message)
            return None
        return self._again(move, error, otherwise)

    def _again(self, move: MoveDocument, error: ClusterError, outcome: str = "") -> float:
        if outcome:
            self._answer(move, outcome, error.message)
        failures = self._failures[move.id] = self._failures.get(move.id, 0) + 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(failures - 1, 10)))
        if isinstance(error, Refusal) and error.retry_after is not None:
            pause = float(error.retry_after)
        return pause * self.scale

    def _answer(self, move: MoveDocument, outcome: str, message: str = "") -> None:
        content = {"at": now(), "move": move.id, "outcome": outcome, "message": message}
        self.ledger.write(AnswerRecord.model_validate(content))


def _left(pod: ObservedObject | None, uid: str) -> bool:
    return pod is None or pod.uid != uid or pod.leaving
