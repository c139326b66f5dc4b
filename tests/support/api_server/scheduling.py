"""Where pending pods go: a fixed map, the tokens of a plan, or whatever else says a node for a pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from stowplan.models.plan import TokenDocument
from stowplan.models.quantity import parse_quantity
from tests.support.api_server.errors import Object
from tests.support.api_server.resources import NODES, PODS
from tests.support.api_server.store import Store

Scheduler = Callable[[Store, Object], str | None]
"""Says the node of a pending pod, or ``None`` if it has to wait."""


def first_fit(store: Store, pod: Object) -> str | None:
    """Take the first node that has room."""
    return next(iter(feasible(store, pod)), None)


def emptiest(store: Store, pod: Object) -> str | None:
    """Take the node with the fewest pods, as a scheduler that nobody steers likes to."""
    crowd = Counter(other["spec"].get("nodeName") for other in store.all(PODS))
    return min(feasible(store, pod), key=lambda node: crowd[node], default=None)


class ByMap:
    """Sends the pods of an owner, or a pod of a name, to nodes in turn; others where there is room.

    Parameters
    ----------
    nodes
        By name of the pod, or else of its owner: node names, the last of which is taken again and again.
    """

    def __init__(self, nodes: Mapping[str, Iterable[str]]) -> None:
        self.nodes = {name: list(found) for name, found in nodes.items()}

    def __call__(self, store: Store, pod: Object) -> str | None:
        owner = _owner(pod).get("name", "")
        turn = self.nodes.get(pod["metadata"]["name"]) or self.nodes.get(owner)
        if not turn:
            return first_fit(store, pod)
        if turn[0] not in feasible(store, pod):
            return None
        return turn.pop(0) if len(turn) > 1 else turn[0]


class ByTokens:
    """Hands out the tokens of a plan, and places by `fallback` what has none.

    A token whose node has no room at the moment makes the pod wait, as a required affinity would.
    """

    def __init__(self, tokens: Iterable[TokenDocument], fallback: Scheduler = emptiest) -> None:
        self.tokens = list(tokens)
        self.left = {index: token.count for index, token in enumerate(self.tokens)}
        self.fallback = fallback

    def __call__(self, store: Store, pod: Object) -> str | None:
        mine = [i for i, left in self.left.items() if left and self._is_for(self.tokens[i], pod)]
        if not mine:
            return self.fallback(store, pod)
        open_nodes = feasible(store, pod)
        for index in mine:
            if self.tokens[index].target in open_nodes:
                self.left[index] -= 1
                return self.tokens[index].target
        return None

    @staticmethod
    def _is_for(token: TokenDocument, pod: Object) -> bool:
        meta = pod["metadata"]
        if token.namespace != meta["namespace"]:
            return False
        if token.pod is not None:
            return token.pod == meta["name"]
        hashes = {meta.get("labels", {}).get(key) for key in ("pod-template-hash", "controller-revision-hash")}
        return token.owner_uid == _owner(pod).get("uid") and (not token.template_hash or token.template_hash in hashes)


def feasible(store: Store, pod: Object) -> list[str]:
    """Return the nodes that are open and have the CPU, the memory and the place for one more pod."""
    needs = requests(pod)
    taken: dict[str, Counter[str]] = {}
    for other in store.all(PODS):
        if other["spec"].get("nodeName") and other.get("status", {}).get("phase") not in {"Succeeded", "Failed"}:
            taken.setdefault(other["spec"]["nodeName"], Counter()).update(requests(other))
    undaunted = {"operator": "Exists"} in (pod["spec"].get("tolerations") or ())
    return [
        node["metadata"]["name"]
        for node in store.all(NODES)
        if (undaunted or not node.get("spec", {}).get("unschedulable"))
        and all(
            taken.get(node["metadata"]["name"], Counter())[resource] + amount
            <= parse_quantity(node["status"]["allocatable"].get(resource, "0"))
            for resource, amount in needs.items()
        )
    ]


def requests(pod: Object) -> Counter[str]:
    """Return what a pod takes of a node, in nanos, the place for itself included."""
    found: Counter[str] = Counter({"pods": int(parse_quantity("1"))})
    for container in pod["spec"]["containers"]:
        for resource, amount in container.get("resources", {}).get("requests", {}).items():
            found[resource] += parse_quantity(amount)
    return found


def _owner(pod: Object) -> Object:
    return next((o for o in pod["metadata"].get("ownerReferences") or () if o.get("controller")), {})
