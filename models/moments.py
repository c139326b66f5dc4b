"""Times as Kubernetes and documents write them: RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from stowplan.models.errors import InputError


@cache
def parse_time(stamp: str) -> datetime | None:
    """Read a time; one without a zone is UTC, and one that cannot be read is ``None``."""
    try:
        read = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def require_time(text: str, field: str) -> datetime:
    """Read a time that has to be there, in UTC.

    Parameters
    ----------
    field
        Where it was read, for the error.

    Raises
    ------
    InputError
        If it is none, or has no time zone.
    """
    try:
        made = datetime.fromisoformat(text)
    except ValueError:
        made = None
    if made is None or made.tzinfo is None:
        raise InputError(f"{text!r} is not a time such as 2026-01-31T12:00:00Z", field=field)
    return made.astimezone(UTC)


def stamp(moment: datetime, timespec: str = "seconds") -> str:
    """Write a time in UTC, cut off after seconds or what else ``datetime.isoformat`` knows as ``timespec``."""
    return moment.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
