"""What classes miss that stay as they are: a move of another pod may fill a node, empty one, or close one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stowplan.models.problem import Placement, Problem
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.release import K24, K36, Release
from tests.optimizer.final_state.test_bound import lowest
from tests.support.clusters import BOUND, HOSTNAME, Manifest, csi_node, node, pod, snapshot, using
from tests.support.random_clusters import Setup


def shared_volume() -> Snapshot:
    """Return a cluster in which one move closes two nodes.

    A node may attach one volume, and has two. The pod that shares a volume with four others leaves it, so that these
    are refused there; and it fills the node that it comes to. Both are worth more to them than their own one.
    """
    access = ["ReadWriteMany"]
    volumes: list[Manifest] = [
        {
            "metadata": {"name": f"pv{k}"},
            "spec": {"csi": {"driver": "csi", "volumeHandle": f"h{k}"}, "accessModes": access},
        }
        for k in range(2)
    ]
    claims: list[Manifest] = [
        {
            "metadata": {"name": f"claim{k}", "namespace": "default", "annotations": BOUND},
            "spec": {"volumeName": f"pv{k}", "accessModes": access},
        }
        for k in range(2)
    ]
    wishes = [
        {"weight": weight, "podAffinityTerm": {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}}
        for weight, app in ((1, "d"), (100, "e"))
    ]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}
    pods = [
        pod(f"a{i}", "n0", cpu=f"{100 + i}m", owner=f"ReplicaSet/a{i}", affinity=affinity, volumes=using("claim0"))
        for i in range(4)
    ]
    pods.append(pod("p", "n1", cpu="950m", owner="ReplicaSet/p", volumes=using("claim0")))
    pods.append(pod("q", "n1", cpu="100m", owner="ReplicaSet/q", volumes=using("claim1")))
    for name, at, app in (("d0", "n0", "d"), ("d1", "n1", "e"), ("d2", "n2", "e")):
        pods.append(pod(name, at, cpu="10m", owner="DaemonSet/d", labels={"app": app}))
    return snapshot(
        nodes=[node("n0"), node("n1"), node("n2", cpu="1"), node("n3")],
        pods=pods,
        namespaces=[{"metadata": {"name": "default"}}],
        persistent_volumes=volumes,
        persistent_volume_claims=claims,
        csi_nodes=[csi_node("n1", csi=1)],
    )


def single_moves(problem: Problem) -> Iterator[Placement]:
    """Yield today's placement, and all that differ by the node of one pod."""
    yield problem.start
    nodes = problem.shape[1]
    for c, n, _ in list(problem.start.entries()):
        for m in range(nodes):
            table = problem.start.table(*problem.shape)
            table[c, n] -= 1
            table[c, m] += 1
            yield Placement.from_table(table)


@pytest.mark.parametrize("release", [K24, K36], ids=lambda release: release.name)
def test_a_pod_that_leaves_may_close_its_node(release: Release) -> None:
    problem = Setup("kube", release, "never", 1).compile(shared_volume()).problem
    evaluator, final = Evaluator(problem), problem.tiers[-1].final
    assert final is not None
    parts = final.relaxation(problem.start, 1)
    assert final.parts(problem.start)["InterPodAffinity"] > 0
    gained = 0
    for placement in single_moves(problem):
        if not evaluator.evaluate(placement).legal:
            continue
        missed = final.parts(placement)
        gained += missed["InterPodAffinity"] == 0
        for part in parts:
            said = lowest(part, problem, placement)
            assert missed[part.name] >= said - 1e-6 * max(1.0, said), part.name
    assert gained
