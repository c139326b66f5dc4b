"""Base of filters that depend on the pod and the node alone, not on other pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import Rule
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import SUCCESS, UNRESOLVABLE
from stowplan.plugins_compat.framework.view import View


class StaticFilter(Plugin):
    """A filter whose answer is one mask for each signature; as a rule it is an `Allow`."""

    reads = "nothing"

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` the nodes that pods of this signature may use."""
        raise NotImplementedError

    def mask(self, signature: Signature) -> Bools:
        """Return `passes`, computed once for each signature."""
        return self.state.memo((self.name, signature), lambda: self.passes(signature))

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject, for good, the nodes outside the mask."""
        return np.where(self.mask(cycle.signature)[nodes], SUCCESS, UNRESOLVABLE)

    def rules(self, view: View) -> Iterable[Rule]:
        """Return the masks as one `Allow`."""
        rule = view.allow(self.name, self.mask)
        return [rule] if rule is not None else []


def passing(filters: Sequence[Plugin], signature: Signature) -> Bools:
    """``[n]`` the nodes that filters leave open to a signature which look at no other pod."""
    masks = [plugin.mask(signature) for plugin in filters if isinstance(plugin, StaticFilter)]
    open_nodes: Bools = np.logical_and.reduce([np.ones(filters[0].state.size, dtype=np.bool_), *masks])
    return open_nodes
