"""The scheduler that decides as kube-scheduler does, extenders included."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import replace

from stowplan.instances.documents import Document
from stowplan.instances.manifests import READ, read_snapshot
from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.scheduler import schedule
from tests.support.api_server.errors import Object
from tests.support.api_server.resources import BY_KIND, PODS
from tests.support.api_server.store import Store


class ByFramework:
    """Runs one cycle of the re-implemented framework for each pending pod.

    Parameters
    ----------
    chance
        Decides which of several nodes with the highest score is taken, and which of several nodes that are equally good
        to preempt; without it, the profile does.
    preempts
        Whether a pod that fits nowhere has pods of lower priority deleted, and is nominated for their node.
    """

    def __init__(self, profile: Profile, chance: random.Random | None = None, *, preempts: bool = False) -> None:
        self.profile = profile if chance is None else replace(profile, tie_break="uniform")
        self.chance = chance
        self.preempts = preempts

    def __call__(self, store: Store, pod: Object) -> str | None:
        """Return the node that the profile chooses now."""
        items = [found for kind in READ if kind in BY_KIND for found in store.all(BY_KIND[kind])]
        data = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode()
        snapshot = read_snapshot(iter([Document("store", data)]))
        standing = {p.key: p.node_name for p in snapshot.pods if p.node_name and not p.finished}
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        queue = [p for p in snapshot.pods if p.key == key]
        seed = self.chance.getrandbits(32) if self.chance is not None else 0
        framework = populated(snapshot, self.profile, standing, seed=seed)
        waiting = [p for p in snapshot.pods if not p.node_name and not p.finished]
        framework.state.nominator.nominate_pending(waiting, snapshot.node_index)
        if not self.preempts:
            framework.post_filters = []
        try:
            decisions = list(schedule(framework, queue))
        finally:
            for extender in framework.extenders.all:
                extender.close()
        preempting = next((decision for decision in decisions if decision.victims), None)
        if preempting is not None:
            assert preempting.node is not None
            _preempt(store, pod, snapshot.nodes[preempting.node].name, preempting.victims)
            return None
        return snapshot.nodes[decisions[0].node].name if decisions and decisions[0].node is not None else None


def _preempt(store: Store, pod: Object, node: str, victims: Iterable[Pod]) -> None:
    """Delete the victims, marked as the scheduler's; the pod is nominated, and tried again when they are gone."""

    def mark(found: Object) -> None:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        found["status"].setdefault("conditions", []).append(condition)

    for victim in victims:
        if not store.get(PODS, victim.namespace, victim.name)["metadata"].get("deletionTimestamp"):
            store.update(PODS, victim.namespace, victim.name, mark)
            store.delete(PODS, victim.namespace, victim.name, {})
    meta = pod["metadata"]
    store.update(
        PODS, meta["namespace"], meta["name"], lambda found: found["status"].update({"nominatedNodeName": node})
    )
