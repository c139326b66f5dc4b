"""Replays a plan: what becomes of it on a cluster whose scheduler is ours."""

from __future__ import annotations

from dataclasses import dataclass

from stowplan.answers.assessment import Assessor
from stowplan.models.assignment import Assignment
from stowplan.models.plan import Plan
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.plans.drift import same_snapshot
from stowplan.plans.replay.distribution import RUNS, Distribution, distribution, replay_by_chance
from stowplan.plans.replay.execution import replay
from stowplan.plans.replay.outcome import ObjectiveValue, ReplayOutcome, share_kept
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.settings.problem import same_problem


@dataclass(frozen=True, eq=False)
class Replay:
    """A plan that was replayed.

    Parameters
    ----------
    plan
        The plan.
    compiled
        The problem by whose tiers it is measured.
    outcome
        What becomes of it if of equally good nodes the scheduler takes the one that ``seed`` decides.
    steered
        Whether the extender of the plan's tokens had a say.
    seed
        Of chance.
    distribution
        What becomes of it in many runs with chance; ``None`` if there were none.
    notes
        What a reader should know.
    """

    plan: Plan
    compiled: Compiled
    outcome: ReplayOutcome
    steered: bool
    seed: int
    distribution: Distribution | None = None
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> float | None:
        """Share of the gain that is there at the end; see `share_kept`."""
        return share_kept(self.outcome.before, self.outcome.planned, self.outcome.actual)


class CompiledObjective:
    """Says how good an assignment is, by the values of the problem."""

    def __init__(self, compiled: Compiled) -> None:
        self._assessor = Assessor(compiled)

    def __call__(self, assignment: Assignment) -> ObjectiveValue:
        """Return the worth of an assignment."""
        evaluation = self._assessor.assess(assignment).evaluation
        return ObjectiveValue(evaluation.values, evaluation.legal)


def replay_plan(
    plan: Plan,
    snapshot: Snapshot,
    profile: Profile,
    *,
    steered: bool = False,
    seed: int = 0,
    runs: int = RUNS,
    stop: Stop | None = None,
) -> Replay:
    """Replay a plan on a snapshot.

    Parameters
    ----------
    runs
        Number of further replays in which chance has a say; 0 for none.

    Raises
    ------
    InputError
        If the snapshot is not one that the plan can begin in.
    """
    stop = stop or Stop()
    compiled = same_problem(snapshot, plan.settings, profile, limited=False)
    objective = CompiledObjective(compiled)
    outcome = replay(
        plan,
        compiled.snapshot,
        profile,
        objective,
        steered=steered,
        seed=seed,
        signatures=compiled.signatures,
        stopped=stop.is_set,
    )
    outcomes = replay_by_chance(
        plan,
        compiled.snapshot,
        profile,
        objective,
        runs=runs,
        steered=steered,
        seed=seed,
        signatures=compiled.signatures,
        stopped=stop.is_set,
    )
    notes = list(compiled.notes)
    if not same_snapshot(plan, snapshot):
        notes.append("the snapshot is not the one the plan was made for")
    found = distribution(plan, outcomes) if outcomes else None
    return Replay(plan, compiled, outcome, steered, seed, found, tuple(notes))
