"""The way to a solution that was found before and written down."""

from __future__ import annotations

from dataclasses import replace

from stowplan.answers.solve import fixed
from stowplan.answers.verify_solution import resolve
from stowplan.documents.reading import require_config
from stowplan.documents.solution import SolutionDocument
from stowplan.models.errors import InputError
from stowplan.models.problem import Tier
from stowplan.models.result import NOT_NEGATIVE, TierOutcome
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.planning.plan import Planned, Terms, sequence_placement
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.settings import Settings, make_profile, same_problem


def sequence_document(
    snapshot: Snapshot, document: SolutionDocument, path: str, settings: Settings, terms: Terms
) -> Planned:
    """Return the way from a snapshot to a solution.

    Parameters
    ----------
    path
        Where the solution was read, for errors.
    settings
        Of these the executor and the configuration file are heeded; the others are the solution's own.

    Raises
    ------
    InputError
        If the solution does not fit the snapshot, or was made with a configuration that is not given.
    """
    made_with = document.settings
    require_config(made_with, settings.config, path)
    profile = make_profile(
        Settings(release=made_with.release, config=settings.config, scheduler=made_with.scheduler), snapshot
    )
    compiled = same_problem(snapshot, made_with, profile)
    where, drift = resolve(compiled, document.placements)
    if drift:
        more = f", and {len(drift) - 1} more" if len(drift) > 1 else ""
        raise InputError(f"does not fit the snapshot: {drift[0]}{more}", path)
    settings = replace(
        settings,
        freeze=made_with.freeze,
        freeze_bare=made_with.freeze_bare,
        max_moves=made_with.max_moves,
        move_costs=made_with.move_costs,
        drain=made_with.drain,
        admit=made_with.admit,
    )
    return sequence_placement(
        compiled, fixed(compiled) | where, _outcomes(compiled, where, document), settings, terms, document.notes
    )


def _outcomes(compiled: Compiled, where: dict[str, str], document: SolutionDocument) -> list[TierOutcome]:
    """Return what the solution says is proven, where it says so of the problem that it is held against."""
    values = Evaluator(compiled.problem).evaluate(compiled.placement(where)).values
    same = compiled.snapshot.fingerprint == document.snapshot.fingerprint
    claims = {tier.name: tier for tier in document.tiers} if same else {}
    outcomes = []
    for tier, value in zip(compiled.problem.tiers, values, strict=True):
        claim = claims.get(tier.name)
        bound, by = (_whole(tier, claim.bound), claim.bound_by) if claim else (0, NOT_NEGATIVE)
        outcomes.append(TierOutcome(tier, value, min(bound, value), by, 0.0))
    return outcomes


def _whole(tier: Tier, shown: float) -> int:
    return round(shown * tier.scale)
