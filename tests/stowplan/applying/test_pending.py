"""Pods that wait for a node and get it in another order than planned."""

from __future__ import annotations

from pathlib import Path

from stowplan.models.plan import Plan
from tests.support.api_server import ByMap
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import deployment, namespace, node
from tests.support.api_server.resources import PODS
from tests.support.applying import scene
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

pytestmark = needs_kubectl


def manifests() -> list[Object]:
    """Return three nodes, and a Deployment whose three pods wait."""
    pods = deployment("shop", "big", ["", "", ""])
    return [namespace("kube-system"), namespace("shop"), *(node(name) for name in ("n1", "n2", "n3")), *pods]


def make(objects: list[Object]) -> Plan:
    """Return a plan with a node for each of them, in two waves."""
    m = Moving(objects)
    names = sorted(m.pods)
    return plan([m.move(names[0], "n1"), m.move(names[1], "n2")], [m.move(names[2], "n3")])


def test_pending_pods_of_one_owner_may_swap_their_nodes(home: Path) -> None:
    turned = ByMap({"big-5d5b-aaaab": ["n2"], "big-5d5b-aaaac": ["n3"], "big-5d5b-aaaad": ["n1"]})
    with scene(home, manifests(), make, lambda plan: turned) as shop:
        assert shop.run().stopped == ""
        nodes = {p["metadata"]["name"][-1]: p["spec"].get("nodeName") for p in shop.server.store.all(PODS)}
        assert nodes == {"b": "n2", "c": "n3", "d": "n1"}
        assert not shop.server.evictions


def test_a_pending_pod_on_no_planned_node_still_stops_the_plan(home: Path) -> None:
    astray = ByMap({"big-5d5b-aaaab": ["n2"], "big-5d5b-aaaac": ["n2"], "big-5d5b-aaaad": ["n1"]})
    with scene(home, manifests(), make, lambda plan: astray) as shop:
        assert "n2" in shop.run().stopped
