"""The fast judge of final states says what whole scheduling cycles say, and leaves the cluster as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from stowplan.models.arrays import Ints
from stowplan.models.assignment import Assignment
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat import admission
from stowplan.plugins_compat.admission import AdmissionCheck, Rejection, populated, rejections, standing
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.status import Code, NodeSet, Status
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, pod, snapshot
from tests.support.random_clusters import random_cluster, random_devices, random_disks


@dataclass(frozen=True)
class Judged:
    """A cluster, and assignments to judge: today's, and random ones."""

    cluster: Snapshot
    assignments: list[Assignment]


def random_states(choices: Choices, make: Callable[[Choices], Snapshot]) -> Judged:
    """Draw a cluster and assignments: most of them break something, and some pods have no node."""
    cluster = make(choices)
    names = [*(one.name for one in cluster.nodes), ""]
    found = [Assignment({one.key: choices.one(names) for one in cluster.pods}) for _ in range(choices.integer(1, 5))]
    return Judged(cluster, [cluster.assignment, *found])


CLUSTERS: dict[str, Callable[[Choices], Snapshot]] = {
    "mixed": partial(random_cluster, nodes=4, pods=12, broken=None),
    "disks": random_disks,
    "devices": partial(random_devices, broken=None),
}


def by_whole_cycles(framework: Framework, assignment: Assignment) -> list[Rejection]:
    """Judge every pod in a cycle of its own that filters all nodes of the cluster."""
    state = framework.state
    found = []
    for one, at in standing(state.snapshot, assignment):
        cycle = framework.cycle(one)
        state.forget(cycle.signature, at)
        diagnosis = framework.run_filters(cycle)
        position = int(np.flatnonzero(diagnosis.nodes == at)[0])
        if diagnosis.rejected is not None:
            found.append(Rejection(one, state.nodes[at].name, diagnosis.rejected))
        elif diagnosis.codes[position] != Code.SUCCESS:
            found.append(Rejection(one, state.nodes[at].name, diagnosis.why(position)))
        state.assume(cycle.signature, at)
    return found


def told(refused: Sequence[Rejection]) -> list[tuple[str, str, Code, tuple[str, ...], str]]:
    return [(r.pod.key, r.node, r.status.code, tuple(r.status.reasons), r.status.plugin) for r in refused]


def picture(framework: Framework) -> tuple[Any, ...]:
    """Return everything of a cluster that judging could leave changed."""
    state = framework.state
    placed = {signature: dict(nodes) for signature, nodes in state.placed.items() if nodes}
    occupants = [[o.pod.key for o in state.pod_index.on(n)] for n in range(state.size)]
    return placed, occupants, state.requested.tolist(), state.nonzero.tolist()


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
@pytest.mark.parametrize("kind", CLUSTERS)
def test_pods_are_refused_for_what_whole_cycles_refuse_them_for(kind: str, release: Release) -> None:
    seen: Counter[str] = Counter()

    @cases(25, at_least={"admitted": 15, "refused": 10}, judged=drawn(random_states, CLUSTERS[kind]))
    def check_each(judged: Judged) -> None:
        cluster = judged.cluster
        profile = default_profile(release, more=("GpuShare",))
        signatures = Signatures(cluster.pods)
        check = AdmissionCheck(cluster, profile, signatures)
        for assignment in judged.assignments:
            framework = populated(cluster, profile, assignment, signatures)
            before = picture(framework)
            expected = told(by_whole_cycles(populated(cluster, profile, assignment, signatures), assignment))
            assert told(rejections(framework, assignment)) == expected
            assert picture(framework) == before
            assert told(check.refused(assignment)) == expected
            seen.update(plugin for *_, plugin in expected)
            count("refused", len(expected))
            count("admitted", len(list(standing(cluster, assignment))) - len(expected))

    check_each()
    assert len(seen) > 1, f"only {sorted(seen)} had a say"


def alike(name: str, at: str, **more: Any) -> dict[str, Any]:
    return pod(name, at, owner="ReplicaSet/web", **more)


def test_pods_of_one_signature_are_judged_without_themselves_alone() -> None:
    """Two of them on a node with room for one: each is refused because of the other. Elsewhere there is room."""
    cluster = snapshot(
        nodes=[node("n1", cpu="1"), node("n2", cpu="1")],
        pods=[alike("a", "n1"), alike("b", "n1"), alike("c", "n2")],
    )
    refused = rejections(populated(cluster, default_profile(K36), cluster.assignment), cluster.assignment)
    assert [r.pod.name for r in refused] == ["a", "b"]


