"""When changes of nodes have a turn: where moves are limited, before other engines, and again if it may be worth it."""

from __future__ import annotations

from functools import partial

from stowplan.models.options import Options
from stowplan.models.problem import Placement
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.node_changes.engine import NAME, NodeChangeEngine, SharedChanges
from stowplan.optimizer.node_changes.parameters import NodeChangeParameters
from stowplan.optimizer.run import Run


class NodeChangeTurns:
    """The turns that changes of nodes have in a run.

    Parameters
    ----------
    changes
        Changes of nodes that solves of the same problem under other limits on moves have found.

    Attributes
    ----------
    taken
        Tiers that had a turn, and the values of the tiers above then.
    """

    def __init__(
        self,
        run: Run,
        options: Options,
        parameters: NodeChangeParameters,
        cpsat: CpSatParameters,
        changes: SharedChanges | None,
    ) -> None:
        self.run, self.options, self.parameters, self.cpsat, self.changes = run, options, parameters, cpsat, changes
        self.taken: dict[int, tuple[int, ...]] = {}

    def take(self) -> None:
        """Bound and improve the first open tier that sums up nodes, if moves are limited.

        Tiers above may still be open: what they come to later makes it worth another time.
        """
        run = self.run
        for tier in range(len(run.values)):
            if run.over or not self.options.kernels:
                return
            if run.is_open(tier) and NodeChangeEngine.suits(run.evaluator.problem, tier):
                if self.taken.get(tier) != run.values[:tier]:
                    self._take(tier)
                return

    def let_in(self, tier: int, share: float, placement: Placement) -> bool:
        """Search changes of nodes that let pods in which a tier counts as unscheduled; return whether there was time.

        Parameters
        ----------
        placement
            Where to begin.
        """
        if self.run.over or not self.run.is_open(tier) or not self.options.kernels:
            return False
        return self._work(tier, share, self.parameters.bounding_room, placement)

    def _take(self, tier: int) -> None:
        run, chosen = self.run, self.parameters
        self.taken[tier] = run.values[:tier]
        early = any(run.is_open(above) for above in range(tier))
        self._work(tier, chosen.early_share if early else chosen.share, chosen.bounding, run.best)

    def _work(self, tier: int, share: float, bounding: float, placement: Placement) -> bool:
        """Bound a tier in a part of a share of the time, improve it in the other; return whether there was time."""
        run = self.run
        with run.stage(NAME, share, tier) as deadline:
            engine = NodeChangeEngine(
                run.evaluator, run.upper, tier, run.values[:tier], placement, self.parameters, self.cpsat, self.changes
            )
            raise_bound = partial(run.raise_bound, tier, by=NAME)
            raise_bound(engine.bound(deadline.share(bounding), run.values[tier], raise_bound))
            return engine.improve(
                deadline,
                lambda placement: run.offer(placement, NAME, trusted=False),
                lambda: not run.is_open(tier),
                workers=self.options.workers,
                seed=self.options.seed,
            )
