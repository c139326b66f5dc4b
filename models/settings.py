"""What decided what the problem was, as documents carry it."""

from __future__ import annotations

from models.document import Document
from models.objective import Objective


class SettingsDocument(Document):
    """What the problem was."""

    objective: Objective
    release: str
    scheduler: str
    config: str | None = None
    freeze: tuple[str, ...] = ()
    freeze_bare: bool = False
    max_moves: int | None = None
