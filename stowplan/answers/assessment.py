"""Assessments of assignments: values and constraint violations by the model, refused pods by the filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stowplan.models.assignment import Assignment
from stowplan.models.problem import GroupMoveBudget, Move, MoveBudget, Placement
from stowplan.optimizer.evaluate import Evaluation, Evaluator
from stowplan.optimizer.evaluate.cost import cost
from stowplan.plugins_compat.admission import AdmissionCheck, Rejection
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.compiler.repair import is_repaired
from stowplan.plugins_compat.framework.framework import Framework


class Assessor:
    """Assesses assignments of one compiled snapshot: by the rules and tiers of its problem, and by the real filters.

    What depends on the problem alone is computed once, and so are the filters' decisions on an assignment.

    Parameters
    ----------
    admission
        A check of the same snapshot, profile, and signatures, to be shared by problems that differ in their rules.
    """

    def __init__(self, compiled: Compiled, admission: AdmissionCheck | None = None) -> None:
        self.compiled = compiled
        self.evaluator = Evaluator(compiled.problem)
        self._admission = admission

    @cached_property
    def measuring(self) -> Evaluator:
        """Evaluates placements without the limit on moves, which kube-scheduler does not know."""
        problem = self.compiled.problem
        rules = tuple(rule for rule in problem.rules if not isinstance(rule, MoveBudget | GroupMoveBudget))
        if len(rules) == len(problem.rules):
            return self.evaluator
        return Evaluator(replace(problem, rules=rules))

    @cached_property
    def admission(self) -> AdmissionCheck:
        """The filters, created on first use."""
        compiled = self.compiled
        return self._admission or AdmissionCheck(compiled.snapshot, compiled.profile, compiled.signatures)

    @cached_property
    def today(self) -> Assessment:
        """The assignment of the snapshot."""
        return self.assess(self.compiled.snapshot.assignment)

    @cached_property
    def kept_violations(self) -> int:
        """Number of pods that are fixed where a filter would refuse them today, for a reason worth a move."""
        free = {pod.key for pod in self.compiled.pods}
        repair = self.compiled.objective.repair
        return sum(
            1
            for rejection in self.today.refused
            if rejection.pod.key not in free and is_repaired(rejection.status.plugin, repair)
        )

    def assess(self, assignment: Assignment) -> Assessment:
        """Return the assessment of an assignment; each part is computed on first use."""
        return Assessment(self, assignment)

    def values(self, assignment: Assignment) -> tuple[int, ...]:
        """Return the value of each tier."""
        return self.assess(assignment).evaluation.values


@dataclass(frozen=True, eq=False)
class Assessment:
    """An assignment with its values, constraint violations, and refused pods.

    Parameters
    ----------
    assignment
        Node of every scheduled pod, fixed pods included.
    """

    assessor: Assessor
    assignment: Assignment

    @cached_property
    def placement(self) -> Placement:
        """The assignment as the model sees it."""
        return self.assessor.compiled.placement(self.assignment)

    @cached_property
    def evaluation(self) -> Evaluation:
        """Values, constraint violations, and moves by the model."""
        return self.assessor.evaluator.evaluate(self.placement)

    @cached_property
    def measured(self) -> Evaluation:
        """The same as if the number of moves were not limited."""
        assessor = self.assessor
        if assessor.measuring is assessor.evaluator:
            return self.evaluation
        return assessor.measuring.evaluate(self.placement)

    @cached_property
    def move_costs(self) -> Sequence[int]:
        """What moves cost in each tier."""
        problem, placement = self.assessor.compiled.problem, self.placement
        return [
            sum(w.weight * cost(w.term, problem, placement, 0) for w in tier.terms if isinstance(w.term, Move))
            for tier in problem.tiers
        ]

    @cached_property
    def refused(self) -> Sequence[Rejection]:
        """Pods that the filters would not admit to their node."""
        return self.assessor.admission.refused(self.assignment)

    @property
    def framework(self) -> Framework:
        """A framework on the cluster as assigned; valid until another assessment is used."""
        return self.assessor.admission.framework(self.assignment)

    @property
    def newly_refused(self) -> list[Rejection]:
        """Pods that the filters refuse here but not on the same node today."""
        before = {(rejection.pod.key, rejection.node) for rejection in self.assessor.today.refused}
        return [rejection for rejection in self.refused if (rejection.pod.key, rejection.node) not in before]
