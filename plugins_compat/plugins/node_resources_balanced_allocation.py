"""NodeResourcesBalancedAllocation: CPU and memory should fill up together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import POINTS, NodeScore, Origin, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.status import ScoreError
from stowplan.plugins_compat.framework.view import ScoreView, View
from stowplan.plugins_compat.plugins.azure_disk_limits import AzureDiskLimits
from stowplan.plugins_compat.plugins.balance_difference import difference_points, fractions, variance_points
from stowplan.plugins_compat.plugins.ebs_limits import EBSLimits
from stowplan.plugins_compat.plugins.gce_pd_limits import GCEPDLimits
from stowplan.plugins_compat.plugins.resource_scores import ResourceSpec, Scored, default_resources, score_loads

ATTACHED = (EBSLimits, GCEPDLimits, AzureDiskLimits)
"""Filters that say how many disks a node can attach; of several clouds the last counts, as upstream overwrites."""


class NodeResourcesBalancedAllocationArgs(Args):
    """Which resources are balanced; weights are accepted and ignored, as upstream does."""

    resources: tuple[ResourceSpec, ...] = ()


class NodeResourcesBalancedAllocation(Plugin):
    """Scores by the standard deviation of the usage fractions, after placement or compared with before."""

    name = "NodeResourcesBalancedAllocation"
    surrogate = (
        "1.20: volumes left out, and a full node scored by the difference too; "
        "1.36: the balance after placement, as in 1.24, instead of the improvement"
    )
    Args = NodeResourcesBalancedAllocationArgs

    def pre_score(self, cycle: CycleState, nodes: Ints) -> bool:
        """Drop out, in releases that do, for a pod that requests none of the balanced resources."""
        asked = self.scored().requests(cycle.signature)
        if self.release.balanced == "difference" and self.args.resources:
            raise ScoreError("takes no arguments in this release")
        idle = not any(asked.get(spec.name) for spec in self.scored().specs)
        return not (idle and self.release.skips_idle_scores)

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score in the release's own way."""
        if self.release.balanced == "difference":
            return self._difference(cycle, nodes)
        after, capacity, _ = self.scored().usage(cycle.signature, nodes)
        if self.release.balanced == "std":
            return self.points(after, after, capacity)
        before, _, _ = self.scored().usage(cycle.signature, nodes, with_pod=False)
        return self.points(before, after, capacity)

    def points(self, before: Ints, after: Ints, capacity: Ints) -> Ints:
        """``[n]`` the score by what is used of each resource, ``[k, n]``; a resource with capacity 0 does not count.

        Parameters
        ----------
        before, after
            Without the pod, which only newer releases read, and with it.
        """
        if self.release.balanced == "difference":
            cpu, memory = fractions(after, capacity)
            return difference_points(cpu, memory)
        balance = _balance(after, capacity)
        if self.release.balanced == "std":
            return balance
        change = POINTS // 2 + balance - _balance(before, capacity)
        # Go's division truncates; here `change` is never negative, since both scores lie between 50 and 100.
        return POINTS // 2 + change // 2

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the score after placement, for two resources, as a `NodeScore`.

        The improvement that newer releases score depends on the order of arrival; its surrogate is the score after
        placement, which it grows with.
        """
        loads = score_loads(view, self.scored(), finest=1_000_000)
        if loads is None or len(loads) != 2:
            return
        scored = np.array([1 for _ in view.signatures], dtype=np.int64)
        # A `NodeScore` takes 50 points for a difference of 1; in the form of a difference it costs 100.
        cost = 2 * view.point if self.release.balanced == "difference" else view.point
        yield Weighted(1, NodeScore(Origin(self.name), "balanced", loads, cost, scored))

    def omissions(self, view: View) -> Iterable[str]:
        """Say so if other than two resources are scored, or volumes."""
        if self.release.balances_volumes:
            yield f"{self.name}: attached volumes are not in the model"
        if next(self.terms(view.scoring(())), None) is None:
            yield f"{self.name}: it has terms for two resources alone; its score counts, but does not steer the search"

    def scored(self) -> Scored:
        """Return the resources that the score reads."""
        resources = self.args.resources or default_resources()
        nonzero = self.release.balanced == "difference"
        return self.state.memo((self.name, "scored"), lambda: Scored(self.state, resources, nonzero=nonzero))

    def _difference(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score CPU and memory alone; where the release counts volumes and the pod attaches some, these too."""
        used, capacity, _ = self.scored().usage(cycle.signature, nodes)
        cpu, memory = fractions(used, capacity)
        points = difference_points(cpu, memory)
        for limits in ATTACHED if self.release.balances_volumes else ():
            for applies, new, room in limits(limits.Args(), self.state).attaching(cycle.signature):
                counted = (applies & (room > 0))[nodes]
                share = new[nodes] / np.maximum(room[nodes], 1)
                points = np.where(counted, variance_points(cpu, memory, share), points)
        return points


def _balance(used: Ints, capacity: Ints) -> Ints:
    """``trunc((1 − std) · 100)`` over the fractions of the resources that the node has, in upstream's order."""
    counted = capacity > 0
    fraction = np.where(counted, np.minimum(1.0, used / np.maximum(capacity, 1)), 0.0)
    number = counted.sum(axis=0)
    std = np.where(number == 2, _half_difference(fraction, counted), 0.0)
    if len(fraction) > 2:
        std = np.where(number > 2, _deviation(fraction, counted, number), std)
    points: Ints = ((1.0 - std) * float(POINTS)).astype(np.int64)
    return points


def _half_difference(fraction: Floats, counted: np.ndarray) -> Floats:
    if fraction.shape[0] < 2:
        return np.zeros(fraction.shape[1])
    first = np.argmax(counted, axis=0)
    last = fraction.shape[0] - 1 - np.argmax(counted[::-1], axis=0)
    columns = np.arange(fraction.shape[1])
    halves: Floats = np.abs((fraction[first, columns] - fraction[last, columns]) / 2)
    return halves


def _deviation(fraction: Floats, counted: np.ndarray, number: np.ndarray) -> Floats:
    total = np.zeros(fraction.shape[1])
    for row in fraction:  # one after the other, as upstream adds
        total = total + row
    mean = total / np.maximum(number, 1)
    squares = np.zeros(fraction.shape[1])
    for row, here in zip(fraction, counted, strict=True):
        squares = squares + np.where(here, (row - mean) * (row - mean), 0.0)
    spread: Floats = np.where(number > 2, np.sqrt(squares / np.maximum(number, 1)), 0.0)
    return spread
