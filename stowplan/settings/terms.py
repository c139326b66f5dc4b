"""On what terms a plan is made: argument of the Python interface and options of the command line."""

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
    """On what terms a plan is made.

    Parameters
    ----------
    limits
        How many evictions a wave may hold.
    created_at
        When the plan is made; nothing of it may be begun later than ``expires_in`` after that.
    expires_in, wave_timeout
        How long the plan may be begun, and how long a wave may take, unless its pods may take longer to end. Words such
        as ``"2h"`` will do.
    frozen
        Why a pod is to stay where it is, by pod key, beside what the settings freeze and the executor cannot move.
    rounds
        How often to solve anew at most; 0 plans what the first placement allows.

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
