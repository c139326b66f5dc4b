"""What decided what the problem was, as documents carry it."""

from __future__ import annotations

from stowplan.models.document import Document
from stowplan.models.objective import Objective


class SettingsDocument(Document):
    """What the problem was.

    Parameters
    ----------
    executor
        Whose rules decided who can be moved; with none, whoever is not tied to its node.
    may_move
        Kinds of reasons that were waived.
    drain
        Nodes that were cordoned, and that pods were to leave before all else.
    admit
        Pods that waited and were to get a node before all else, as ``namespace/name``.
    move_costs
        Whether annotations decided what a pod's move costs, beside others.
    """

    objective: Objective
    release: str
    scheduler: str
    config: str | None = None
    freeze: tuple[str, ...] = ()
    freeze_bare: bool = False
    max_moves: int | None = None
    executor: str | None = None
    may_move: tuple[str, ...] = ()
    move_costs: bool = False
    drain: tuple[str, ...] = ()
    admit: tuple[str, ...] = ()
