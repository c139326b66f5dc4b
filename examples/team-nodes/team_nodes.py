"""TeamNodes: a node labeled with a team takes pods of that team only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.plugins.static_filter import StaticFilter

LABEL = "example.com/team"


class TeamNodes(StaticFilter):
    """Rejects nodes of other teams. `StaticFilter` makes `filter` and an `Allow` of the mask."""

    name = "TeamNodes"
    one_reason_a_code = True

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` nodes of no team, or of the pod's."""
        team = signature.pod.metadata.labels.get(LABEL)
        return np.array([node.labels.get(LABEL) in (None, team) for node in self.state.nodes], dtype=np.bool_)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return the reason."""
        return ("node(s) belonged to another team",)
