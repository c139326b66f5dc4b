"""Somebody who watches a plan being carried out, and knows nothing of how it was made.

The cluster is a list of pod objects. Every event changes one of them, and every check is made on a cluster built
anew from the list: the filters on a fresh framework, node room and budgets by arithmetic written here once more.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydantic import TypeAdapter

from stowplan.models.kubernetes import Pod, PodStatus
from stowplan.models.plan import MoveDocument, Plan, WaveDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.status import Code

_status = TypeAdapter(PodStatus).validate_python


class Bystander:
    """Watches; `complaints` says what went wrong."""

    def __init__(self, cluster: Snapshot, profile: Profile) -> None:
        self.cluster = cluster
        self.profile = profile
        self.pods: dict[str, Pod] = {p.metadata.uid: p for p in cluster.pods if not p.finished}
        self.leaving: dict[str, Pod] = {}
        self.complaints: list[str] = []
        self.made = 0
        self.over = {node: room for node, room in self._room().items() if room < 0}

    # -- checks -------------------------------------------------------------------------------------------

    def look(self, after: str) -> None:
        """Complain of a node that holds more than it has, and more than it held over at the beginning."""
        for (node, resource), room in self._room().items():
            if room < min(0, self.over.get((node, resource), 0)):
                self.complaints.append(f"{after}: {node} is short of {-room} {resource}")

    def _room(self) -> dict[tuple[str, str], int]:
        room: defaultdict[tuple[str, str], int] = defaultdict(int)
        for node in self.cluster.nodes:
            for resource, amount in node.allocatable.items():
                room[node.name, resource] = amount
        for p in self.pods.values():
            if p.node_name:
                room[p.node_name, "pods"] -= 10**9
                for container in p.spec.containers:
                    for resource, amount in container.requests.items():
                        room[p.node_name, resource] -= amount
        return room

    def admits(self, p: Pod, target: str) -> str:
        """Return what the filters have against a pod on a node, empty if nothing."""
        others = tuple(o for o in self.pods.values() if o.metadata.uid != p.metadata.uid)
        now = replace(self.cluster, pods=others)
        framework = populated(now, self.profile, {o.key: o.node_name for o in others if o.node_name})
        verdict = framework.run_filters(framework.cycle(p), np.array([now.node_index[target]]))
        if verdict.rejected is not None:
            return f"{verdict.rejected.plugin}: {verdict.rejected.reasons}"
        return "" if verdict.codes[0] == Code.SUCCESS else f"{verdict.why(0).plugin}: {verdict.why(0).reasons}"

    def may_evict(self, p: Pod) -> str:
        """Return what the budgets have against an eviction, empty if nothing."""
        if p.phase == "Pending" or p.terminating:
            return ""
        found = [
            b
            for b in self.cluster.pod_disruption_budgets
            if b.spec and b.spec.selector and b.spec.selector.matches(p.metadata.labels)
        ]
        if len(found) > 1:
            return "two budgets"
        for budget in found:
            spec = budget.spec
            assert spec is not None
            assert spec.selector is not None
            mine = [o for o in self.pods.values() if spec.selector.matches(o.metadata.labels)]
            owners = {o.metadata.controller.name for o in mine if o.metadata.controller}
            sets = {w.metadata.name: w for w in (*self.cluster.replica_sets, *self.cluster.stateful_sets)}
            scale = sum((sets[name].spec.replicas or 0) for name in owners)  # type: ignore[union-attr]
            most = spec.max_unavailable
            if most is not None:
                expected = scale
                wanted = scale - (most if isinstance(most, int) else math.ceil(int(most[:-1]) / 100 * scale))
            else:
                least = spec.min_available
                assert least is not None
                expected = len(mine) if isinstance(least, int) else scale
                wanted = least if isinstance(least, int) else math.ceil(int(least[:-1]) / 100 * scale)
            wanted = max(0, wanted)
            healthy = sum(o.ready and not o.terminating for o in mine)
            if not p.ready and (spec.unhealthy_pod_eviction_policy == "AlwaysAllow" or healthy >= wanted > 0):
                continue
            if expected <= 0 or healthy - wanted <= 0:
                return f"{budget.metadata.name} wants {wanted} of {healthy} healthy pods"
        return ""

    # -- events -----------------------------------------------------------------------------------------------

    def watch(self, plan: Plan, rng: random.Random) -> list[str]:
        """Carry the plan out in a random order of all events of each wave; return the complaints."""
        tenants = {(p.namespace, p.name): p.metadata.uid for p in self.pods.values()}
        for wave in plan.waves:
            self._wave(wave, tenants, rng)
        return self.complaints

    def _wave(self, wave: WaveDocument, tenants: dict[tuple[str, str], str], rng: random.Random) -> None:
        open_moves: list[tuple[MoveDocument, list[str]]] = []
        for move in wave.moves:
            events = {
                "evict": ["evict", "make", "bind", "ready", "gone"],
                "place": ["bind", "ready"],
                "remove": ["evict", "make", "gone"],
            }[move.kind]
            open_moves.append((move, list(events)))
        while open_moves:
            position = rng.randrange(len(open_moves))
            move, events = open_moves[position]
            event = rng.choice(_enabled(move, events))
            events.remove(event)
            self._happen(event, move, tenants)
            self.look(f"wave {wave.number}, {event} of {move.pod.key}")
            if not events:
                open_moves.pop(position)

    def _happen(self, event: str, move: MoveDocument, tenants: dict[tuple[str, str], str]) -> None:
        key = (move.pod.namespace, move.pod.name)
        uid = tenants[key]
        if event == "evict":
            p = self.pods[uid]
            if p.node_name != move.source:
                self.complaints.append(f"{p.key} stands on {p.node_name}, not on {move.source}")
            if why := self.may_evict(p):
                self.complaints.append(f"eviction of {p.key}: {why}")
            self.leaving[move.id] = p
            self.pods[uid] = replace(p, metadata=replace(p.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
        elif event == "make":
            self.made += 1
            old = self.leaving[move.id]
            name = old.name if move.same_name else f"{old.name}-r{self.made}"
            fresh = replace(old.metadata, name=name, uid=f"made-{self.made}", deletion_timestamp=None)
            made = replace(
                old, metadata=fresh, spec=replace(old.spec, node_name=None), status=_status({"phase": "Pending"})
            )
            self.pods[made.metadata.uid] = made
            tenants[key] = made.metadata.uid
        elif event == "bind":
            assert move.target is not None
            p = self.pods[uid]
            if why := self.admits(p, move.target):
                self.complaints.append(f"{move.id} {p.key} on {move.target}: {why}")
            self.pods[uid] = replace(
                p, spec=replace(p.spec, node_name=move.target), status=_status({"phase": "Running"})
            )
        elif event == "ready":
            ready = _status({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
            self.pods[uid] = replace(self.pods[uid], status=ready)
        elif event == "gone":
            del self.pods[self.leaving[move.id].metadata.uid]


def _enabled(move: MoveDocument, events: Sequence[str]) -> list[str]:
    """Return the events that may come next."""
    if "evict" in events:
        return ["evict"]
    found = []
    gone = "gone" not in events
    if "gone" in events:
        found.append("gone")
    if "make" in events:
        if gone or not move.same_name:
            found.append("make")
    elif "bind" in events:
        if gone or move.kind == "place" or not (move.same_name or move.waits):
            found.append("bind")
    elif "ready" in events:
        found.append("ready")
    return found
