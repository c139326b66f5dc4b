"""In-place resize: what a pod holds where it runs, and what its successor requests elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from stowplan.plugins_compat.requests import CPU
from stowplan.plugins_compat.simulate import simulate
from tests.support.clusters import Manifest, node, pod, snapshot

INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


def resized(spec: str, actuated: str, allocated: str | None = None, **status: Any) -> Manifest:
    """Build a pod on n1 that requests, runs with and was admitted with these amounts of CPU."""
    manifest = pod("p", at="n1", cpu=spec)
    state = {"name": "main", "resources": {"requests": {"cpu": actuated}}}
    if allocated is not None:
        state["allocatedResources"] = {"cpu": allocated}
    manifest["status"] |= {"containerStatuses": [state], **status}
    return manifest


def cluster(*pods: Manifest) -> Snapshot:
    return snapshot(nodes=[node("n1", cpu="4"), node("n2", cpu="4")], pods=list(pods))


def held(snap: Snapshot, release: Release = K36) -> int:
    state = ClusterState(snap, release)
    state.fill(p for p in snap.pods if p.node_name)
    return int(state.requested[state.resources[CPU], 0])


@pytest.mark.parametrize(
    ("manifest", "millicores"),
    [
        (resized("1", "1"), 1000),
        (resized("3", "1"), 3000),  # growing: the spec counts
        (resized("1", "3"), 3000),  # shrinking: what still runs counts
        (resized("1", "1", "2"), 2000),  # admitted, not yet actuated
        (resized("3", "1", conditions=DEFERRED), 3000),
        (resized("3", "1", conditions=INFEASIBLE), 1000),  # the kubelet said no: the spec does not count
        (resized("3", "1", "2", conditions=[*DEFERRED, *INFEASIBLE]), 3000),  # the first condition decides
    ],
)
def test_what_a_pod_holds(manifest: Manifest, millicores: int) -> None:
    snap = cluster(manifest)
    assert held(snap) == millicores
    assert held(snap, K24) == 1000 * int(manifest["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def test_a_status_without_resources_says_nothing() -> None:
    manifest = pod("p", at="n1", cpu="3")
    manifest["status"] |= {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "1"}}]}
    assert held(cluster(manifest)) == 3000


def test_requests_of_the_pod_as_a_whole_are_resized_too() -> None:
    manifest = pod("p", at="n1", cpu="1", resources={"requests": {"cpu": "2"}})
    manifest["status"] |= {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "1"}}
    assert held(cluster(manifest)) == 3000


def test_its_successor_requests_what_the_spec_says() -> None:
    snap = cluster(resized("3", "1", conditions=INFEASIBLE), pod("big", at="n2", cpu="2"))
    profile = default_profile(K36)
    outcome = simulate(snap, profile, [snap.pods[0]], {"default/big": "n2"})
    assert outcome.assignment["default/p"] == "n1"
    state = ClusterState(snap, K36)
    state.put(snap.pods[0], 1, new=True)
    assert state.requested[state.resources[CPU], 1] == 3000
    state.take(snap.pods[0], 1)
    assert not state.requested.any()


def test_the_size_that_counts_decides_about_others() -> None:
    shrinking = cluster(resized("1", "3"), pod("new", cpu="2"))
    framework = Framework(default_profile(K36), ClusterState(shrinking, K36))
    framework.state.fill(p for p in shrinking.pods if p.node_name)
    diagnosis = framework.run_filters(framework.cycle(shrinking.pods[1]))
    assert diagnosis.feasible.tolist() == [1]
    assert np.count_nonzero(diagnosis.codes) == 1


def test_the_optimizer_leaves_a_pod_in_place_while_its_size_depends_on_where_it_is() -> None:
    for manifest, stays in ((resized("1", "3"), True), (resized("1", "1"), False)):
        snap = cluster(manifest)
        framework = Framework(default_profile(K36), ClusterState(snap, K36))
        assert bool(framework.plugins["NodeResourcesFit"].refuses(snap.pods[0])) is stays
