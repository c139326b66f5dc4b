"""Dead nodes, the pods that they endanger, and old heartbeats."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan import Options, Settings
from stowplan.answers.solve import Solution, solve_snapshot
from stowplan.models.node_health import dead_nodes, endangered_pods, health_notes
from stowplan.models.snapshot import Snapshot
from stowplan.plans.movability.movable import immovable
from stowplan.settings.problem import make_problem
from tests.support.clusters import node, pod, snapshot

UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
FOR_A_TIME = [{"key": UNREACHABLE["key"], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
FOR_GOOD = [{"key": UNREACHABLE["key"], "operator": "Exists", "effect": "NoExecute"}]


def conditioned(name: str, ready: str, beat: str | None = None, **more: Any) -> dict[str, Any]:
    made = node(name, **more)
    made["status"]["conditions"] = [{"type": "Ready", "status": ready, **({"lastHeartbeatTime": beat} if beat else {})}]
    return made


def cluster(ready: str = "Unknown", **more: Any) -> Snapshot:
    """Return a node that may be dead, with a pod of each sort, and one that is alive."""
    scratch = [{"name": "tmp", "emptyDir": {}}]
    return snapshot(
        nodes=[conditioned("n0", ready, cpu="8", **more), conditioned("n1", "True")],
        pods=[
            pod("web", "n0", cpu="500m", owner="ReplicaSet/web", tolerations=FOR_A_TIME),
            pod("data", "n0", cpu="500m", owner="ReplicaSet/data", tolerations=FOR_A_TIME, volumes=scratch),
            pod("work", "n0", cpu="500m", owner="Job/work", tolerations=FOR_A_TIME),
            pod("keep", "n0", owner="ReplicaSet/keep", tolerations=FOR_GOOD),
            pod("bare", "n0", tolerations=FOR_A_TIME),
            pod("agent", "n0", owner="DaemonSet/agent", tolerations=FOR_GOOD),
            pod("new", None, owner="ReplicaSet/new", tolerations=FOR_A_TIME),
        ],
    )


def solved(found: Snapshot) -> Solution:
    return solve_snapshot(make_problem(found, Settings()), Options(time_limit=5, deterministic=True))


@pytest.mark.parametrize(
    ("ready", "more", "word"),
    [
        ("Unknown", {}, "unreachable"),
        ("False", {}, "not ready"),
        ("True", {"taints": [UNREACHABLE]}, "unreachable"),
    ],
)
def test_a_dead_node_is_seen_and_its_pods_are_named(ready: str, more: dict[str, Any], word: str) -> None:
    found = cluster(ready, **more)
    if word == "not ready":
        assert list(dead_nodes(found)) == ["n0"]
        return
    assert [one.name for one in endangered_pods(found)["n0"]] == ["web", "data", "work", "bare"]
    note = next(health_notes(found))
    assert note == (
        f"node n0 is {word} and takes no pod; 4 pods endangered: default/web, default/data, default/work, default/bare"
    )
    assert note in make_problem(found, Settings()).notes


def test_solve_finds_homes_for_the_pods_of_a_dead_node() -> None:
    found = solved(cluster())
    homes = {key: found.assignment.get(f"default/{key}") for key in ("web", "data", "work", "keep", "bare", "new")}
    assert homes == {"web": "n1", "data": "n1", "work": "n1", "keep": "n0", "bare": "n0", "new": "n1"}
    assert len(found.before.violations) == 1
    assert found.before.violations[0].amount == 3


def test_pods_that_tolerate_a_dead_node_for_good_stay() -> None:
    kept = immovable(cluster(), "eviction-api")
    assert kept["default/keep"].startswith("on a dead node that it tolerates")
    assert set(kept) == {"default/keep", "default/bare", "default/agent"}


def test_a_living_node_endangers_nobody() -> None:
    found = cluster("True")
    assert not dead_nodes(found)
    assert not list(health_notes(found))
    assert "default/data" in immovable(found, "eviction-api")


def test_pods_of_stateful_sets_wait_for_the_node_to_be_gone() -> None:
    found = snapshot(nodes=[conditioned("n0", "Unknown")], pods=[pod("db-0", "n0", owner="StatefulSet/db")])
    assert "come up elsewhere only once the node is deleted" in list(health_notes(found))[1]


def test_an_old_heartbeat_is_said() -> None:
    found = snapshot(
        nodes=[
            conditioned("n0", "True", "2024-01-01T10:00:00Z"),
            conditioned("n1", "True", "2024-01-01T10:37:10Z"),
            conditioned("n2", "True", "2024-01-01T10:30:00Z"),
        ],
        pods=[],
    )
    assert list(health_notes(found)) == [
        "the last heartbeat of node n0 is 37 minutes older than the newest: it may not be ready"
    ]
