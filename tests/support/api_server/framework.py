"""The scheduler that decides as kube-scheduler does, extenders included."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from stowplan.instances.documents import Document
from stowplan.instances.manifests import READ, read_snapshot
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.scheduler import schedule
from tests.support.api_server.errors import Object
from tests.support.api_server.resources import BY_KIND
from tests.support.api_server.store import Store


class ByFramework:
    """Runs one cycle of the re-implemented framework for each pending pod.

    Parameters
    ----------
    chance
        Decides which of several nodes with the highest score is taken; without it, the profile does.
    """

    def __init__(self, profile: Profile, chance: random.Random | None = None) -> None:
        self.profile = profile if chance is None else replace(profile, tie_break="uniform")
        self.chance = chance

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
        framework.post_filters = []
        try:
            chosen = [decision.node for decision in schedule(framework, queue)]
        finally:
            for extender in framework.extenders.all:
                extender.close()
        return snapshot.nodes[chosen[0]].name if chosen and chosen[0] is not None else None
