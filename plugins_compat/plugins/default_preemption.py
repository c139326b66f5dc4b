"""DefaultPreemption: where no node is feasible, find one that is once less important pods have left it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.extenders.answers import ExtenderError
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.diagnosis import LEFT_OUT, Diagnosis
from stowplan.plugins_compat.framework.plugin import Args, Handle, Plugin
from stowplan.plugins_compat.framework.pod_index import Occupant
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code, PostFilterResult, Status
from stowplan.plugins_compat.plugins.victim_order import by_importance

PRIORITY_OFFSET = 2**31
"""Added to every priority in sums, so that more victims never look better for being negative."""

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


class DefaultPreemptionArgs(Args):
    """How many nodes are tried: a percentage of those that come into question, but at least so many."""

    min_candidate_nodes_percentage: Annotated[int, Field(ge=0, le=100)] = 10
    min_candidate_nodes_absolute: Annotated[int, Field(ge=0)] = 100

    @model_validator(mode="after")
    def _some(self) -> DefaultPreemptionArgs:
        if not self.min_candidate_nodes_percentage and not self.min_candidate_nodes_absolute:
            raise ValueError("minCandidateNodesPercentage and minCandidateNodesAbsolute must not both be zero")
        return self


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which the pod would fit.

    Parameters
    ----------
    victims
        Who has to leave, in upstream's order.
    violations
        How many of them a disruption budget protects.
    """

    node: int
    victims: Sequence[Occupant]
    violations: int

    def rank(self) -> tuple[int, int, int, int, int]:
        """Return what decides between candidates; the smallest is best."""
        priorities = [victim.signature.pod.priority for victim in self.victims]
        highest = max(priorities)
        return (
            self.violations,
            priorities[0],
            sum(priority + PRIORITY_OFFSET for priority in priorities),
            len(self.victims),
            -min(v.started for v, priority in zip(self.victims, priorities, strict=True) if priority == highest),
        )


@dataclass(frozen=True, slots=True)
class Protected:
    """The pods that a preemptor may drive off a node, the most important first.

    Parameters
    ----------
    violating, others
        Those that a disruption budget protects, and the rest.
    """

    violating: Sequence[Occupant]
    others: Sequence[Occupant]

    @property
    def order(self) -> list[Occupant]:
        """The order in which they may be reprieved."""
        return [*self.violating, *self.others]


