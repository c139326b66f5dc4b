"""What a run does, as Events of the pods that it moves: ``kubectl get events`` shows who evicted a pod, and why."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.records import AnswerRecord, LandedRecord, Record
from stowplan.cluster.kubectl import ClusterError, Kubectl, Refusal
from stowplan.models.moments import stamp
from stowplan.models.plan import MoveDocument

REPORTER = "stowplan.io/apply"
PATIENCE = 5.0
"""Seconds that an Event may take: it is worth less than the wave that waits for it."""
LONGEST_NOTE = 1024
"""Bytes that the API takes."""


@dataclass
class EventWriter:
    """Writes an Event for each move when its pod is evicted or refused, and when its replacement has landed.

    An Event that cannot be written is told once and costs nothing else; without the right to write them, none is tried
    again. Names are derived from plan and move, so a run that goes on after a kill writes none twice.
    """

    kubectl: Kubectl
    ledger: ApplyLedger
    tell: Callable[[str], None]
    _moves: dict[str, MoveDocument] = field(init=False)
    _silent: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.kubectl = replace(self.kubectl, timeout=min(self.kubectl.timeout, PATIENCE))
        self._moves = {move.id: move for move in self.ledger.plan.moves}

    def announce(self, record: Record) -> None:
        """Write the Event of a record, if it is of a kind that has one."""
        if self._silent or (event := self._event(record)) is None:
            return
        path = f"/apis/events.k8s.io/v1/namespaces/{event['metadata']['namespace']}/events"
        try:
            self.kubectl.post(path, event, f"write an Event of {event['regarding']['name']}")
        except Refusal as error:
            if error.reason == "AlreadyExists":
                return
            self._silent = error.reason in {"Forbidden", "NotFound"}
            self.tell(f"{error}; {'no more Events are written' if self._silent else 'the Event is left out'}")
        except ClusterError as error:
            self._silent = True
            self.tell(f"{error}; no more Events are written")

    def _event(self, record: Record) -> dict[str, Any] | None:
        if isinstance(record, AnswerRecord):
            move = self._moves[record.move]
            name, uid = self.ledger.name(move), self.ledger.uid(move)
            where = f"from {move.source} to {move.target}" if move.target is not None else f"off {move.source}"
            if record.outcome in {"evicted", "gone"}:
                because = f": {move.why}" if move.why else ""
                return self._content(move, name, uid, "Evicting", "Evicted", f"moved {where}{because}")
            if record.outcome == "refused":
                note = f"not moved {where}: {record.message}"
                return self._content(move, name, uid, "Evicting", "EvictionRefused", note, warns=True)
        elif isinstance(record, LandedRecord):
            move = self._moves[record.move]
            if record.planned:
                note = f"on {record.node} as planned"
                return self._content(move, record.pod, record.uid, "Placing", "Landed", note)
            note = f"on {record.node}, and not on {move.target} as planned"
            return self._content(move, record.pod, record.uid, "Placing", "LandedElsewhere", note, warns=True)
        return None

    def _content(
        self, move: MoveDocument, name: str, uid: str, action: str, reason: str, note: str, *, warns: bool = False
    ) -> dict[str, Any]:
        plan = self.ledger.plan.id
        ident = hashlib.sha256(f"{plan} {move.id} {reason}".encode()).hexdigest()[:20]
        text = f"plan {plan}, move {move.id}: {note}".encode()[:LONGEST_NOTE].decode(errors="ignore")
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"stowplan-{ident}", "namespace": move.pod.namespace},
            "eventTime": stamp(datetime.now(UTC), "microseconds"),
            "type": "Warning" if warns else "Normal",
            "action": action,
            "reason": reason,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": move.pod.namespace,
                "name": name,
                **({"uid": uid} if uid else {}),
            },
            "note": text,
            "reportingController": REPORTER,
            "reportingInstance": socket.gethostname()[:128] or "unknown",
        }
