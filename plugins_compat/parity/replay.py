"""Decides a recorded case again, with our framework, in the words of the record."""

from __future__ import annotations

import numpy as np

from stowplan.models.errors import InputError
from stowplan.models.trace import Case, Expectation, StatusRecord, Trace
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.scheduler import Scored, examine
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import Code, Status
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import RELEASES

SCORE_ERROR = "SCORE-ERROR: "
"""What a record writes before the message, in place of the chosen node, where a score plugin fails."""


def recorded_profile(trace: Trace) -> Profile:
    """Return the profile that a case was recorded with; ties go to the first node, as they do in records.

    Raises
    ------
    InputError
        If the release or the configuration is not known.
    """
    if trace.release not in RELEASES:
        raise InputError(
            f"is {trace.release!r}; must be one of {', '.join(RELEASES)}", trace.source, field="kubernetes"
        )
    release = RELEASES[trace.release]
    if trace.case.config is None:
        return default_profile(release, "first")
    try:
        return next(iter(make_profiles(trace.case.config, release, "first").values()))
    except InputError as error:
        raise InputError(error.problem, trace.source, error.obj, f"case.config.{error.field}") from None


def replay(case: Case, profile: Profile, follow: tuple[Expectation, ...] | None = None) -> list[Expectation]:
    """Decide about the pending pods of a case.

    Parameters
    ----------
    follow
        What was recorded. Where one pod's placement is another's circumstance, the recorded placement counts, so
        that one difference does not make all that follows differ.
    """
    snapshot = case.snapshot
    state = ClusterState(snapshot, profile.release, Signatures([*snapshot.pods, *case.pending]))
    state.order = np.arange(len(snapshot.nodes))  # records keep nodes in the order they are given
    framework = Framework(profile, state)
    state.fill(pod for pod in snapshot.pods if not pod.finished and pod.node_name in snapshot.node_index)
    state.nominator.nominate_pending(case.pending, snapshot.node_index)
    names = [node.name for node in snapshot.nodes]
    decided = []
    for i, pod in enumerate(case.pending if follow is None else case.pending[: len(follow)]):
        scored = examine(framework, pod, score_single=True)
        ours = _expectation(pod.key, scored, names)
        if case.mode == "preempt" and scored.node is None:
            result = framework.run_post_filters(scored.diagnosis.cycle, scored.diagnosis)
            framework.nominate(pod, result)
            if result.nominated is not None:
                victims = tuple(sorted(victim.key for victim in result.victims))
                ours = ours.model_copy(update={"nominated": names[result.nominated], "victims": victims})
        decided.append(ours)
        leader = ours if follow is None else follow[i]
        if case.mode != "independent" and leader.chosen in snapshot.node_index:
            node = snapshot.node_index[leader.chosen]
            state.put(pod, node)  # as in records, it has no start time yet
            state.nominator.remove(pod)
            for plugin in framework.reserves:
                plugin.reserve(scored.diagnosis.cycle, node)
    return decided


def _expectation(pod: str, scored: Scored, names: list[str]) -> Expectation:
    diagnosis = scored.diagnosis
    if diagnosis.rejected is not None:
        return Expectation(pod=pod, pre_filter=_record(diagnosis.rejected))
    failed = np.flatnonzero(diagnosis.codes != Code.SUCCESS).tolist()
    feasible = [names[n] for n in diagnosis.feasible]
    return Expectation(
        pod=pod,
        filter={names[diagnosis.nodes[i]]: _record(diagnosis.why(i)) for i in failed} or None,
        feasible=tuple(feasible),
        scores={p: dict(zip(feasible, values.tolist(), strict=True)) for p, values in scored.scores.items()} or None,
        # A nominated node that is feasible is taken without scores.
        total=dict(zip(feasible, scored.total.tolist(), strict=True)) if len(scored.total) else None,
        chosen=_chosen(scored, names),
    )


def _chosen(scored: Scored, names: list[str]) -> str | None:
    if scored.error is not None:
        return SCORE_ERROR + "; ".join(scored.error.reasons)
    return None if scored.node is None else names[scored.node]


def _record(status: Status) -> StatusRecord:
    return StatusRecord(plugin=status.plugin, code=status.code.upstream, reasons=tuple(status.reasons))
