"""Other weights of the objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from stowplan.models.errors import InputError
from stowplan.models.objective import Objective, TierSettings
from stowplan.models.validation import say

FIELD = "weights"


def with_weights(objective: Objective, weights: Mapping[str, float]) -> Objective:
    """Return an objective with other weights.

    Parameters
    ----------
    weights
        By ``TIER.TERM``, such as ``imbalance.moves``, or ``TIER.TERM.KEY``, such as ``imbalance.variance.cpu``.

    Raises
    ------
    InputError
        If the objective has no such tier or term, or nothing of it is left.
    """
    tiers: list[dict[str, Any]] = [tier.model_dump(exclude_defaults=True) for tier in objective.tiers]
    for path, weight in weights.items():
        tier = max((one for one in tiers if path.startswith(f"{one['name']}.")), key=_length, default=None)
        if tier is None:
            known = ", ".join(one["name"] for one in tiers)
            raise InputError(f"has no tier of {path!r}; it has {known}", obj=f"objective {objective.name}", field=FIELD)
        term, dot, key = path.removeprefix(f"{tier['name']}.").partition(".")
        if term not in TierSettings.model_fields or term == "name":
            terms = ", ".join(name for name in TierSettings.model_fields if name != "name")
            raise InputError(f"has {path!r}, whose term is none of {terms}", field=FIELD)
        tier[term] = {**_weights(tier, term), key: weight} if dot else weight
    try:
        return Objective.model_validate({**objective.model_dump(exclude={"tiers"}), "tiers": tiers})
    except ValidationError as error:
        raise InputError(say(error.errors(include_url=False)[0]), field=FIELD) from None


def _length(tier: Mapping[str, Any]) -> int:
    return len(tier["name"])


def _weights(tier: Mapping[str, Any], term: str) -> Mapping[str, float]:
    known = tier.get(term, {})
    return known if isinstance(known, dict) else {}
