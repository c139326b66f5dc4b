"""What the value of a tier is made of: which plugin and which term changed by how much, from today to the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.models.objective import FEASIBILITY
from stowplan.models.problem import Origin, Placement, Problem, Tier, Violation
from stowplan.optimizer.evaluate.cost import cost

VARIANCE = "variance"
STAYING = "pods that stay"
"""Part of a tier that is the same for every placement."""


@dataclass(frozen=True, slots=True)
class TierPart:
    """What one plugin or one setting adds to a tier.

    Parameters
    ----------
    name
        Of the plugin, or of the setting.
    before, after
        Whole units of the tier.
    """

    name: str
    before: int
    after: int

    @property
    def change(self) -> int:
        """By how much it changes; less is better."""
        return self.after - self.before


def tier_parts(
    problem: Problem, before: tuple[Placement, Sequence[int]], after: tuple[Placement, Sequence[int]]
) -> list[list[TierPart]]:
    """Return the parts of each tier that are above 0 before or after, those that change most first.

    Parameters
    ----------
    before, after
        A placement, and its value in each tier.
    """
    found = []
    for t, tier in enumerate(problem.tiers):
        old, new = (_parts(problem, tier, placement, values[t]) for placement, values in (before, after))
        parts = [TierPart(name, old[name], new[name]) for name in dict.fromkeys((*old, *new))]
        parts = [part for part in parts if part.before or part.after]
        found.append(sorted(parts, key=lambda part: (-abs(part.change), part.name)))
    return found


def _parts(problem: Problem, tier: Tier, placement: Placement, value: int) -> Counter[str]:
    """Return the parts of a value by name; they add up to what is shown of it."""
    found: Counter[str] = Counter()
    for weighted in tier.terms:
        if not isinstance(weighted.term, Violation):
            found[_name(weighted.term.origin)] += weighted.weight * cost(weighted.term, problem, placement, 0)
    if tier.final is not None:
        found.update(tier.final.parts(placement))
    if any(isinstance(weighted.term, Violation) for weighted in tier.terms):
        found[FEASIBILITY] += value - sum(found.values())
    found[STAYING] += tier.constant
    return found


def _name(origin: Origin) -> str:
    """Return the plugin or setting; of the variance, also the resource."""
    return str(origin) if origin.plugin == VARIANCE else origin.plugin
