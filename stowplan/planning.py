"""From a snapshot to a plan: solve, put the moves in order, and solve again without those that no order reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from models.plan import Executor, LimitsDocument, Plan
from models.snapshot import Snapshot
from optimizer.control import Stop
from optimizer.portfolio import Options
from optimizer.run import Progress, silent
from plugins_compat.compiler.compile import Compiled
from stowplan.inputs import Settings
from stowplan.solution import Solution

EXPIRES_IN = timedelta(hours=2)


@dataclass(frozen=True)
class Terms:
    """On what terms a plan is made.

    Parameters
    ----------
    executor
        Who evicts.
    limits
        How many evictions a wave may hold.
    created_at
        When the plan is made, and ``expires_in`` how long it may be begun.
    frozen
        Why a pod is to stay where it is, by pod key, beside what the executor cannot move and the settings freeze.
    """

    executor: Executor = "eviction-api"
    limits: LimitsDocument = field(default_factory=LimitsDocument)
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    expires_in: timedelta = EXPIRES_IN
    frozen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan, and what it was made from.

    Parameters
    ----------
    solution
        The placement that the plan reaches; without the moves that were given up.
    """

    plan: Plan
    compiled: Compiled
    solution: Solution


def make_plan(
    snapshot: Snapshot,
    settings: Settings,
    options: Options,
    terms: Terms | None = None,
    *,
    candidates: Sequence[Mapping[str, str]] = (),
    stop: Stop | None = None,
    progress: Progress = silent,
) -> Planned:
    """Find the best placement that can be reached, and the way there.

    Parameters
    ----------
    candidates
        Further placements to start the search from, as node names by pod key.
    """
    raise NotImplementedError


def sequence_solution(solution: Solution, settings: Settings, terms: Terms | None = None) -> Planned:
    """Return the way to a placement that was found before; moves that no order reaches are given up."""
    raise NotImplementedError
