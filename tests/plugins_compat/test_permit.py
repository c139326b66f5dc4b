"""Permit plugins: pods that wait on their node until they are allowed, rejected, or out of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.profile import Profile, Use
from stowplan.plugins_compat.framework.status import Code, Status, Wait
from stowplan.plugins_compat.framework.waiting import WaitingPod
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24
from stowplan.plugins_compat.simulate import Simulation, simulate
from tests.support.clusters import node, pod, snapshot


class Gang(Plugin):
    """Binds the pods of a label ``gang`` together: as many as ``size`` says, or none."""

    name = "Gang"
    log: ClassVar[list[str]] = []

    def reserve(self, cycle: CycleState, node: int) -> Status | None:
        self.log.append(f"reserve {cycle.pod.name}")
        return None

    def unreserve(self, cycle: CycleState, node: int) -> None:
        self.log.append(f"unreserve {cycle.pod.name}")

    def permit(self, cycle: CycleState, node: int) -> Status | Wait | None:
        labels = cycle.pod.metadata.labels
        if "gang" not in labels:
            return None
        if labels["gang"] == "never":
            for other in self._others("traitor"):
                other.reject(self.name, "the gang is no more")
            return Status(Code.UNSCHEDULABLE, ("not this one",))
        others = self._others(labels["gang"])
        if len(others) + 1 < int(labels["size"]):
            return Wait(float(labels.get("seconds", "30")))
        for other in others:
            other.allow(self.name)
        return None

    def post_bind(self, cycle: CycleState, node: int) -> None:
        self.log.append(f"bound {cycle.pod.name}")

    def _others(self, gang: str) -> Sequence[WaitingPod]:
        return [other for other in self.state.waiting if other.cycle.pod.metadata.labels.get("gang") == gang]


class Second(Plugin):
    """Another plugin that lets every pod of a gang wait, and never says a word."""

    name = "Second"

    def permit(self, cycle: CycleState, node: int) -> Status | Wait | None:
        return Wait(7200.0) if "gang" in cycle.pod.metadata.labels else None


@pytest.fixture(autouse=True)
def fresh() -> None:
    Gang.log.clear()


def profile(*more: type[Plugin]) -> Profile:
    points = frozenset({"reserve", "permit", "post_bind"})
    plain = default_profile(K24, "first")
    order = {
        **plain.order,
        "permit": ("Gang", *(plugin.name for plugin in more)),
        "reserve": (*plain.at("reserve"), "Gang"),
        "post_bind": ("Gang",),
    }
    uses = (*plain.uses, Use(Gang, 0, points), *(Use(plugin, 0, frozenset({"permit"})) for plugin in more))
    return replace(plain, uses=uses, order=order)


def member(name: str, gang: str = "g", size: int = 3, **labels: Any) -> dict[str, Any]:
    return pod(name, cpu="1", labels={"gang": gang, "size": str(size), **labels})


def run(cluster: Snapshot, *more: type[Plugin]) -> tuple[Simulation, dict[str, str]]:
    done = simulate(cluster, profile(*more), cluster.pods, {})
    return done, {key.removeprefix("default/"): decision.message for key, decision in done.outcomes.items()}


def test_a_gang_is_bound_when_its_last_member_comes() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="4")], pods=[member("a"), member("b"), pod("between", cpu="1"), member("c")]
    )
    done, _ = run(cluster)
    assert [decision.pod.name for decision in done.decisions] == ["between", "c", "a", "b"]
    assert done.scheduled == 4
    assert Gang.log == [
        "reserve a", "reserve b", "reserve between", "bound between", "reserve c", "bound c", "bound a", "bound b",
    ]  # fmt: skip


def test_waiting_pods_hold_their_place_until_they_time_out() -> None:
    slow = member("slow", "h", seconds="60")
    cluster = snapshot(nodes=[node("n", cpu="2")], pods=[slow, member("quick", seconds="10"), pod("late", cpu="1")])
    done, said = run(cluster)
    assert "Insufficient cpu" in said["late"]  # the waiting pods have the node
    assert not done.assignment
    times = [decision.pod.name for decision in done.decisions]
    assert times == ["late", "quick", "slow"]  # the shorter time-out first
    waited = 'pod "quick" rejected while waiting on permit: rejected due to timeout after waiting 10s at plugin Gang'
    assert said["quick"] == waited
    assert Gang.log[-2:] == ["unreserve quick", "unreserve slow"]


def test_a_waiting_pod_can_be_rejected_by_a_plugin_and_gives_its_place_back() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="2")],
        pods=[member("a", "traitor"), member("b", "never"), pod("after", cpu="2")],
    )
    done, said = run(cluster)
    assert said["a"] == 'pod "a" rejected while waiting on permit: the gang is no more'
    assert said["b"] == "not this one"
    assert set(done.assignment) == {"default/after"}
    assert Gang.log[:4] == ["reserve a", "reserve b", "unreserve b", "unreserve a"]


def test_every_plugin_must_allow_and_no_wait_is_longer_than_15_minutes() -> None:
    cluster = snapshot(nodes=[node("n")], pods=[member("a", size=2), member("b", size=2)])
    _, said = run(cluster, Second)
    limit = "rejected while waiting on permit: rejected due to timeout after waiting 900s at plugin Second"
    assert said == {"a": f'pod "a" {limit}', "b": f'pod "b" {limit}'}


def test_the_first_word_counts() -> None:
    (found,) = snapshot(nodes=[node("n")], pods=[pod("p")]).pods
    rejected = WaitingPod(CycleState(found, None), 0, {"A": 1.0})  # type: ignore[arg-type]
    rejected.reject("A", "no")
    rejected.allow("A")
    assert rejected.decided
    assert rejected.rejection == "no"
    allowed = WaitingPod(CycleState(found, None), 0, {"A": 1.0})  # type: ignore[arg-type]
    allowed.allow("A")
    allowed.reject("A", "no")
    assert allowed.decided
    assert allowed.rejection is None
