"""Checks a solution against a snapshot: with the model's rules, and pod by pod with the real filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.answers.assessment import Assessment, Assessor
from stowplan.answers.solve import fixed
from stowplan.models.assignment import Assignment
from stowplan.models.result import Status
from stowplan.models.snapshot import Snapshot
from stowplan.models.solution import PlacementDocument, SolutionDocument
from stowplan.models.words import plural
from stowplan.optimizer.evaluate import Evaluation
from stowplan.plugins_compat.admission import Rejection
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.settings.problem import same_problem

BOUNDS = "lower bounds are not verified again"
"""Remark about what verification does not cover."""


@dataclass(frozen=True, eq=False)
class Verification:
    """Result of verifying a solution.

    Parameters
    ----------
    assessment
        Assessment of the solution's assignment.
    problems
        Reasons why the solution cannot be used on this snapshot, one line each.
    remarks
        Remarks that do not make the solution unusable.
    """

    assessment: Assessment
    problems: Sequence[str]
    remarks: Sequence[str]

    def __repr__(self) -> str:
        return f"<Verification: {plural(len(self.problems), 'problem')}, {plural(len(self.remarks), 'remark')}>"

    @property
    def compiled(self) -> Compiled:
        """The problem that the solution answers."""
        return self.assessment.assessor.compiled

    @property
    def evaluation(self) -> Evaluation:
        """Values, constraint violations and moves of the solution."""
        return self.assessment.evaluation

    @property
    def refused(self) -> Sequence[Rejection]:
        """Pods that the filters would not admit to their node in the solution."""
        return self.assessment.refused

    @property
    def holds(self) -> bool:
        """Whether the solution can be used."""
        return not self.problems


def verify(snapshot: Snapshot, document: SolutionDocument, profile: Profile) -> Verification:
    """Check a solution against a snapshot, which may be a newer one than it was made for.

    Parameters
    ----------
    snapshot
        The cluster.
    document
        The solution.
    profile
        Profile of the scheduler that the solution was made for.
    """
    settings = document.settings
    compiled = same_problem(snapshot, settings, profile)
    problems, remarks = [], []
    if snapshot.fingerprint != document.snapshot.fingerprint:
        remarks.append("the snapshot is not the one the solution was made for")
    assignment, drift = resolve(compiled, document.placements)
    problems += drift
    assessment = Assessor(compiled).assess(fixed(compiled) | assignment)
    evaluation = assessment.evaluation
    problems += [
        f"{violation.origin} on {violation.place}: {violation.amount} over the limit, today {violation.before}"
        for violation in evaluation.violations
        if not violation.legal
    ]
    lost = [pod.key for pod in compiled.pods if pod.node_name and not assignment.get(pod.key)]
    if settings.objective.preemption == "never":
        problems += [f"Pod {key}: has a node today and none in the solution" for key in lost]
    problems += [f"refused by the filters: {rejection}" for rejection in assessment.newly_refused]
    problems += _values(compiled, document, evaluation)
    problems += _claims(document, evaluation, compiled)
    remarks.append(BOUNDS)
    return Verification(assessment, problems, remarks)


def resolve(compiled: Compiled, placements: Sequence[PlacementDocument]) -> tuple[Assignment, list[str]]:
    """Match the solution's pods with the snapshot's; return their nodes, and what does not match."""
    free = {pod.key: pod for pod in compiled.pods}
    everyone = {pod.key: pod for pod in compiled.snapshot.pods}
    node_of: dict[str, str] = {}
    problems: list[str] = []
    named: set[str] = set()
    for placement in placements:
        key = f"{placement.namespace}/{placement.name}"
        pod = everyone.get(key)
        if key in named:
            problems.append(f"Pod {key}: is placed twice")
        elif pod is None:
            problems.append(f"Pod {key}: is not in the snapshot")
        elif placement.uid and pod.metadata.uid and placement.uid != pod.metadata.uid:
            problems.append(f"Pod {key}: is another pod of the same name (uid {pod.metadata.uid})")
        elif key not in free:
            problems.append(f"Pod {key}: is not free to be placed")
        elif placement.node and placement.node not in compiled.snapshot.node_index:
            problems.append(f"Pod {key}: node {placement.node} is not in the snapshot")
        elif placement.node:
            node_of[key] = placement.node
        named.add(key)
    problems += [f"Pod {key}: is not in the solution" for key in free if key not in named]
    return Assignment(node_of), problems


def _values(compiled: Compiled, document: SolutionDocument, evaluation: Evaluation) -> list[str]:
    """Compare the values that the solution claims with the actual ones."""
    claimed = {tier.name: tier.value for tier in document.tiers}
    return [
        f"tier {tier.name}: the solution claims {claimed[tier.name]:g} {tier.unit}, it is {tier.shown(value):g}"
        for tier, value in zip(compiled.problem.tiers, evaluation.values, strict=True)
        if tier.name in claimed and abs(claimed[tier.name] - tier.shown(value)) > 1e-6
    ]


def _claims(document: SolutionDocument, evaluation: Evaluation, compiled: Compiled) -> list[str]:
    """Compare everything else that the solution claims with the placement, and its claims with each other."""
    problems = []
    named = [tier.name for tier in document.tiers]
    expected = [tier.name for tier in compiled.problem.tiers]
    same_snapshot = compiled.snapshot.fingerprint == document.snapshot.fingerprint
    if same_snapshot and named != expected:
        problems.append(f"the solution has tiers {', '.join(named) or 'none'}; the problem has {', '.join(expected)}")
    if same_snapshot and document.moves != evaluation.moves:
        problems.append(f"the solution claims {document.moves} moves, there are {evaluation.moves}")
    for tier in document.tiers:
        if tier.bound > tier.value + 1e-6:
            problems.append(f"tier {tier.name}: the bound {tier.bound:g} is above the value {tier.value:g}")
    proven = all(tier.bound >= tier.value - 1e-6 for tier in document.tiers)
    if document.status == Status.OPTIMAL and not proven:
        problems.append("the solution claims to be optimal, and a tier's bound is below its value")
    homes = {pod.key: pod.node_name for pod in compiled.pods}
    moved = [
        f"Pod {key}: the solution says it is on {p.source or 'no node'} today; it is on {homes[key] or 'no node'}"
        for p in document.placements
        if (key := f"{p.namespace}/{p.name}") in homes and (p.source or "") != homes[key]
    ]
    return problems + (moved if same_snapshot else [])
