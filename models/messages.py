"""Lines on standard error: for people, or as JSON for what collects logs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from stowplan.models.words import printable


class LogFormat(StrEnum):
    """Format of lines on standard error."""

    TEXT = "text"
    JSON = "json"


LOG_FORMAT = ContextVar("LOG_FORMAT", default=LogFormat.TEXT)
"""What the command that runs was told."""

Level = Literal["info", "warning", "error"]


def log(message: str, level: Level = "info", about: Mapping[str, str | float] | None = None) -> None:
    """Write a line.

    Parameters
    ----------
    about
        What the message is about, for programs: as JSON, the line has them beside ``time``, ``level``, and ``message``.
    """
    if LOG_FORMAT.get() is LogFormat.JSON:
        moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"time": moment, "level": level, "message": message, **(about or {})})
    else:
        line = printable(f"stowplan: {'warning: ' if level == 'warning' else ''}{message}")
    print(line, file=sys.stderr, flush=True)
