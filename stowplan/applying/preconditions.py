"""A look at the whole cluster before a wave: is it still what the plan expects?"""

from __future__ import annotations

from dataclasses import dataclass, field

from stowplan.applying.drift import drift
from stowplan.applying.dropped import changed_workloads
from stowplan.applying.dry_run import dry_run_on
from stowplan.applying.jobs import failing_jobs
from stowplan.applying.journal import now
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ClusterView
from stowplan.applying.records import DroppedRecord, LandedRecord
from stowplan.applying.siblings import siblings_in_place
from stowplan.cluster.kubectl import Kubectl
from stowplan.cluster.snapshot import kinds_served, take
from stowplan.instances.documents import Document
from stowplan.instances.manifests import read_snapshot
from stowplan.models.plan import Plan, WaveDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.profile import Profile

NEEDED = ("nodes", "pods", "poddisruptionbudgets.policy")
"""Kinds that have to be seen; of all others, what is not seen is taken for not there."""


@dataclass
class PreconditionCheck:
    """Looks at a cluster, and holds it against a plan."""

    plan: Plan
    ledger: ApplyLedger
    kubectl: Kubectl
    profile: Profile
    _kinds: tuple[str, ...] = field(default=(), init=False)

    def look(self, wave: WaveDocument) -> tuple[ClusterView, list[str]]:
        """Return what is seen, and what of it keeps the plan from going on with a wave, one line each.

        A wave that was begun already is not dry-run: the cluster is in the midst of it.

        Raises
        ------
        ClusterError
            If the cluster cannot be seen.
        """
        snapshot = self._look()
        view = ClusterView(snapshot)
        problems = drift(self.plan, self.ledger, view, wave.number)
        problems += failing_jobs(self.plan, self.ledger, snapshot)
        if not problems and wave.number not in self.ledger.known:
            problems = dry_run_on(wave, self.ledger, snapshot.on_known_nodes(), self.profile)
        return view, problems

    def leave_out(self, view: ClusterView, wave: WaveDocument) -> list[str]:
        """Leave moves from a wave on out whose workloads have changed, and say which, one line each.

        A move is over too whose pod waits while a pod like it has got its node.
        """
        lines: list[str] = []
        for move, pod in list(siblings_in_place(self.ledger, view, wave.number)):
            content = {"move": move.id, "pod": pod.name, "uid": pod.metadata.uid, "node": pod.node_name}
            unready = {} if pod.ready else {"unready": "before"}
            self.ledger.write(LandedRecord.model_validate({"at": now(), "planned": True, **content, **unready}))
            lines.append(f"{pod.key} is on {pod.node_name}, which the plan has for {move.pod.key} or a pod like it")
        found = changed_workloads(self.ledger, view, self.kubectl, wave.number)
        for move in self.plan.moves:
            if why := found.get(move.id):
                self.ledger.write(DroppedRecord(at=now(), move=move.id, why=why))
                lines.append(f"{move.pod.key} is left out: {why}")
        return lines

    def snapshot(self) -> Snapshot:
        """Return the whole cluster, without pods on nodes that are gone.

        Raises
        ------
        ClusterError
            If the cluster cannot be seen.
        """
        return self._look().on_known_nodes()

    def _look(self) -> Snapshot:
        self._kinds = self._kinds or kinds_served(self.kubectl)
        data = take(self.kubectl, self._kinds, needed=NEEDED).data
        return read_snapshot(iter([Document("kubectl get", data)]), check=False)
