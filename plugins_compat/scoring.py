"""Final-state scores: what every pod would score on its node, with all others in place."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.status import ScoreError

SAMPLE = 300
"""Pods that are scored; more are sampled, since each takes a whole scheduling cycle."""


@dataclass(frozen=True, slots=True)
class FinalScores:
    """Mean weighted scores per pod.

    Parameters
    ----------
    by_plugin
        Mean weighted score of each plugin.
    scored, pods
        Number of scored pods, and of all. Pods that the filters would not admit to their node have no score.
    """

    by_plugin: Mapping[str, float]
    scored: int
    pods: int

    @property
    def total(self) -> float:
        """Mean weighted score."""
        return sum(self.by_plugin.values())


def final_scores(
    framework: Framework, pods: Sequence[Pod], assignment: Assignment, *, sample: int = SAMPLE, seed: int = 0
) -> FinalScores:
    """Score pods on their nodes, each taken off and offered again with all others in place, in a cycle of its own.

    This is the definition. `stowplan.plugins_compat.final_state.scorer` computes the same for all pods, class by class.

    Parameters
    ----------
    framework
        On the cluster as `stowplan.plugins_compat.admission.populated` returns it; it is left as it was.
    """
    state = framework.state
    placed = [pod for pod in pods if assignment.get(pod.key)]
    if len(placed) > sample:
        # One order for all assignments: what two of them differ by is not blurred by different samples.
        order = random.Random(seed).sample(pods, len(pods))
        chosen = list(islice((pod for pod in order if assignment.get(pod.key)), sample))
    else:
        chosen = placed
    known: dict[tuple[int, int], dict[str, float] | None] = {}
    sums: dict[str, float] = {}
    scored = 0
    for pod in chosen:
        node = state.snapshot.node_index[assignment[pod.key]]
        key = (state.signatures.of(pod).index, node)
        if key not in known:
            known[key] = _score(framework, pod, node)
        scores = known[key]
        if scores is not None:
            scored += 1
            for plugin, value in scores.items():
                sums[plugin] = sums.get(plugin, 0) + value
    return FinalScores({plugin: total / max(1, scored) for plugin, total in sorted(sums.items())}, scored, len(placed))


def _score(framework: Framework, pod: Pod, node: int) -> dict[str, float] | None:
    cycle = CycleState(pod, framework.state.signatures.of(pod))  # as it is on its node, not as it would be created
    framework.state.forget(cycle.signature, node)
    try:
        feasible = framework.run_filters(cycle).feasible
        at = np.flatnonzero(feasible == node)
        if not len(at):
            return None
        return {plugin: values[at[0]].item() for plugin, values in framework.run_scores(cycle, feasible).items()}
    except ScoreError:
        return None  # the scheduler would not schedule it either
    finally:
        framework.state.assume(cycle.signature, node)
