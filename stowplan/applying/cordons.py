"""Nodes that a plan wants cordoned: some for good, some for as long as a wave lasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stowplan.applying.journal import now
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import look_at
from stowplan.applying.options import Halt
from stowplan.applying.records import CordonRecord, UncordonRecord
from stowplan.cluster.kubectl import ClusterError, Kubectl
from stowplan.models.errors import InputError
from stowplan.models.plan import WaveDocument

FOR_GOOD = 0
"""Number in place of a wave for cordons that stay."""


@dataclass
class Cordons:
    """Cordons nodes and opens them again; a node that was cordoned otherwise stays so."""

    kubectl: Kubectl
    ledger: ApplyLedger
    tell: Callable[[str], None]
    _closed_for_good: bool = False

    def close_for_good(self) -> None:
        """Cordon what the plan wants cordoned from its beginning on; once a run, whatever was done before."""
        for node in () if self._closed_for_good else self.ledger.plan.cordon:
            self._close(FOR_GOOD, node)
        self._closed_for_good = True

    def close(self, wave: WaveDocument) -> None:
        """Cordon what a wave wants cordoned."""
        for node in wave.cordon:
            self._close(wave.number, node)

    def open(self, wave: int | None = None) -> list[str]:
        """Open the nodes that were cordoned for a wave, or for any wave; return what went wrong, one line each."""
        problems: list[str] = []
        for number, node in self.ledger.closed:
            if number == FOR_GOOD or wave not in (None, number):
                continue
            try:
                self.kubectl.cordon(node, False)
                self.ledger.write(UncordonRecord(at=now(), wave=number, node=node))
            except (ClusterError, InputError) as error:
                problems.append(str(error))
            else:
                self.tell(f"wave {number}: uncordoned {node}")
        return problems

    def _close(self, wave: int, node: str) -> None:
        """Write down that a node is going to be cordoned, unless it is, and do it."""
        found = look_at(self.kubectl, "node", node)
        if found is None:
            raise Halt(f"node {node}, which is to be cordoned, is gone")
        if found.spec.unschedulable:
            return
        if (wave, node) not in self.ledger.closed:
            self.ledger.write(CordonRecord(at=now(), wave=wave, node=node))
        self.kubectl.cordon(node, True)
        self.tell(f"wave {wave}: cordoned {node}" if wave else f"cordoned {node}, for good")