class DefaultPreemption(Plugin):
    """Nominates the pod to the node where the least important pods would have to leave."""

    name = "DefaultPreemption"
    Args = DefaultPreemptionArgs

    def post_filter(self, cycle: CycleState, diagnosis: Diagnosis, handle: Handle) -> PostFilterResult:
        """Try the nodes that may be helped, and choose the best."""
        if reason := self._ineligible(cycle.pod, diagnosis):
            return PostFilterResult(Status(Code.UNSCHEDULABLE, (f"preemption: {reason}",), self.name))
        potential = self._potential(diagnosis)
        reasons = Counter({NOT_HELPFUL: len(diagnosis.nodes) - len(potential)})
        try:
            best = self._best(_DryRun(self, cycle, handle, reasons), potential)
        except ExtenderError as error:
            return PostFilterResult(Status(Code.ERROR, (str(error),), self.name))
        if best is None:
            counts = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
            said = f"preemption: 0/{len(diagnosis.nodes)} nodes are available: {', '.join(counts)}."
            status = Status(Code.UNSCHEDULABLE, (said,), self.name)
            return PostFilterResult(status, clears=self.release.preemption_clears_nomination)
        victims = [victim.pod for victim in best.victims]
        return PostFilterResult(Status(Code.SUCCESS, (), self.name), best.node, victims)

    def _ineligible(self, pod: Pod, diagnosis: Diagnosis) -> str | None:
        """Return why the pod may not preempt (again), in upstream's words."""
        if pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        node = self.state.nominator.node_of(pod)
        if node is None or diagnosis.code_of(node) is Code.UNRESOLVABLE:
            return None
        waits = self.release.preemption_waits_for_any
        for occupant in self.state.pod_index.on(node):
            leaving = occupant.pod.terminating and (waits or _preempted(occupant.pod))
            if leaving and occupant.signature.pod.priority < pod.priority:
                return "not eligible due to a terminating pod on the nominated node."
        return None

    def _potential(self, diagnosis: Diagnosis) -> Ints:
        """Return the nodes whose rejection may be undone by removing pods, in list order."""
        if self.release.pinned_nodes_fail:
            helped = diagnosis.codes == Code.UNSCHEDULABLE
        else:
            helped = (diagnosis.codes != Code.UNRESOLVABLE) | (diagnosis.failed_by == LEFT_OUT)
        nodes: Ints = diagnosis.nodes[helped]
        return nodes

    def _best(self, run: _DryRun, potential: Ints) -> Candidate | None:
        candidates = self._agreed(run, self._candidates(run, potential))
        if not candidates:
            return None
        lowest = min(candidate.rank() for candidate in candidates)
        equals = [candidate for candidate in candidates if candidate.rank() == lowest]
        return equals[run.handle.draw(len(equals))]

    def _agreed(self, run: _DryRun, candidates: list[Candidate]) -> list[Candidate]:
        """Return what extenders leave of the candidates."""
        if not candidates or not run.handle.extenders.all:
            return candidates
        proposed = {c.node: ([victim.pod for victim in c.victims], c.violations) for c in candidates}
        agreed = run.handle.extenders.preempt(run.cycle.pod, proposed)
        occupant = {(c.node, victim.pod.key): victim for c in candidates for victim in c.victims}
        return [
            Candidate(node, [occupant[node, pod.key] for pod in pods], violations)
            for node, (pods, violations) in agreed.items()
            if pods
        ]

    def _candidates(self, run: _DryRun, potential: Ints) -> list[Candidate]:
        """Try nodes from a drawn place on until there are enough; those that violate no budget come first."""
        number = len(potential)
        if not number:
            return []
        args: DefaultPreemptionArgs = self.args
        wanted = max(args.min_candidate_nodes_absolute, number * args.min_candidate_nodes_percentage // 100)
        wanted = min(wanted, number)
        clean: list[Candidate] = []
        violating: list[Candidate] = []
        for candidate in run.candidates(np.roll(potential, -run.handle.draw(number)), wanted):
            group = violating if candidate.violations else clean
            if len(group) < wanted:
                group.append(candidate)
            if clean and len(clean) + len(violating) >= wanted:
                break
        return clean + violating

    def protected(self, occupants: Sequence[Occupant]) -> Protected:
        """Sort possible victims by importance, and part those whose disruption budget is used up."""
        ordered = self._by_importance(occupants)
        budgets = self.state.snapshot.pod_disruption_budgets
        if not budgets:
            return Protected((), ordered)
        left = [budget.status.disruptions_allowed if budget.status else 0 for budget in budgets]
        parted: tuple[list[Occupant], list[Occupant]] = ([], [])
        for occupant in ordered:
            violates = False
            for b in self._budgets(occupant.signature):
                status = budgets[b].status
                if status is None or occupant.pod.name not in status.disrupted_pods:
                    left[b] -= 1
                    violates |= left[b] < 0
            parted[not violates].append(occupant)
        return Protected(*parted)

    def candidate(self, node: int, protected: Protected, victims: Sequence[Occupant]) -> Candidate:
        """Return a node with its victims as a candidate."""
        violations = len({id(occupant) for occupant in protected.violating} & {id(victim) for victim in victims})
        if self.release.preemption_sorts_victims and protected.violating and protected.others:
            victims = self._by_importance(victims)
        return Candidate(node, victims, violations)

    def _by_importance(self, occupants: Sequence[Occupant]) -> list[Occupant]:
        return by_importance(occupants, first_pass=self.release.preemption_sorts_in_two_passes)

    def _budgets(self, signature: Signature) -> Sequence[int]:
        """Return the disruption budgets that select a signature; an empty or missing selector selects nothing."""

        def make() -> list[int]:
            labels, namespace = signature.pod.metadata.labels, signature.pod.namespace
            return [
                b
                for b, budget in enumerate(self.state.snapshot.pod_disruption_budgets)
                if labels
                and (budget.metadata.namespace or "default") == namespace
                and budget.spec is not None
                and budget.spec.selector is not None
                and not budget.spec.selector.empty
                and budget.spec.selector.matches(labels)
            ]

        return self.state.memo((self.name, signature), make)


class _DryRun:
    """What would become of one pod on node after node, if the pods less important than it were gone.

    Each node is looked at for itself: all such pods leave, and if the pod fits then, they return one by one as long
    as it still does. Pods that cannot return are the victims.

    Parameters
    ----------
    reasons
        Counts the nodes that are no candidates, by reason.
    """

    def __init__(self, plugin: DefaultPreemption, cycle: CycleState, handle: Handle, reasons: Counter[str]) -> None:
        self.plugin = plugin
        self.state = plugin.state
        self.cycle = cycle
        self.handle = handle
        self.reasons = reasons
        self.below = self.state.below(cycle.pod.priority)
        self.rivals = self.state.nominator.rivals(cycle.pod) if self.state.nominator else {}
        filters = [f for f in handle.filters if f.name not in cycle.skipped]
        self.screening = [f for f in filters if f.reads != "pods"]
        self.checks = [f for f in filters if f.reads != "nothing" and not f.idle(cycle)]

    def candidates(self, nodes: Ints, batch: int) -> Iterator[Candidate]:
        """Yield the candidates among the nodes, in their order."""
        inhabited = self.below[0, nodes] > 0
        self.reasons[NO_VICTIMS] += int((~inhabited).sum())
        left = iter(self._screened(nodes[inhabited]).tolist())
        together = all(check.reads == "requests" for check in self.checks)
        while chosen := list(islice(left, batch)):
            plain = [node for node in chosen if together and node not in self.rivals]
            known = dict(zip(plain, self._reprieve_together(plain), strict=True))
            for node in chosen:
                candidate = known[node] if node in known else self._try(node)
                if candidate is not None:
                    yield candidate

    def _screened(self, nodes: Ints) -> Ints:
        """Return the nodes that pass what can be asked of all of them at once; count why the others do not."""
        with self.state.requesting(self.state.requested - self.below):
            for plugin in self.screening:
                if not len(nodes):
                    break
                codes = plugin.filter(self.cycle, nodes)
                failed = codes != Code.SUCCESS
                if failed.any():
                    self.reasons += plugin.count_reasons(self.cycle, nodes[failed], codes[failed])
                    nodes = nodes[~failed]
        return nodes

    def _leavers(self, node: int) -> Protected:
        priority = self.cycle.pod.priority
        return self.plugin.protected([o for o in self.state.pod_index.on(node) if o.signature.pod.priority < priority])

    def _reprieve_together(self, nodes: Sequence[int]) -> list[Candidate | None]:
        """Return the candidates when only requests matter: no node then depends on another."""
        leavers = [self._leavers(node) for node in nodes]
        orders = [protected.order for protected in leavers]
        victims: list[list[Occupant]] = [[] for _ in nodes]
        requested = self.state.requested - self.below
        with self.state.requesting(requested):
            for turn in range(max(map(len, orders), default=0)):
                asked = [i for i, order in enumerate(orders) if turn < len(order)]
                here = np.array([nodes[i] for i in asked], dtype=np.int64)
                back = np.array([self.state.vector(orders[i][turn].signature) for i in asked]).T
                requested[:, here] += back
                failed = np.zeros(len(here), dtype=np.bool_)
                for check in self.checks:
                    failed |= check.filter(self.cycle, here) != Code.SUCCESS
                requested[:, here[failed]] -= back[:, failed]
                for position in np.flatnonzero(failed).tolist():
                    victims[asked[position]].append(orders[asked[position]][turn])
        return [self._candidate(*found) for found in zip(nodes, leavers, victims, strict=True)]

    def _try(self, node: int) -> Candidate | None:
        """Return the candidate that a node is, looking at nothing but this node; count why it is none."""
        protected = self._leavers(node)
        gone = protected.order
        for occupant in gone:
            self.handle.count(self.cycle, occupant.signature, node, -1)
        try:
            status = self._fit(node)
            if status is not None:
                self.reasons.update(dict.fromkeys(status.reasons, 1))
                return None
            for occupant in protected.order:
                self.handle.count(self.cycle, occupant.signature, node, 1)
                if self._fit(node) is None:
                    gone.remove(occupant)
                else:
                    self.handle.count(self.cycle, occupant.signature, node, -1)
        finally:
            for occupant in gone:
                self.handle.count(self.cycle, occupant.signature, node, 1)
        return self._candidate(node, protected, gone)

    def _candidate(self, node: int, protected: Protected, victims: Sequence[Occupant]) -> Candidate | None:
        if victims:
            return self.plugin.candidate(node, protected, victims)
        self.reasons[f'expected at least one victim pod on node "{self.state.nodes[node].name}"'] += 1
        return None

    def _fit(self, node: int) -> Status | None:
        return self.handle.fits(self.cycle, node, self.checks, self.rivals.get(node, ()))


def _preempted(pod: Pod) -> bool:
    """Whether the pod is leaving because the scheduler preempted it."""
    conditions = pod.status.conditions if pod.status else ()
    disrupted = next((c for c in conditions if c.type == "DisruptionTarget"), None)
    return disrupted is not None and disrupted.status == "True" and disrupted.reason == "PreemptionByScheduler"
