"""The way to a solution that was found before and written down."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.answers.assessment import Assessor
from stowplan.answers.solve import fixed
from stowplan.answers.verify_solution import resolve
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.result import TierOutcome, revalued
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.solution import SolutionDocument
from stowplan.planning.plan import Planned, sequence_placement
from stowplan.settings.problem import document_profile, require_config, same_problem
from stowplan.settings.terms import Terms


def sequence_document(
    snapshot: Snapshot, document: SolutionDocument, path: str, settings: Settings, terms: Terms
) -> Planned:
    """Return the way from a snapshot to a solution.

    Parameters
    ----------
    path
        Where the solution was read, for errors.
    settings
        Of these the executor, what it may move and the configuration file are heeded; the others are the solution's.

    Raises
    ------
    InputError
        If the solution does not fit the snapshot, or was made with a configuration that is not given.
    """
    made_with = document.settings
    require_config(made_with, settings.config, path)
    compiled = same_problem(snapshot, made_with, document_profile(made_with, settings.config, snapshot))
    assignment, problems = resolve(compiled, document.placements)
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise InputError(f"does not fit the snapshot: {problems[0]}{more}", path)
    settings = settings.of_solution(made_with)
    assessor = Assessor(compiled)
    tiers = _outcomes(assessor, assignment, document)
    return sequence_placement(assessor, fixed(compiled) | assignment, tiers, settings, terms, document.notes)


def _outcomes(assessor: Assessor, assignment: Assignment, document: SolutionDocument) -> Sequence[TierOutcome]:
    """Return what the solution proves, if it was made for this snapshot and these tiers; else nothing."""
    compiled = assessor.compiled
    tiers = compiled.problem.tiers
    same_tiers = [claim.name for claim in document.tiers] == [tier.name for tier in tiers]
    if not same_tiers or compiled.snapshot.fingerprint != document.snapshot.fingerprint:
        return ()
    claimed = [
        TierOutcome(tier, tier.whole(claim.value), tier.whole(claim.bound), claim.bound_by, 0.0)
        for tier, claim in zip(tiers, document.tiers, strict=True)
    ]
    return revalued(claimed, assessor.values(assignment))
