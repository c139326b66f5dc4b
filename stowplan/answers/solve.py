"""A solved snapshot: where the pods should stand, how good that is known to be, and what the real filters say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stowplan.models.kubernetes import Pod
from stowplan.models.problem import Placement
from stowplan.models.result import NOT_NEGATIVE, Outcome, Status, TierOutcome
from stowplan.models.snapshot import Participation
from stowplan.models.stop import Stop
from stowplan.optimizer.evaluate import Evaluation, Evaluator
from stowplan.optimizer.portfolio import Options, solve
from stowplan.optimizer.run import Progress, silent
from stowplan.plugins_compat.admission import Rejection, populated, rejections
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.scheduler import failure
from stowplan.plugins_compat.simulate import simulate

ROUNDS = 5
"""How often pods that the filters refuse are sent back before the whole answer is dropped."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that changes its node; ``source`` is empty for a pod that had none, ``target`` for one that loses it."""

    pod: Pod
    source: str
    target: str


@dataclass(frozen=True, eq=False)
class Solution:
    """What came of solving a snapshot.

    Parameters
    ----------
    where
        Node name by pod key, fixed pods included.
    refused
        Pods that the filters would not admit where they stand, and that were in the same way before.
    waiting
        Pods that stay without a node, with what the filters say of each node, in the words of FailedScheduling.
    """

    compiled: Compiled
    outcome: Outcome
    evaluation: Evaluation
    where: Mapping[str, str]
    refused: Sequence[Rejection]
    waiting: Sequence[tuple[Pod, str]]
    notes: Sequence[str]

    @cached_property
    def moves(self) -> list[Move]:
        """Every pod whose node changes, in the snapshot's order."""
        return [
            Move(pod, pod.node_name, self.where.get(pod.key, ""))
            for pod in self.compiled.pods
            if self.where.get(pod.key, "") != pod.node_name
        ]

    @property
    def status(self) -> Status:
        """How much is known about the answer."""
        return self.outcome.status


def today(compiled: Compiled) -> dict[str, str]:
    """Return where every unfinished pod stands now."""
    participation = zip(compiled.snapshot.pods, compiled.participants.participation, strict=True)
    return {pod.key: pod.node_name for pod, s in participation if s is not Participation.FINISHED and pod.node_name}


def fixed(compiled: Compiled) -> dict[str, str]:
    """Return where the pods stand that stay where they are."""
    return {pod.key: pod.node_name for pod in compiled.participants.fixed()}


def solve_snapshot(
    compiled: Compiled,
    options: Options,
    *,
    candidates: Sequence[Mapping[str, str]] = (),
    stop: Stop | None = None,
    progress: Progress = silent,
) -> Solution:
    """Solve a compiled snapshot, and have the real filters confirm the answer.

    Parameters
    ----------
    candidates
        Further placements to start from, as node names by pod key.
    """
    stop = stop or Stop()
    starts = [compiled.placement(where) for where in candidates]
    if not starts and any(not pod.node_name for pod in compiled.pods):
        waiting = [pod for pod in compiled.pods if not pod.node_name]
        greedy = simulate(
            compiled.snapshot,
            compiled.profile,
            waiting,
            today(compiled),
            signatures=compiled.signatures,
            preempts=compiled.objective.preemption == "by-priority",
            stopped=stop.is_set,
        )
        starts.append(compiled.placement(greedy.where))
    outcome = solve(compiled.problem, options, candidates=starts, stop=stop, progress=progress)
    return confirm(compiled, outcome)


def confirm(compiled: Compiled, outcome: Outcome) -> Solution:
    """Let the real filters judge a placement pod by pod; send back whoever they would not admit.

    Rules and filters are two readings of the same plugins and agree but for listed exceptions. Where they do not, the
    filters have the last word.
    """
    evaluator = Evaluator(compiled.problem)
    before = {(r.pod.key, r.node) for r in _refused(compiled, today(compiled))}
    placement, notes = outcome.placement, list(outcome.notes)
    sent_back: set[str] = set()
    for _ in range(ROUNDS):
        where = fixed(compiled) | compiled.assign(placement)
        refused = _refused(compiled, where)
        fresh = [r for r in refused if (r.pod.key, r.node) not in before]
        if not fresh:
            break
        sent_back |= {r.pod.key for r in fresh}
        placement = _send_back(compiled, where, sent_back)
        if not evaluator.evaluate(placement).legal:
            placement = compiled.problem.start
    else:
        placement = compiled.problem.start
        where = fixed(compiled) | compiled.assign(placement)
        refused = _refused(compiled, where)
    if sent_back:
        notes.append(f"the filters refused {len(sent_back)} pods where the model put them; they were sent back")
    evaluation = evaluator.evaluate(placement)
    outcome = _revalued(outcome, placement, evaluation)
    return Solution(compiled, outcome, evaluation, where, refused, _waiting(compiled, where), tuple(notes))


def _waiting(compiled: Compiled, where: Mapping[str, str]) -> list[tuple[Pod, str]]:
    """Ask the filters why each pod without a node has none; look-alikes are asked for once."""
    framework = populated(compiled.snapshot, compiled.profile, where, compiled.signatures)
    said: dict[int, str] = {}
    waiting = []
    for pod in compiled.pods:
        if not where.get(pod.key):
            signature = compiled.signatures.of(pod).index
            if signature not in said:
                said[signature] = failure(framework.run_filters(framework.cycle(pod)))
            waiting.append((pod, said[signature]))
    return waiting


def _refused(compiled: Compiled, where: Mapping[str, str]) -> list[Rejection]:
    framework = populated(compiled.snapshot, compiled.profile, where, compiled.signatures)
    return rejections(framework, where)


def _send_back(compiled: Compiled, where: Mapping[str, str], keys: set[str]) -> Placement:
    homes = {pod.key: pod.node_name for pod in compiled.pods}
    return compiled.placement({key: homes[key] if key in keys else node for key, node in where.items() if key in homes})


def _revalued(outcome: Outcome, placement: Placement, evaluation: Evaluation) -> Outcome:
    """Return the outcome with the values of the placement that was kept in the end.

    A bound holds given what the tiers above it reached; below a tier that changed, nothing is proven any more.
    """
    if placement is outcome.placement:
        return outcome
    tiers, unchanged = [], True
    for tier, value in zip(outcome.tiers, evaluation.values, strict=True):
        bound, by = (min(tier.bound, value), tier.bound_by) if unchanged else (0, NOT_NEGATIVE)
        tiers.append(TierOutcome(tier.tier, value, bound, by, tier.seconds))
        unchanged &= value == tier.value
    return Outcome(placement, tuple(tiers), outcome.seconds, outcome.stages, outcome.interrupted, outcome.notes)
