"""NodeDeclaredFeatures: which features pods ask for, and which of a node's list upstream sees."""

from __future__ import annotations

import pytest

from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.plugins.node_declared_features import (
    HOST_NETWORK_USERS,
    KNOWN,
    RESTART_ALL,
    declared,
    required,
)
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36
from stowplan.plugins_compat.simulate import simulate
from tests.support.clusters import Manifest, node, pod, snapshot

RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]


def one(manifest: Manifest) -> Pod:
    return snapshot(nodes=[], pods=[manifest]).pods[0]


@pytest.mark.parametrize(
    ("manifest", "features"),
    [
        (pod("p"), set()),
        (pod("p", hostNetwork=True), set()),
        (pod("p", hostNetwork=True, hostUsers=True), set()),
        (pod("p", hostUsers=False), set()),
        (pod("p", hostNetwork=True, hostUsers=False), {HOST_NETWORK_USERS}),
        (pod("p", initContainers=[{"name": "i", "restartPolicyRules": RULES}]), {RESTART_ALL}),
        (pod("p", initContainers=[{"name": "i", "restartPolicyRules": [{"action": "Restart"}]}]), set()),
    ],
)
def test_what_a_pod_asks_for(manifest: Manifest, features: set[str]) -> None:
    assert required(one(manifest)) == features


def test_unknown_names_are_ignored_and_unsorted_ones_missed() -> None:
    assert declared(KNOWN) == set(KNOWN)
    assert declared(("Another", RESTART_ALL, "Zeta")) == {RESTART_ALL}
    assert declared((HOST_NETWORK_USERS, RESTART_ALL)) == {HOST_NETWORK_USERS}


def test_it_decides_in_1_36_only() -> None:
    old, new = node("old"), node("new", cpu="1")
    new["status"]["declaredFeatures"] = [HOST_NETWORK_USERS]
    snap = snapshot(nodes=[old, new], pods=[pod("p", cpu="100m", hostNetwork=True, hostUsers=False)])
    for release, chosen in ((K36, "new"), (K24, "old")):
        assert simulate(snap, default_profile(release, "first"), snap.pods, {}).assignment["default/p"] == chosen
