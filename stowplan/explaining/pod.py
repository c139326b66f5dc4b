"""Why a pod is where it is, where it would be better, or what keeps it from every node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.answers.assessment import Assessor
from stowplan.answers.solve import Solution, solve_snapshot
from stowplan.explaining.conflict import Conflict, conflict_of
from stowplan.explaining.node_results import NodeResult, node_results, refused_everywhere, without
from stowplan.explaining.placing import Instead, SingleMove, best_single_move, instead
from stowplan.explaining.relaxations import SECONDS, Relaxation, Relaxations, relaxations
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.options import Options
from stowplan.models.snapshot import Participation
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.run import Progress, silent
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.scheduler import failure


@dataclass(frozen=True, eq=False)
class PodExplanation:
    """What is known about one pod and every node.

    Parameters
    ----------
    compiled
        The problem that the pod is part of.
    pod
        The pod.
    participation, reason
        How the pod takes part, and why it stays where it is or waits for no node, if it does.
    results
        What kube-scheduler says of the pod on every node, with all other pods where they are.
    weights
        Weight of each score plugin in the profile, for those that scored.
    greedy
        Node that kube-scheduler takes, with all other pods where they are; ``None`` if none admits the pod.
    tied
        Further nodes with the same score.
    message
        Why no node admits the pod, in the words of a FailedScheduling event; empty if one does.
    conflict
        A set of rules that keep the pod off all nodes, minimal unless it says otherwise.
    relaxations
        What would admit it; each was checked on the changed cluster.
    untried, interrupted
        Kinds of relaxations that were not tried to the end, and whether that was for a stop instead of the time.
    refusing
        If nothing admits it: what refuses it still, without all rules that can be dropped and with room for it.
    single
        The best legal move of the pod alone.
    solution
        The best placement of all pods; ``None`` if it was not searched for.
    instead
        The same placement with this pod where it is today, or where kube-scheduler takes it; ``None`` if it is there.
    """

    compiled: Compiled
    pod: Pod
    participation: Participation
    reason: str
    results: Sequence[NodeResult]
    weights: dict[str, int]
    greedy: str | None
    tied: Sequence[str]
    message: str
    conflict: Conflict | None
    relaxations: Sequence[Relaxation]
    untried: Sequence[str]
    interrupted: bool
    refusing: Sequence[str]
    single: SingleMove | None
    solution: Solution | None
    instead: Instead | None

    def __repr__(self) -> str:
        where = self.pod.node_name or "pending"
        admitting = sum(result.admitted for result in self.results)
        return f"<PodExplanation {self.pod.key} ({where}): {admitting} of {len(self.results)} nodes admit it>"

    @property
    def placed(self) -> str | None:
        """Node of the pod in the best placement, if one was searched for and has it."""
        return self.solution.assignment.get(self.pod.key) if self.solution is not None else None

    @property
    def moves_of_others(self) -> int:
        """How many other pods have another node in the best placement."""
        moves = self.solution.moves if self.solution is not None else ()
        return sum(1 for move in moves if move.pod.key != self.pod.key)


def explain_pod(
    compiled: Compiled,
    key: str,
    options: Options | None,
    *,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> PodExplanation:
    """Explain one pod.

    Parameters
    ----------
    key
        As ``namespace/name``.
    options
        Of the search for the best placement; ``None`` leaves it out.

    Raises
    ------
    InputError
        If the snapshot has no such pod, or it is finished.
    """
    snapshot, stop = compiled.snapshot, stop or Stop()
    pod, participation, reason = _found(compiled, key)
    framework = without(snapshot, compiled.profile, pod, compiled.signatures)
    found, on_nodes = node_results(framework, pod)
    nowhere = refused_everywhere(found.diagnosis)
    conflict, proposals = None, Relaxations()
    deadline = Deadline(SECONDS, stop=stop)
    if nowhere and not pod.node_name:
        cls = next((int(c) for one, c in zip(compiled.pods, compiled.class_of, strict=True) if one is pod), None)
        problem = compiled.problem if cls is not None else None
        conflict = conflict_of(problem, cls or 0, framework, found.diagnosis, lambda: deadline.over)
        proposals = relaxations(snapshot, framework, pod, stop=stop)
    solution = None
    if options is not None:
        solution = solve_snapshot(compiled, options, stop=stop, progress=progress, backend=backend)
    assessor = solution.assessor if solution is not None else Assessor(compiled)
    greedy = snapshot.nodes[found.node].name if found.node is not None else None
    free = any(one is pod for one in compiled.pods)
    admitting = sorted((v for v in on_nodes if v.admitted), key=lambda v: -(v.total or 0))
    single = best_single_move(assessor, pod, [v.node for v in admitting], stopped=stop.is_set) if free else None
    return PodExplanation(
        compiled,
        pod,
        participation,
        reason,
        on_nodes,
        {plugin.name: weight for plugin, weight in framework.scores if plugin.name in found.scores},
        greedy,
        [snapshot.nodes[node].name for node in found.tied],
        failure(found.diagnosis) if nowhere else "",
        conflict,
        proposals.found,
        proposals.untried,
        proposals.interrupted,
        proposals.refusing,
        single,
        solution,
        _instead(assessor, solution, pod, pod.node_name or greedy),
    )


def _found(compiled: Compiled, key: str) -> tuple[Pod, Participation, str]:
    participants = compiled.participants
    for pod, participation, reason in zip(
        compiled.snapshot.pods, participants.participation, participants.reason, strict=True
    ):
        if pod.key == key:
            if participation is Participation.FINISHED:
                raise InputError("is finished; must be a pod that has a node or waits for one", obj=f"Pod {key}")
            return pod, participation, reason
    raise InputError("is not in the snapshot", obj=f"Pod {key}")


def _instead(assessor: Assessor, solution: Solution | None, pod: Pod, node: str | None) -> Instead | None:
    if solution is None or node is None or solution.assignment.get(pod.key) in (None, node):
        return None
    return instead(assessor, solution.assignment, pod, node)
