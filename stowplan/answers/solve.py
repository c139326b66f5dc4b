"""A solved snapshot: the node of each pod, values with bounds, and the filters' check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stowplan.answers.assessment import Assessment, Assessor
from stowplan.answers.parts import TierPart, tier_parts
from stowplan.models.assignment import Assignment
from stowplan.models.html import html_table, number
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import GroupMoveBudget, MoveBudget, Placement
from stowplan.models.result import Outcome, Status, revalued
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.evaluate import Evaluation
from stowplan.optimizer.portfolio import Options, solve
from stowplan.optimizer.run import Progress, silent
from stowplan.plans.movability.losses import losses
from stowplan.plans.move import Move
from stowplan.plugins_compat.admission import Rejection
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.scheduler import failure
from stowplan.plugins_compat.simulate import simulate

ROUNDS = 5
"""Number of times that refused pods are returned to their nodes before the whole answer is discarded."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of solving a snapshot.

    Parameters
    ----------
    outcome
        Values and bounds of the placement.
    notes
        What a reader should know: fallbacks, interruptions, pods that were returned to their node.
    assessment
        The answer. The filters refuse none of its pods that they do not refuse on the same node today.
    waiting
        Unscheduled pods, each with the filters' reasons as in a FailedScheduling event.
    """

    assessment: Assessment
    outcome: Outcome
    waiting: Sequence[tuple[Pod, str]]
    notes: Sequence[str]

    @property
    def assessor(self) -> Assessor:
        """Assesses further assignments of the same problem."""
        return self.assessment.assessor

    @property
    def compiled(self) -> Compiled:
        """The problem that was solved."""
        return self.assessor.compiled

    @property
    def assignment(self) -> Assignment:
        """The node of every pod that has one, fixed pods included."""
        return self.assessment.assignment

    @property
    def evaluation(self) -> Evaluation:
        """Values, constraint violations and moves."""
        return self.assessment.evaluation

    @property
    def before(self) -> Evaluation:
        """Values, constraint violations, and moves of today's assignment."""
        return self.assessor.today.evaluation

    @cached_property
    def parts(self) -> Sequence[Sequence[TierPart]]:
        """What each tier is made of, today and in the answer, by plugin or setting."""
        compiled = self.compiled
        return tier_parts(
            compiled.problem,
            (compiled.problem.start, self.before.values),
            (compiled.placement(self.assignment), self.evaluation.values),
        )

    @property
    def refused(self) -> Sequence[Rejection]:
        """Pods that the filters would not admit to their node, neither in the answer nor today."""
        return self.assessment.refused

    @cached_property
    def moves(self) -> list[Move]:
        """Every pod whose node changes, in the snapshot's order."""
        changes = self.assignment.moved_from(self.compiled.snapshot.assignment)
        return [Move(pod, *changes[pod.key]) for pod in self.compiled.pods if pod.key in changes]

    @cached_property
    def losses(self) -> dict[str, tuple[str, ...]]:
        """What the moves of pods lose for good, by pod key; pods that lose nothing are left out."""
        of = losses(self.compiled.snapshot)
        return {move.pod.key: lost for move in self.moves if move.source and (lost := of(move.pod))}

    @property
    def status(self) -> Status:
        """Whether the answer is proven optimal."""
        return self.outcome.status

    def __repr__(self) -> str:
        tiers = ", ".join(f"{tier.tier.name} {number(tier.tier.shown(tier.value))}" for tier in self.outcome.tiers)
        return f"<Solution {self.status}: {plural(self.evaluation.moves, 'move')}; {tiers}>"

    def _repr_html_(self) -> str:
        rows = [
            (
                tier.tier.name,
                number(tier.tier.shown(before)),
                number(tier.tier.shown(tier.value)),
                number(tier.tier.shown(tier.bound)),
                tier.status,
            )
            for tier, before in zip(self.outcome.tiers, self.before.values, strict=True)
        ]
        title = (
            f"{self.status}, {plural(self.evaluation.moves, 'move')}, {plural(len(self.waiting), 'pod')} unscheduled"
        )
        return html_table(title, rows, ("tier", "today", "solution", "bound", "status"))


def today(compiled: Compiled) -> Assignment:
    """Return the node of every unfinished pod in the snapshot."""
    return compiled.snapshot.assignment


