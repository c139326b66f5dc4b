"""NodeLabel: nodes that carry a label, or that do not, are better."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from stowplan.models.arrays import Ints
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.policy.scale import MOST, prefer_ten


class NodeLabelArgs(Args):
    """The label, and whether nodes shall carry it."""

    label: str = Field(min_length=1)
    presence: bool = False


class NodeLabel(Plugin):
    """Scores 10 where the node carries the label and shall, or does not and shall not; else 0.

    A policy gives each use a name of its own.
    """

    name = "NodeLabel"
    Args = NodeLabelArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by the label alone."""
        return self._scores(cycle.signature)[nodes]

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the scores as a table."""
        yield from prefer_ten(view, self.name, self._scores)

    def _scores(self, signature: Signature) -> Ints:
        carries = self.state.topology(self.args.label).domain >= 0
        return np.where(carries == self.args.presence, MOST, 0)
