"""Terms of a plan: argument of the Python interface and options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AwareDatetime, Field

from stowplan.models.arguments import Arguments
from stowplan.models.command_line import WAVES, Option
from stowplan.models.limits import LimitsDocument
from stowplan.settings.durations import Duration, read_duration, write_duration


class Terms(Arguments):
    """Terms of a plan.

    Parameters
    ----------
    limits
        Maximum number of evictions in a wave.
    created_at
        Time of the plan.
    expires_in
        Time after ``created_at`` until which evictions may begin, also as text such as ``"2h"``.
    wave_timeout
        Maximum duration of a wave; longer if its pods have a long termination grace period.
    frozen
        Further pods to keep on their node, by key, each with the reason.
    rounds
        Maximum number of further solves when moves are unreachable; 0 for none.

    Raises
    ------
    InputError
        With the term that cannot be used.
    """

    limits: LimitsDocument = LimitsDocument(per_owner="25%")
    created_at: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    expires_in: Annotated[
        Duration,
        Option(
            "Time until the plan expires, such as 30m, 2h, 1d.",
            WAVES,
            metavar="DURATION",
            read=read_duration,
            write=write_duration,
        ),
    ] = timedelta(hours=2)
    wave_timeout: Annotated[
        Duration,
        Option(
            "Maximum duration of a wave; longer if its pods have a long termination grace period.",
            WAVES,
            metavar="DURATION",
            read=read_duration,
            write=write_duration,
        ),
    ] = timedelta(minutes=10)
    frozen: Mapping[str, str] = {}
    rounds: Annotated[int, Field(ge=0)] = 3