def fixed(compiled: Compiled) -> Assignment:
    """Return the nodes of fixed pods."""
    return Assignment((pod.key, pod.node_name) for pod in compiled.participants.fixed())


def solve_snapshot(
    compiled: Compiled,
    options: Options,
    *,
    candidates: Sequence[Assignment] = (),
    assessor: Assessor | None = None,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Solution:
    """Solve a compiled snapshot, and check the answer with the real filters.

    Parameters
    ----------
    candidates
        Further assignments to start from.
    assessor
        Assessor of ``compiled``, if one exists already.
    backend
        Solves sub-problems; by default processes of its own.
    """
    stop = stop or Stop()
    begin = [compiled.placement(assignment) for assignment in candidates]
    begin += starts(compiled, options, stop, pending=not candidates)
    outcome = solve(compiled.problem, options, candidates=begin, stop=stop, progress=progress, backend=backend)
    return confirm(assessor or Assessor(compiled), outcome)


def starts(compiled: Compiled, options: Options, stop: Stop, *, pending: bool = True) -> list[Placement]:
    """Return what kube-scheduler makes of the snapshot, as far as an answer should be no worse.

    Parameters
    ----------
    pending
        Whether to let it place the pending pods.
    """
    found = []
    limited = any(isinstance(rule, MoveBudget | GroupMoveBudget) for rule in compiled.problem.rules)
    if compiled.final_state is not None and not limited:
        # No answer shall score less than what kube-scheduler makes of all pods.
        anew = simulate(
            compiled.snapshot,
            compiled.profile,
            compiled.pods,
            fixed(compiled),
            signatures=compiled.signatures,
            seed=options.seed,
            preempts=False,
            stopped=stop.is_set,
        )
        found.append(compiled.placement(anew.assignment))
    waiting = [pod for pod in compiled.pods if not pod.node_name]
    if pending and waiting:
        greedy = simulate(
            compiled.snapshot,
            compiled.profile,
            waiting,
            today(compiled),
            signatures=compiled.signatures,
            preempts=compiled.objective.preemption == "by-priority",
            stopped=stop.is_set,
        )
        found.append(compiled.placement(greedy.assignment))
    return found


def confirm(assessor: Assessor, outcome: Outcome) -> Solution:
    """Check a placement pod by pod with the real filters; return pods that they reject to their nodes.

    Rules and filters of a plugin agree, with listed exceptions. Where they differ, the filters decide.
    """
    compiled = assessor.compiled
    placement, notes = outcome.placement, list(outcome.notes)
    sent_back: set[str] = set()
    for _ in range(ROUNDS):
        assessment = assessor.assess(fixed(compiled) | compiled.assign(placement))
        fresh = assessment.newly_refused
        if not fresh:
            break
        sent_back |= {rejection.pod.key for rejection in fresh}
        placement = _send_back(compiled, assessment.assignment, sent_back)
        if not assessor.evaluator.evaluate(placement).legal:
            placement = compiled.problem.start
    else:
        placement = compiled.problem.start
        assessment = assessor.assess(fixed(compiled) | compiled.assign(placement))
    if sent_back:
        notes.append(f"pods sent back because the filters refuse them where the model placed them: {len(sent_back)}")
        outcome = replace(outcome, placement=placement, tiers=revalued(outcome.tiers, assessment.evaluation.values))
    return Solution(assessment, outcome, _waiting(assessment), tuple(notes))


def _waiting(assessment: Assessment) -> list[tuple[Pod, str]]:
    """Return unscheduled pods with the reasons of the filters, which are computed once for each signature."""
    compiled, framework = assessment.assessor.compiled, assessment.framework
    said: dict[int, str] = {}
    waiting = []
    for pod in compiled.pods:
        if not assessment.assignment.get(pod.key):
            signature = compiled.signatures.of(pod).index
            if signature not in said:
                said[signature] = failure(framework.run_filters(framework.cycle(pod)))
            waiting.append((pod, said[signature]))
    return waiting


def _send_back(compiled: Compiled, assignment: Assignment, keys: set[str]) -> Placement:
    back = ((pod.key, pod.node_name) for pod in compiled.pods if pod.key in keys)
    return compiled.placement(assignment.moved(back))