def test_pods_that_pass_need_no_cycle_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    slow = admission.status_on

    def counted(framework: Framework, one: Any, at: int) -> Status | None:
        judged.append(one.name)
        return slow(framework, one, at)

    monkeypatch.setattr(admission, "status_on", counted)
    cluster = snapshot(
        nodes=[node(f"n{i}", cpu="2") for i in range(3)],
        pods=[alike(f"fits{i}", f"n{i}") for i in range(2)] + [pod("large", "n2", cpu="3")],
    )
    refused = rejections(populated(cluster, default_profile(K36), cluster.assignment), cluster.assignment)
    assert judged == ["large"] == [r.pod.name for r in refused]


def test_nominated_pods_count() -> None:
    """A pod on a node is refused there if a pod of higher priority is nominated to it and leaves no room."""
    cluster = snapshot(nodes=[node("n1", cpu="1"), node("n2", cpu="1")], pods=[alike("a", "n1"), alike("b", "n2")])
    rival = snapshot(pods=[pod("rival", priority=10)]).pods[0]
    framework = populated(cluster, default_profile(K36), cluster.assignment)
    framework.state.nominator.add(rival, 0)
    refused = rejections(framework, cluster.assignment)
    assert [r.pod.name for r in refused] == ["a"]
    assert told(refused) == told(by_whole_cycles(framework, cluster.assignment))


class Lonely(Plugin):
    """Rejects nodes with another pod; it counts in PreFilter, as plugins may that do not say what they read."""

    name = "Lonely"

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """Count the pods on every node."""
        cycle.data[self.name] = self.state.requested[0].copy()
        return None

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes with pods."""
        return np.where(cycle.data[self.name][nodes] > 0, Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Say so."""
        return ("node(s) had company",)


class LonelyByRequests(Lonely):
    """The same, by a plugin that asks for what pods request together."""

    name = "LonelyByRequests"
    reads: ClassVar[Literal["nothing", "requests", "pods"]] = "requests"


class SkipsLarge(Plugin):
    """Skips its filter, which rejects every node, unless the pod is small."""

    name = "SkipsLarge"
    reads = "nothing"

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """Skip, narrow, or reject, by the name of the pod's controller."""
        match cycle.pod.metadata.labels["way"]:
            case "skip":
                return Status(Code.SKIP)
            case "narrow":
                return NodeSet(frozenset({"n1"}))
            case "reject":
                return Status(Code.UNSCHEDULABLE, ("not today",))
        return None

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject every node but for pods that are narrowed."""
        fine = cycle.pod.metadata.labels["way"] == "narrow"
        return np.full(len(nodes), Code.SUCCESS if fine else Code.UNRESOLVABLE)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Say so."""
        return ("node(s) were not narrow",)


@pytest.mark.parametrize("plugin", [Lonely, LonelyByRequests])
def test_what_a_plugin_counts_in_pre_filter_is_counted_without_the_pod(plugin: type[Plugin]) -> None:
    cluster = snapshot(nodes=[node("n1"), node("n2")], pods=[alike("a", "n1"), alike("b", "n1"), alike("c", "n2")])
    framework = populated(cluster, default_profile(K36), cluster.assignment)
    added = plugin(None, framework.state)
    framework.pre_filters.append(added)
    framework.filters.append(added)
    refused = rejections(framework, cluster.assignment)
    assert [r.pod.name for r in refused] == ["a", "b"]
    assert told(refused) == told(by_whole_cycles(framework, cluster.assignment))


def test_answers_of_pre_filter_are_heeded() -> None:
    ways = ("skip", "narrow", "reject", "filter")
    pods = [pod(f"{way}-{n}", f"n{n}", labels={"way": way}) for way in ways for n in (1, 2)]
    cluster = snapshot(nodes=[node("n1", cpu="9"), node("n2", cpu="9")], pods=pods)
    framework = populated(cluster, default_profile(K36), cluster.assignment)
    added = SkipsLarge(None, framework.state)
    framework.pre_filters.append(added)
    framework.filters.append(added)
    refused = rejections(framework, cluster.assignment)
    assert [r.pod.name for r in refused] == ["narrow-2", "reject-1", "reject-2", "filter-1", "filter-2"]
    assert told(refused) == told(by_whole_cycles(framework, cluster.assignment))


def test_static_pods_are_never_refused() -> None:
    """Kubeadm's tolerate no NoSchedule taint, and run all the same: the kubelet asks no scheduler."""
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    mirror = {"kubernetes.io/config.mirror": "0"}
    cluster = snapshot(
        nodes=[node("n1", taints=[taint])],
        pods=[pod("kube-apiserver-n1", "n1", annotations=mirror), pod("web", "n1")],
    )
    framework = populated(cluster, default_profile(K36), cluster.assignment)
    assert [r.pod.name for r in rejections(framework, cluster.assignment)] == ["web"]
