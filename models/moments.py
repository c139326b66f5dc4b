"""Times as Kubernetes and documents write them: RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache


@cache
def moment(stamp: str) -> datetime | None:
    """Read a time; one without a zone is UTC, and one that cannot be read is ``None``."""
    try:
        read = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def stamp(moment: datetime, timespec: str = "seconds") -> str:
    """Write a time in UTC, cut off after seconds or what else ``datetime.isoformat`` knows as ``timespec``."""
    return moment.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
