"""Asks the filters of one pod about many variants of a cluster, each made from what is known of the one before."""

from __future__ import annotations

from dataclasses import fields

from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.deadline import Deadline, Over
from stowplan.plugins_compat.framework.diagnosis import Diagnosis
from stowplan.plugins_compat.framework.framework import Framework


class Check:
    """Asks the filters whether a pod has a node in some snapshot.

    Variants differ from the cluster in a few pods, and in nodes. Counting all other pods anew each time is what would
    take longest: they are counted once.

    Parameters
    ----------
    framework
        On the cluster as it is, without the pod. It is used and left as it was by `restore`.
    key
        Of the pod.
    """

    def __init__(self, framework: Framework, key: str, deadline: Deadline) -> None:
        self.key = key
        self.deadline = deadline
        self._framework = framework
        self._at = framework.state.snapshot.pods

    def go_on(self) -> None:
        """Raise if it is time to end."""
        if self.deadline.over:
            raise Over

    def framework(self, snapshot: Snapshot) -> Framework:
        """Return a framework on a variant; it holds until the next call."""
        self.go_on()
        base = self._framework
        before = base.state.snapshot
        self._place(snapshot.pods[: len(self._at)])
        if _same_but_pods(before, snapshot):
            return base
        state = base.state.on(snapshot)
        state.fill(pod for pod in snapshot.pods[len(self._at) :] if pod.node_name and not pod.finished)
        return Framework(base.profile, state)

    def pod(self, snapshot: Snapshot) -> Pod:
        """Return the pod as it is in a snapshot."""
        return next(pod for pod in snapshot.pods if pod.key == self.key)

    def diagnosis(self, snapshot: Snapshot) -> Diagnosis:
        """Return what the filters say of the pod."""
        framework = self.framework(snapshot)
        return framework.run_filters(framework.cycle(self.pod(snapshot)))

    def node(self, snapshot: Snapshot) -> str | None:
        """Return the first node that admits the pod."""
        diagnosis = self.diagnosis(snapshot)
        if diagnosis.rejected is not None or not len(diagnosis.feasible):
            return None
        return snapshot.nodes[int(diagnosis.feasible[0])].name

    def restore(self) -> None:
        """Leave the framework as it was."""
        self._place(self._framework.state.snapshot.pods)

    def _place(self, pods: tuple[Pod, ...]) -> None:
        """Take the pods that are others now off the nodes, and put those that are there instead."""
        state = self._framework.state
        index = state.snapshot.node_index
        changed = [(old, new) for old, new in zip(self._at, pods, strict=True) if old is not new]
        for old, _ in changed:
            if old.node_name and not old.finished:
                state.take(old, index[old.node_name])
        for _, new in changed:
            if new.node_name and not new.finished:
                state.put(new, index[new.node_name])
        self._at = pods


def _same_but_pods(one: Snapshot, other: Snapshot) -> bool:
    return all(getattr(one, each.name) is getattr(other, each.name) for each in fields(Snapshot) if each.name != "pods")
